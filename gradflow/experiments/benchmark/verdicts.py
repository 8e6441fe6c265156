"""What came of each model at each delay: learned, partly, or not learned."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.experiments.benchmark.tasks import LEARNED as LEARNED_ACCURACY
from gradflow.experiments.benchmark.tasks import Baseline
from gradflow.records.benchmark import (
    LEARNED,
    NO_RESULT,
    NOT_LEARNED,
    PARTLY,
    BenchmarkModel,
    BenchmarkRow,
    RateRow,
)
from gradflow.records.benchmark_runs import DONE, BenchmarkRun, Spread

AT_BASELINE = 0.9
"""A loss of this share of the memoryless baseline's, or more, says that nothing was remembered."""


def at_baseline(loss: float, baseline: float) -> bool:
    """Return whether a loss is no better than a memoryless model's.

    On a longer delay a loss over all steps is small for its blanks alone:

    >>> at_baseline(0.09, 10 * 2.0794415 / 220)
    True
    """
    return loss >= AT_BASELINE * baseline


def verdict(accuracy: float, recall_loss: float, baseline: Baseline) -> str:
    """Return the verdict: learned from an accuracy of 0.9, not learned at the baseline.

    >>> verdict(0.13, 2.07, Baseline(0.3, 2.0794415, 0.125))
    'not learned'
    """
    if accuracy >= LEARNED_ACCURACY:
        return LEARNED
    return NOT_LEARNED if at_baseline(recall_loss, baseline.recall_loss) else PARTLY


def benchmark_row(
    model: BenchmarkModel,
    rates: Sequence[RateRow],
    runs: Sequence[BenchmarkRun],
    baseline: Baseline,
) -> BenchmarkRow:
    """Return the row of a model at a delay.

    Args:
        model: which.
        rates: its rows of learning rates at this delay, one of them chosen or none.
        runs: all its runs at this delay.
        baseline: of the task at this delay.
    """
    chosen = next((row.learning_rate for row in rates if row.chosen), None)
    own = [run for run in runs if run.status == DONE and run.learning_rate == chosen]
    tests = [run.test for run in own if run.test is not None]
    accuracy = Spread.of([test["accuracy"] for test in tests])
    recall = Spread.of([test["recall_loss"] for test in tests])
    word = NO_RESULT
    if accuracy is not None and recall is not None:
        word = verdict(accuracy.mean, recall.mean, baseline)
    asked = [run for run in runs if chosen is None or run.learning_rate == chosen]
    return BenchmarkRow(
        cell=model.cell,
        init=model.init,
        hidden=model.hidden,
        delay=rates[0].delay,
        comparisons=model.comparisons,
        learning_rate=chosen,
        verdict=word,
        accuracy=accuracy,
        loss=Spread.of([test["loss"] for test in tests]),
        recall_loss=recall,
        learned=sum(test["accuracy"] >= LEARNED_ACCURACY for test in tests),
        seeds=len({run.draw for run in runs}),
        costs=_costs(own),
        reason=_reason(asked),
    )


def _costs(runs: Sequence[BenchmarkRun]) -> dict[str, Spread]:
    """Return each cost over seeds, and the median gradient norm before clipping."""
    if not runs:
        return {}
    names = list(runs[0].costs)
    spreads = {name: Spread.of([run.costs[name] for run in runs]) for name in names}
    norms = [run.gradient_norms["median"] for run in runs if run.gradient_norms]
    spreads["gradient_norm"] = Spread.of(norms)
    return {name: spread for name, spread in spreads.items() if spread is not None}


def _reason(runs: Sequence[BenchmarkRun]) -> str | None:
    """Return what went wrong with runs of the chosen rate (with all, where none is chosen)."""
    broken = [run for run in runs if run.status != DONE]
    if not broken:
        return None
    return f"{len(broken)} of {len(runs)} runs {broken[0].status}: {broken[0].reason}"
