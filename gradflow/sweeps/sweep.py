"""Runs the tasks of a sweep that have no row yet, and stores each row as it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gradflow.errors import Interrupted
from gradflow.records.sweeps import DONE, FAILED, WAITING, StoredRow
from gradflow.sweeps.attempts import Work
from gradflow.sweeps.executors import Finished, execute, require_executor
from gradflow.sweeps.row_store import RowStore
from gradflow.sweeps.tasks import SweepTask

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SweepOutcome:
    """The rows of a sweep, in the order of its tasks; a task that is not done yet has none."""

    rows: tuple[StoredRow, ...]

    @property
    def failed(self) -> tuple[StoredRow, ...]:
        """The rows of tasks that crashed, or whose workers died."""
        return tuple(row for row in self.rows if row.status == FAILED)


def run_sweep(
    tasks: Sequence[SweepTask],
    work: Work,
    *,
    folder: Path,
    executor: str = "local",
    workers: int | None = None,
    retry_failed: bool = False,
    report: Progress | None = None,
) -> SweepOutcome:
    """Return the rows of all tasks; those that the run folder has already are not done again.

    Args:
        tasks: what to do; of tasks with the same settings, the first counts.
        work: called as `work(settings, key)`; a function of a module, so that a worker can import
            it. Returns a row of strict JSON. What it raises makes a failed row, and no error.
        folder: the run folder; its database holds the rows.
        executor: "serial" (in this process), "local" (processes of this machine), "slurm", or the
            address of a dask scheduler, such as "tcp://10.0.0.7:8786".
        workers: how many processes; as many as there are cores when None.
        retry_failed: do the failed tasks again.
        report: called as `report(what, tasks done, tasks in all)`.

    Raises:
        RunFolderError: the folder cannot be written, or another process drives a sweep in it.
        UnknownNameError, SchedulerError: no such executor, or no scheduler at the address.
        Interrupted: stopped from the keyboard; its `partial` is the outcome up to then. The same
            call resumes.
    """
    require_executor(executor)
    unique = tuple({task.key: task for task in tasks}.values())
    with RowStore(folder) as store:
        store.set_grid(unique)
        again = {WAITING, FAILED} if retry_failed else {WAITING}
        open_keys = {row.key for row in store.rows() if row.status in again}
        waiting = [task for task in unique if task.key in open_keys]
        count = _Count(len(unique) - len(waiting), len(unique), report)
        try:
            with closing(execute(waiting, work, executor=executor, workers=workers)) as finished:
                _store_all(finished, store, count)
        except KeyboardInterrupt:
            raise Interrupted(
                f"{count.done} of {count.total} tasks are stored. "
                "The same command goes on from there.",
                partial=_outcome(store),
            ) from None
        return _outcome(store)


@dataclass
class _Count:
    """How many tasks are stored, and who is told."""

    done: int
    total: int
    report: Progress | None

    def tell(self, what: str = "tasks") -> None:
        if self.report is not None:
            self.report(what, self.done, self.total)


def _store_all(finished: Iterable[Finished | None], store: RowStore, count: _Count) -> None:
    if count.done:
        count.tell()
    for end in finished:
        if end is None:
            count.tell("tasks, waiting for a worker")
        else:
            store.append(_stored(end))
            count.done += 1
            count.tell()


def _outcome(store: RowStore) -> SweepOutcome:
    return SweepOutcome(tuple(row for row in store.rows() if row.status != WAITING))


def _stored(end: Finished) -> StoredRow:
    attempt = end.attempt
    return StoredRow(
        key=end.task.key,
        settings=json.loads(end.task.text),
        status=DONE if attempt.row is not None else FAILED,
        reason=attempt.reason,
        row=None if attempt.row is None else json.loads(attempt.row),
        attempts=end.attempts,
        started=attempt.started,
        seconds=attempt.seconds,
    )
