"""What a comparison does and does not support, in sentences; and its checks."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.experiments.benchmark.grid import Grid
from gradflow.records.base import Check
from gradflow.records.benchmark import (
    LEARNED,
    PARAMETERS,
    WIDTH,
    BenchmarkRow,
    TaskFacts,
)
from gradflow.records.benchmark_runs import DIVERGED, FAILED, BenchmarkRun

TWIN = 1e-6
"""How far, relatively, the unrolled run's loss may be from the layer's own, both in float64."""
_FEW = 5
_SHOWN = 5


def supports(grid: Grid, rows: Sequence[BenchmarkRow], tasks: Sequence[TaskFacts]) -> list[str]:
    """Return sentences on what may be concluded, from what was measured."""
    settings = grid.settings
    sentences = [
        "Same data, encoding, head form, seeds, batches, updates, clipping, stopping rule and grid "
        "of learning rates for all models; the learning rate is chosen by validation loss alone, "
        "and each trained network meets the test set once.",
        "Same width is not same cost" + _ratio(rows, WIDTH, "multiply_adds", "multiply-adds"),
        "Same parameters is not same time"
        + _ratio(rows, PARAMETERS, "seconds_of_512", "seconds for 512 sequences"),
    ]
    if len(tasks) > 1:
        steps = [facts.steps for facts in tasks]
        sentences.append(
            "A longer delay is also more computation: "
            f"{max(steps)} steps a sequence against {min(steps)}."
        )
    if settings.seeds < _FEW:
        sentences.append(
            f"{settings.seeds} seed{'s show a spread and do' if settings.seeds > 1 else ' does'} "
            "not test a difference: one between two models that overlap is not supported."
        )
    sentences.append(
        f"Nothing is said of other tasks, widths, optimizers, or more than {settings.updates} "
        "updates: a model that has not learned here may learn with more."
    )
    return sentences


def benchmark_checks(
    grid: Grid, runs: Sequence[BenchmarkRun], prints: dict[int, set[str]], shared: dict[int, int]
) -> tuple[Check, ...]:
    """Return the checks of a comparison.

    Args:
        grid: what was asked for.
        runs: all runs.
        prints: delay to the fingerprints of the data that its runs were given.
        shared: delay to the sequences that are in more than one set.
    """
    return (
        _finished(runs),
        _same_data(prints),
        _disjoint(grid, shared),
        _counted(grid, runs),
        _twins(runs),
    )


def benchmark_notes(
    grid: Grid, rows: Sequence[BenchmarkRow], runs: Sequence[BenchmarkRun]
) -> list[str]:
    """Return what a reader must know: combinations that cannot be, runs that diverged or failed."""
    notes = [
        f"Left out ({', '.join(entry.comparisons)}): {entry.cell}"
        f"{'' if entry.init is None else f' {entry.init}'}: {entry.reason}"
        for entry in grid.left_out
    ]
    notes += grid.notes
    without = [row for row in rows if row.reason is not None]
    notes += [
        f"{row.cell} {row.init}, hidden {row.hidden}, T={row.delay}: {row.reason}."
        for row in without[:_SHOWN]
    ]
    if len(without) > _SHOWN:
        notes.append(f"So it is with {len(without) - _SHOWN} more rows; runs.csv has every reason.")
    broken = [run for run in runs if run.status == DIVERGED]
    if broken:
        first = broken[0]
        notes.append(
            f"{len(broken)} of {len(runs)} runs diverged, which is a result; the first: "
            f"{first.cell} {first.init}, hidden {first.hidden}, delay {first.delay}, learning rate "
            f"{first.learning_rate:g}: {first.reason}."
        )
    return notes


def _ratio(rows: Sequence[BenchmarkRow], comparison: str, cost: str, words: str) -> str:
    """Return how far apart a cost is between the cells of a comparison, at the longest delay.

    Over initializations the mean is taken: they change no cost of an update.
    """
    own = [row for row in rows if comparison in row.comparisons and cost in row.costs]
    longest = max((row.delay for row in own), default=0)
    costs: dict[str, list[float]] = {}
    for row in own:
        if row.delay == longest:
            costs.setdefault(row.cell, []).append(row.costs[cost].mean)
    means = {cell: sum(values) / len(values) for cell, values in costs.items()}
    if len(means) < 2:
        return "; with one cell there is nothing to see of that here."
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    times = means[most] / max(means[least], 1e-300)
    return f": at delay {longest} {most} takes {times:.3g} times the {words} of {least}."


def _finished(runs: Sequence[BenchmarkRun]) -> Check:
    failed = [run for run in runs if run.status == FAILED]
    detail = f"{len(runs)} runs"
    if failed:
        first = failed[0]
        detail = (
            f"{len(failed)} of {len(runs)} crashed; the first: {first.cell} {first.init}, hidden "
            f"{first.hidden}, delay {first.delay}, seed {first.draw}: {first.reason}"
        )
    return Check("every run came to its end", not failed, detail)


def _same_data(prints: dict[int, set[str]]) -> Check:
    differing = [delay for delay, found in prints.items() if len(found) > 1]
    return Check(
        "all models of a delay had the same sequences",
        not differing,
        f"sha256 of all sets, {len(prints)} delay{'s' * (len(prints) != 1)}"
        + (f"; not so at {differing}" if differing else ""),
    )


def _disjoint(grid: Grid, shared: dict[int, int]) -> Check:
    allowed = grid.settings.overlap != "never"
    most = max(shared.values(), default=0)
    return Check(
        "training, validation and test sets do not overlap",
        not most or allowed,
        f"{most} shared sequences"
        + (", allowed where there are too few to part" if most and allowed else ""),
    )


def _counted(grid: Grid, runs: Sequence[BenchmarkRun]) -> Check:
    expected = {model.name: model.parameters for model in grid.models}
    wrong = [run for run in runs if run.costs and run.costs["parameters"] != expected[run.name]]
    return Check(
        "parameters as worked out equal those of the built modules",
        not wrong,
        f"{len(expected)} models"
        + (f"; not so for {wrong[0].cell} {wrong[0].hidden}" if wrong else ""),
    )


def _twins(runs: Sequence[BenchmarkRun]) -> Check:
    errors = [
        profile.loss_error
        for run in runs
        for profile in run.profiles
        if profile.loss_error is not None
    ]
    worst = max(errors, default=0.0)
    return Check(
        "the unrolled twin has the layer's loss",
        worst <= TWIN,
        f"{len(errors)} profiles, largest relative difference {worst:.1e}",
    )


def outcome_sentence(rows: Sequence[BenchmarkRow]) -> str:
    """Return how many model and delay pairs learned."""
    learned = sum(row.verdict == LEARNED for row in rows)
    return f"{learned} of {len(rows)} combinations of model and delay learned the task."
