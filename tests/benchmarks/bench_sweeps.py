"""What a sweep costs and saves here: `python -m tests.benchmarks.bench_sweeps`, on a quiet machine.

1. The driver's share of the time, for tasks of a second: at most 5 %.
2. How much faster two workers train than one process, at least 1.6 times, and the same with dask's
   own setting for freed memory.
3. Listing 10,000 stored rows: at most a second.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradflow.experiments.runs import list_sweep
from gradflow.present.runs import listing_table, long_table_text
from gradflow.records.runs import RunFolder
from gradflow.settings.runs import RunsSettings
from gradflow.sweeps import StoredRow, SweepTask, load_rows, run_sweep
from gradflow.sweeps.row_store import RowStore
from tests.benchmarks.sweep_work import rest, train

ROWS, TASKS = 10_000, 8


@dataclass(frozen=True)
class Timed:
    """When the first task began, when each row was stored, and the processor's time of all."""

    begun: float
    stored: list[float]
    busy: float

    @property
    def seconds(self) -> float:
        """From the first task's beginning to the last row."""
        return self.stored[-1] - self.begun


def timed(work: Callable[..., Any], tasks: list[SweepTask], executor: str) -> Timed:
    """Run a sweep on two workers, or here, and say when what happened."""
    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_sweep(
            tasks,
            work,
            folder=Path(folder),
            executor=executor,
            workers=2,
            report=lambda *_: moments.append(time.time()),
        )
    rows = [row.row for row in outcome.rows if row.row and "begun" in row.row]
    begun = min((row["begun"] for row in rows), default=moments[0])
    return Timed(begun, moments, sum(row["busy"] for row in rows))


def overhead(seconds: float = 1.0, pairs: int = 6) -> float:
    """Return the driver's share of the time in which two workers do `pairs` tasks each."""
    tasks = [SweepTask({"seconds": seconds, "number": number}) for number in range(2 * pairs)]
    moments = timed(rest, tasks, "local").stored
    took = moments[-1] - moments[1]  # from the end of the first pair to that of the last
    return 1 - seconds * (pairs - 1) / took


def speed_up() -> tuple[float, float]:
    """Return how many times as fast two workers train as this process does.

    Second, the same by the processor's time alone: twice the time of a task here by that of a task
    in a worker. On a busy machine it is the better number; it leaves out waiting for each other.
    """
    tasks = [SweepTask({"seed": seed, "updates": 300}) for seed in range(TASKS)]
    here, there = (timed(train, tasks, executor) for executor in ("serial", "local"))
    return here.seconds / there.seconds, 2 * here.busy / there.busy


@contextmanager
def dask_defaults() -> Iterator[None]:
    """Let workers start with dask's own setting; a variable that is there already wins."""
    names = {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "131072"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def listing() -> tuple[float, float]:
    """Return the seconds to read 10,000 rows with curves, and to make a table of them."""
    tasks = [SweepTask({"seed": n, "cell": ["gru", "lstm"][n % 2]}) for n in range(ROWS)]
    row = {"test": {"accuracy": 0.5, "loss": 0.25}, "curve": [float(n) for n in range(300)]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with RowStore(folder) as store:
            store.set_grid(tasks)
            for task in tasks:
                store.append(StoredRow(task.key, task.settings, "done", row=row, attempts=1))
        start = time.perf_counter()
        rows = load_rows(folder, details=False)
        read = time.perf_counter() - start
    settings = RunsSettings(what=name, metric="accuracy")
    text = long_table_text(listing_table(list_sweep(RunFolder(name, {}, rows=rows), settings)))
    assert text.count("\n") > ROWS
    return read, time.perf_counter() - start - read


def main() -> int:
    """Measure, print each number beside what it should be, and return 1 where one is not."""
    share = overhead()
    faster = speed_up()
    with dask_defaults():
        usual = speed_up()
    read, made = listing()
    lines = [
        (share <= 0.05, f"driver's share, tasks of 1 s, two workers: {share:.1%} (at most 5 %)"),
        (
            faster[0] >= 1.6,
            f"two workers against one process: {faster[0]:.2f} times (at least 1.6); "
            f"by processor time {faster[1]:.2f}",
        ),
        (
            True,
            f"the same with dask's setting for freed memory: {usual[0]:.2f} times; "
            f"by processor time {usual[1]:.2f}",
        ),
        (
            read + made <= 1,
            f"{ROWS:,} rows: read in {read:.2f} s, a table in {made:.2f} s (at most 1 s)",
        ),
    ]
    for good, line in lines:
        sys.stdout.write(f"{'ok  ' if good else 'MISS'} {line}\n")
    return 0 if all(good for good, _ in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
