"""Which learning rate a model gets: by validation alone, by one rule for all.

The rate whose runs diverged or failed least often, and of those the one with the lowest mean (over
seeds) of the best validation loss; of two alike the smaller. The test set has no say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradflow.records.benchmark import BenchmarkModel, RateRow, ShortRate
from gradflow.records.benchmark_runs import DIVERGED, DONE, FAILED, BenchmarkRun, Spread

DRIFT = 0.2
"""A run is stable where its last validation loss is within this share of the memoryless baseline's
loss from its best."""


def is_stable(run: BenchmarkRun, baseline: float) -> bool:
    """Return whether a run ended near its best: it neither diverged nor threw away what it had."""
    if run.status != DONE or run.final_loss is None or run.best_loss is None:
        return False
    return run.final_loss <= run.best_loss + DRIFT * baseline


def rate_rows(
    runs: Sequence[BenchmarkRun], models: Iterable[BenchmarkModel], baselines: dict[int, float]
) -> list[RateRow]:
    """Return a row for each model, delay and learning rate, and mark those that are chosen.

    Args:
        runs: all runs.
        models: all models.
        baselines: delay to the memoryless loss.
    """
    groups: dict[tuple[object, ...], dict[float, list[BenchmarkRun]]] = {}
    for run in runs:
        rates = groups.setdefault((run.name, run.delay), {})
        rates.setdefault(run.learning_rate, []).append(run)
    rows: list[RateRow] = []
    for model in models:
        for delay, baseline in baselines.items():
            own = sorted(groups.get((model.name, delay), {}).items())
            here = [_rate_row(model, same, baseline) for _, same in own]
            best = choose(here)
            rows += [replace(row, chosen=row is best) for row in here]
    return rows


def choose(rows: Sequence[RateRow]) -> RateRow | None:
    """Return the row of the learning rate that is chosen; None where no run was trained."""
    trained = [row for row in rows if row.validation_loss is not None]
    return min(trained, key=_rank, default=None)


def short_rates(rows: Sequence[RateRow]) -> list[ShortRate]:
    """Return the rates that a model is stable at for a short delay and not for a longer one."""
    found = []
    for cell, init, hidden, rate in dict.fromkeys((*row.name, row.learning_rate) for row in rows):
        own = [
            row
            for row in rows
            if row.name == (cell, init, hidden) and row.learning_rate == rate and not row.failed
        ]
        stable = tuple(sorted(row.delay for row in own if row.stable))
        unstable = tuple(sorted(row.delay for row in own if not row.stable))
        if stable and unstable and min(stable) < max(unstable):
            found.append(ShortRate(cell, init, hidden, rate, stable, unstable))
    return found


def _rank(row: RateRow) -> tuple[int, float, float]:
    assert row.validation_loss is not None
    return (row.diverged + row.failed, row.validation_loss.mean, row.learning_rate)


def _rate_row(model: BenchmarkModel, runs: Sequence[BenchmarkRun], baseline: float) -> RateRow:
    trained = [run for run in runs if run.status == DONE]
    alive = [run for run in runs if run.status != FAILED]
    return RateRow(
        cell=model.cell,
        init=model.init,
        hidden=model.hidden,
        delay=runs[0].delay,
        learning_rate=runs[0].learning_rate,
        stable=all(is_stable(run, baseline) for run in runs),
        diverged=sum(run.status == DIVERGED for run in runs),
        failed=sum(run.status == FAILED for run in runs),
        validation_loss=Spread.of([run.best_loss for run in trained if run.best_loss is not None]),
        validation_accuracy=Spread.of(
            [run.best_accuracy for run in trained if run.best_accuracy is not None]
        ),
        gradient_norm=_norms(alive, "median"),
        largest_gradient=_norms(alive, "largest"),
        updates=Spread.of([run.costs["updates"] for run in alive]),
    )


def _norms(runs: Sequence[BenchmarkRun], name: str) -> Spread | None:
    return Spread.of([run.gradient_norms[name] for run in runs if name in run.gradient_norms])
