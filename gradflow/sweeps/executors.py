"""Where the tasks of a sweep are worked on: here, on this machine's cores, or on a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from gradflow.errors import UnknownNameError, nearest_name
from gradflow.sweeps.attempts import Attempt, Work, attempt
from gradflow.sweeps.tasks import SweepTask

EXECUTORS = ("serial", "local", "slurm")


@dataclass(frozen=True)
class Finished:
    """A task that is over, done or failed, and how often it was begun."""

    task: SweepTask
    attempt: Attempt
    attempts: int


def require_executor(executor: str) -> None:
    """Check that a text names an executor, or may be the address of a scheduler.

    Raises:
        UnknownNameError: neither.
    """
    if executor not in EXECUTORS and ":" not in executor:
        raise UnknownNameError(
            f"--executor takes the address of a dask scheduler, such as tcp://10.0.0.7:8786, or a "
            f"name, and {executor!r} is neither. {nearest_name(executor, EXECUTORS)}"
        )


def execute(
    tasks: Sequence[SweepTask], work: Work, *, executor: str, workers: int | None
) -> Generator[Finished | None]:
    """Yield each task as soon as it is over, in whatever order; None while no worker is there."""
    if executor == "serial" or not tasks:
        return _serial(tasks, work)
    # By name: dask takes a second to load, and a sweep that is done or serial does without.
    clusters = importlib.import_module("gradflow.sweeps.clusters")
    on_cluster: Generator[Finished | None] = clusters.run_on_cluster(
        tasks, work, executor=executor, workers=workers
    )
    return on_cluster


def _serial(tasks: Sequence[SweepTask], work: Work) -> Generator[Finished | None]:
    for task in tasks:
        yield Finished(task, attempt(work, task.text, task.key), 1)
