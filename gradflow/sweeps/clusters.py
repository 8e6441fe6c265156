"""The clusters that a sweep can run on: this machine's cores, a scheduler that is there, Slurm.

dask.distributed is loaded with this module, so nothing imports it before a sweep needs workers.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import dask
from dask.system import CPU_COUNT
from distributed import Client
from distributed.utils import silence_logging_cmgr

from gradflow.errors import SchedulerError
from gradflow.sweeps.attempts import Work, name_of
from gradflow.sweeps.crew import Crew
from gradflow.sweeps.executors import Finished
from gradflow.sweeps.local_workers import local_workers
from gradflow.sweeps.slurm import slurm_workers
from gradflow.sweeps.tasks import SweepTask
from gradflow.sweeps.worker_variables import WORKER_VARIABLES, kept_environment

_LOCAL_PATIENCE = 120.0  # seconds without any worker; a new one takes two or three
_REMOTE_PATIENCE = 300.0
_CONNECT = 15.0  # seconds
_CONFIG = {
    "distributed.nanny.pre-spawn-environ": WORKER_VARIABLES,
    "distributed.scheduler.allowed-failures": 0,  # the crew counts, and knows who was alone
    "distributed.scheduler.worker-ttl": None,  # a machine that slept is no dead worker
    "distributed.worker.memory.target": False,  # nothing of ours is kept in a worker,
    "distributed.worker.memory.spill": False,  # so there is nothing to spill
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,  # it stops a task 100 times a second to look
}


def run_on_cluster(
    tasks: Sequence[SweepTask], work: Work, *, executor: str, workers: int | None
) -> Generator[Finished | None]:
    """Yield each task as soon as it is over, worked on by processes of their own; see `Crew.run`.

    Args:
        tasks: what to do.
        work: see `gradflow.sweeps.run_sweep`.
        executor: "local", "slurm" or the address of a scheduler.
        workers: how many processes to start; as many as there are cores here when None. A
            scheduler that is there already has the workers that it has.

    Raises:
        SchedulerError: no such scheduler, no worker, or no Slurm here.
        SettingError: a worker cannot import `work`.
    """
    name = name_of(work)
    count = min(workers or CPU_COUNT, len(tasks))
    with ExitStack() as stack:
        stack.enter_context(kept_environment())
        stack.enter_context(dask.config.set(_CONFIG))
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))  # errors are told by us
        if executor == "local":
            where, patience = "this machine", _LOCAL_PATIENCE
            address: Any = stack.enter_context(local_workers(count))
        elif executor == "slurm":
            where, patience = "Slurm", None  # a queue may take days
            address = stack.enter_context(slurm_workers(count))
        else:
            where, patience = f"the scheduler at {executor}", _REMOTE_PATIENCE
            address = executor
        client = stack.enter_context(_connected(address, where))
        yield from Crew(client, where, patience=patience).run(tasks, name)


@contextmanager
def _connected(address: Any, where: str) -> Iterator[Client]:
    client = reason = None
    try:
        client = Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as problem:
        reason = str(problem).removesuffix(".")
    if client is None:
        gc.collect()  # the half-made client closes now; at the end of the program it would complain
        raise SchedulerError(
            f"{where} cannot be reached: {reason}. Start one with `dask scheduler`, and name the "
            "address that it prints, such as --executor tcp://10.0.0.7:8786."
        )
    with client:
        yield client
