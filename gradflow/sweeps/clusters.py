"""The clusters that a sweep can run on: this machine's cores, a scheduler that is there, Slurm.

dask.distributed is loaded with this module, so nothing imports it before a sweep needs workers.

Workers compute with one thread each: tasks are many and small, and two threads of a product wait
for each other. dask would have every worker give memory back to the system as soon as 64 KiB of it
are free (MALLOC_TRIM_THRESHOLD_), and a training step, which frees and takes that much all the
time, then spends half its time there; `WORKER_VARIABLES` let a worker keep what it will need again.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster

from gradflow.errors import SchedulerError
from gradflow.sweeps.attempts import Work
from gradflow.sweeps.crew import Crew
from gradflow.sweeps.executors import Finished
from gradflow.sweeps.tasks import SweepTask

# Read by a worker's C library and its linear algebra when it starts, so set before that.
WORKER_VARIABLES = {
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_LOCAL_PATIENCE = 120.0  # seconds without any worker; a new one takes two or three
_REMOTE_PATIENCE = 300.0
_CONNECT = 15.0
_CONFIG = {
    "distributed.nanny.pre-spawn-environ": WORKER_VARIABLES,
    "distributed.scheduler.allowed-failures": 0,  # the crew counts, and knows who was alone
    "distributed.scheduler.worker-ttl": None,  # a machine that slept is no dead worker
    "distributed.worker.memory.target": False,  # nothing of ours is kept in a worker,
    "distributed.worker.memory.spill": False,  # so there is nothing to spill
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


def run_on_cluster(
    tasks: Sequence[SweepTask], work: Work, *, executor: str, workers: int | None
) -> Generator[Finished]:
    """Yield each task as soon as it is over, worked on by processes of their own.

    Args:
        tasks: what to do.
        work: see `gradflow.sweeps.run_sweep`.
        executor: "local", "slurm" or the address of a scheduler.
        workers: how many processes to start; for "local", the cores when None. An address has the
            workers that it has.

    Raises:
        SchedulerError: no such scheduler, no worker, or no Slurm here.
    """
    count = min(workers or CPU_COUNT, len(tasks))
    with ExitStack() as stack:
        stack.enter_context(_kept_environment())
        stack.enter_context(dask.config.set(_CONFIG))
        if executor == "local":
            where, patience = "this machine", _LOCAL_PATIENCE
            address: Any = stack.enter_context(_local(count))
        elif executor == "slurm":
            where, patience = "Slurm", None
            address = stack.enter_context(_slurm(count))
        else:
            where, patience = f"the scheduler at {executor}", _REMOTE_PATIENCE
            address = executor
        client = stack.enter_context(_connected(address, where))
        yield from Crew(client, where, patience=patience).run(tasks, work)


@contextmanager
def _local(count: int) -> Iterator[LocalCluster]:
    """Start workers of this machine, each watched by a nanny that starts it again if it dies.

    They end with this process, however it ends: each waits for the end of a pipe that it holds.
    """
    try:
        with _interrupts_only_here():
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                memory_limit=None,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
    except (OSError, RuntimeError) as problem:
        raise SchedulerError(
            f"{count} worker processes cannot be started here: {problem}. "
            "Ask for fewer with --workers, or for none with --executor serial."
        ) from None
    with cluster:
        yield cluster


@contextmanager
def _interrupts_only_here() -> Iterator[None]:
    """Let Ctrl-C, which a terminal sends to every process, reach the driver alone.

    The signal mask of this thread goes on to the threads and processes that are made meanwhile.
    Python's resource tracker must run before: to start it, the thread that makes the first process
    would take the signal out of its mask.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _kept_environment() -> Iterator[None]:
    """Take back what dask sets in this process for the workers that it starts."""
    before = {name: os.environ.get(name) for name in WORKER_VARIABLES}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _connected(address: Any, where: str) -> Iterator[Client]:
    try:
        client = Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as problem:
        raise SchedulerError(
            f"{where} cannot be reached: {problem} Start one with `dask scheduler`, and name the "
            "address that it prints, such as --executor tcp://10.0.0.7:8786."
        ) from None
    with client:
        yield client


@contextmanager
def _slurm(count: int) -> Iterator[Any]:
    """Submit a job for each worker; what a job asks for stands in dask's own configuration."""
    try:
        jobqueue = importlib.import_module("dask_jobqueue")
    except ModuleNotFoundError:
        raise SchedulerError(
            "--executor slurm needs dask-jobqueue, which is not installed. "
            "Install gradflow with its extra: pip install '.[slurm]'"
        ) from None
    exports = [f"export {name}={value}" for name, value in WORKER_VARIABLES.items()]
    try:
        cluster = jobqueue.SLURMCluster(
            processes=1,
            job_script_prologue=exports,
            scheduler_options={"dashboard": False, "dashboard_address": None},
        )
    except (OSError, RuntimeError, TypeError, ValueError) as problem:
        raise SchedulerError(
            f"Slurm jobs cannot be described: {problem} Say in ~/.config/dask/jobqueue.yaml what "
            "a job of one worker asks for: cores, memory, queue, walltime."
        ) from None
    with cluster:
        cluster.scale(jobs=count)
        yield cluster
