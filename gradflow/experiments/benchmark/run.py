"""Which recurrent cell learns to carry information across a delay, and at what cost?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gradflow.errors import Interrupted
from gradflow.experiments.benchmark.grid import Grid, code_of, make_grid
from gradflow.experiments.benchmark.one_run import train_one
from gradflow.experiments.benchmark.read_rows import Stored, read_runs
from gradflow.experiments.benchmark.selection import rate_rows, short_rates
from gradflow.experiments.benchmark.statements import (
    benchmark_checks,
    benchmark_notes,
    supports,
)
from gradflow.experiments.benchmark.tasks import SequenceTask
from gradflow.experiments.benchmark.verdicts import benchmark_row
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.benchmark import BenchmarkResult, RateRow, TaskFacts
from gradflow.records.benchmark_runs import BenchmarkRun
from gradflow.settings.benchmark import BenchmarkSettings
from gradflow.sweeps import SweepTask, run_sweep
from gradflow.sweeps.executors import require_executor

Progress = Callable[[str, int, int], None]
Place = tuple[tuple[str, str, int], int]
Placed = TypeVar("Placed", RateRow, BenchmarkRun)


def run_benchmark(
    settings: BenchmarkSettings,
    *,
    folder: Path,
    executor: str = "local",
    workers: int | None = None,
    retry_failed: bool = False,
    begin: Callable[[], object] | None = None,
    progress: Progress | None = None,
) -> BenchmarkResult:
    """Train every combination that is not stored yet, and compare all of them.

    Args:
        settings: what to compare.
        folder: the run folder; rows are kept in its database, and not made twice.
        executor, workers, retry_failed: see `gradflow.sweeps.run_sweep`; no number depends on
            them but times and memory.
        begin: called once the request is known to be right, before the first run.
        progress: called as `progress(what, runs done, runs in all)`.

    Raises:
        SettingError, UnknownNameError, CellLoadError, GateValueError: as in `make_grid`.
        RunFolderError: the folder cannot be written.
        Interrupted: stopped from the keyboard; the same call goes on from there.
    """
    watch = Stopwatch()
    require_executor(executor)
    grid = make_grid(settings)
    tasks = benchmark_tasks(grid)
    if begin is not None:
        begin()
    try:
        outcome = run_sweep(
            tasks,
            train_one,
            folder=folder,
            executor=executor,
            workers=workers,
            retry_failed=retry_failed,
            report=progress,
        )
    except Interrupted as stop:  # half a comparison would choose rates from half the runs
        raise Interrupted(str(stop)) from None
    result = compare(grid, outcome.rows)
    return replace(
        result, config=settings.to_json(), environment=provenance("benchmark", settings, watch)
    )


def benchmark_tasks(grid: Grid) -> list[SweepTask]:
    """Return the tasks of a grid, one for each run."""
    return [SweepTask(settings) for settings in grid.runs()]


def compare(grid: Grid, rows: Sequence[Stored]) -> BenchmarkResult:
    """Return the comparison that the rows of a grid make, whatever their order."""
    order = {task.key: place for place, task in enumerate(benchmark_tasks(grid))}
    rows = sorted((row for row in rows if row.key in order), key=lambda row: order[row.key])
    names = {code_of(m.cell).get("cell", m.cell): m.cell for m in grid.models}
    runs = read_runs(rows, names)
    baselines = {task.delay: task.baseline.loss for task in grid.tasks}
    rates = rate_rows(runs, grid.models, baselines)
    of_rates, of_runs = _by_place(rates), _by_place(runs)
    table = [
        benchmark_row(model, of_rates[place], of_runs[place], task.baseline)
        for task in grid.tasks
        for model in grid.models
        if (place := (model.name, task.delay)) in of_runs
    ]
    prints, shared = _data(rows)
    facts = tuple(_facts(task, prints, shared) for task in grid.tasks)
    return BenchmarkResult(
        task=grid.settings.task,
        tasks=facts,
        target=grid.target,
        models=grid.models,
        rows=tuple(table),
        rates=tuple(rates),
        short_rates=tuple(short_rates(rates)),
        runs=_kept(runs, rates),
        left_out=grid.left_out,
        supports=tuple(supports(grid, table, facts)),
        notes=tuple(benchmark_notes(grid, table, runs)),
        checks=benchmark_checks(grid, runs, prints, shared),
    )


def _by_place(entries: Sequence[Placed]) -> dict[Place, list[Placed]]:
    """Return the entries of each model and delay, in order."""
    found: dict[Place, list[Placed]] = {}
    for entry in entries:
        found.setdefault((entry.name, entry.delay), []).append(entry)
    return found


def _data(rows: Sequence[Stored]) -> tuple[dict[int, set[str]], dict[int, int]]:
    """Return the data's fingerprints and shared sequences, by delay."""
    prints: dict[int, set[str]] = {}
    shared: dict[int, int] = {}
    for row in rows:
        if row.row is not None:
            delay = row.settings["delay"]
            prints.setdefault(delay, set()).add(row.row["data"]["fingerprint"])
            shared[delay] = max(shared.get(delay, 0), row.row["data"]["shared"])
    return prints, shared


def _facts(task: SequenceTask, prints: dict[int, set[str]], shared: dict[int, int]) -> TaskFacts:
    baseline = task.baseline
    found = prints.get(task.delay)
    return TaskFacts(
        delay=task.delay,
        steps=task.steps,
        loss=baseline.loss,
        recall_loss=baseline.recall_loss,
        accuracy=baseline.accuracy,
        different=task.different,
        shared=shared.get(task.delay),
        fingerprint=None if found is None else min(found),
    )


def _kept(runs: Sequence[BenchmarkRun], rates: Sequence[RateRow]) -> tuple[BenchmarkRun, ...]:
    """Return the runs; those of rates that were not chosen without test, curve and profiles."""
    chosen = {(row.name, row.delay, row.learning_rate) for row in rates if row.chosen}
    return tuple(
        run
        if (run.name, run.delay, run.learning_rate) in chosen
        else replace(run, test=None, curve=None, profiles=())
        for run in runs
    )
