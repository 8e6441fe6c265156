"""Workers as jobs of Slurm, by dask-jobqueue; the scheduler is in this process.

What a job asks for (queue, account, walltime, memory, cores) stands in dask's own configuration,
`~/.config/dask/jobqueue.yaml`, and so does what it runs first. A worker has one core.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask

from gradflow.errors import SchedulerError
from gradflow.sweeps.worker_variables import WORKER_VARIABLES

# dask starts a small web server in any case; at a free port unless the configuration says which.
_NO_PAGE = {"dashboard": False, "dashboard_address": ":0"}
_MEMORY = 4  # GiB a worker, where nothing is said


@contextmanager
def slurm_workers(count: int) -> Iterator[Any]:
    """Submit jobs for `count` workers, new ones when they end too soon, and cancel them at the end.

    Raises:
        SchedulerError: dask-jobqueue is not installed, or its configuration is wrong.
    """
    try:
        jobqueue = importlib.import_module("dask_jobqueue")
    except ModuleNotFoundError:
        raise SchedulerError(
            "--executor slurm needs dask-jobqueue, which is not installed. "
            "Install gradflow with its extra: pip install '.[slurm]'"
        ) from None
    asked = dask.config.get("jobqueue.slurm")
    cores = asked.get("cores") or 1
    exports = [f"export {name}={value}" for name, value in WORKER_VARIABLES.items()]
    try:
        cluster = jobqueue.SLURMCluster(
            cores=cores,
            processes=cores,
            memory=asked.get("memory") or f"{_MEMORY * cores} GiB",
            job_script_prologue=[*(asked.get("job-script-prologue") or ()), *exports],
            silence_logs=logging.CRITICAL,
            scheduler_options=_NO_PAGE | (asked.get("scheduler-options") or {}),
        )
    except (OSError, RuntimeError, TypeError, ValueError) as problem:
        raise SchedulerError(
            f"Slurm jobs cannot be made: {problem}. See the section slurm of "
            "~/.config/dask/jobqueue.yaml."
        ) from None
    with cluster:
        jobs = math.ceil(count / cores)
        cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)  # in place of jobs whose time is over
        yield cluster
