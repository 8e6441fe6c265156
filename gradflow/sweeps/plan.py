"""What a sweep would do if it was run now, without doing or writing anything: `--dry-run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradflow.records.sweeps import DONE, FAILED, StoredRow
from gradflow.sweeps.row_store import has_rows, load_rows
from gradflow.sweeps.tasks import SweepTask

Cost = Callable[[Mapping[str, Any]], float]


@dataclass(frozen=True)
class SweepPlan:
    """What is there and what is left of a sweep.

    `done` and `failed` are rows that the run folder has; `to_run` are the tasks that would be run,
    in order. `seconds` is an estimate of the time that they take together, on one worker; None
    where nothing is known. `calibrated` is True where stored rows of this sweep, and not only a
    guess, went into it.
    """

    total: int
    done: int
    failed: int
    to_run: tuple[SweepTask, ...]
    seconds: float | None
    calibrated: bool

    def wall_seconds(self, workers: int) -> float | None:
        """Return the estimate for `workers` that share the tasks evenly, None where unknown.

        >>> SweepPlan(9, 9, 0, (), 0.0, True).wall_seconds(4)
        0.0
        """
        if self.seconds is None or not self.to_run:
            return self.seconds
        return self.seconds / min(workers, len(self.to_run))


def plan_sweep(
    tasks: Sequence[SweepTask],
    *,
    folder: Path,
    retry_failed: bool = False,
    cost: Cost | None = None,
) -> SweepPlan:
    """Return what `run_sweep` would do with the same arguments.

    Args:
        tasks: all of them.
        folder: the run folder, which need not be there.
        retry_failed: see `run_sweep`.
        cost: a guess at the seconds that a task takes, from its settings; only ratios matter as
            soon as rows are stored, because their true seconds then set the scale. Where None,
            every task costs the same.

    Raises:
        RunFolderError: the folder's database cannot be read.
    """
    unique = {task.key: task for task in tasks}
    there = load_rows(folder, details=False, grid_only=False) if has_rows(folder) else ()
    rows = [row for row in there if row.key in unique]
    done = [row for row in rows if row.status == DONE]
    failed = [row for row in rows if row.status == FAILED]
    kept = {row.key for row in (done if retry_failed else (*done, *failed))}
    to_run = tuple(task for key, task in unique.items() if key not in kept)
    seconds = _estimate(to_run, done, cost)
    calibrated = any(row.seconds for row in done)
    return SweepPlan(len(unique), len(done), len(failed), to_run, seconds, calibrated)


def _estimate(
    to_run: Sequence[SweepTask], done: Sequence[StoredRow], cost: Cost | None
) -> float | None:
    """Return the seconds of all tasks: their cost, scaled by what stored rows took of theirs."""
    if not to_run:
        return 0.0
    each = cost if cost is not None else lambda _: 1.0
    timed = [row for row in done if row.seconds]
    if not timed and cost is None:
        return None
    known = sum(each(row.settings) for row in timed)
    scale = sum(row.seconds or 0.0 for row in timed) / known if known else 1.0
    return scale * sum(each(task.settings) for task in to_run)
