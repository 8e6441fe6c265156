"""The learning rate is chosen by validation alone, by one rule; what is stable is told."""

from __future__ import annotations

from typing import Any

import pytest

from gradflow.experiments.benchmark.selection import (
    choose,
    is_stable,
    rate_rows,
    short_rates,
)
from gradflow.experiments.benchmark.tasks import Baseline
from gradflow.experiments.benchmark.verdicts import benchmark_row
from gradflow.records.benchmark import (
    LEARNED,
    NO_RESULT,
    WIDTH,
    BenchmarkModel,
    RateRow,
)
from gradflow.records.benchmark_runs import DIVERGED, DONE, FAILED, BenchmarkRun, Spread

MODEL = BenchmarkModel("gru", "torch-default", 8, 100, (WIDTH,))
COIN = Baseline(0.7, 0.7, 0.5)


def run(rate: float, best: float | None = 0.1, **values: Any) -> BenchmarkRun:
    """Return a run of a learning rate with this best validation loss."""
    usual: dict[str, Any] = {
        "key": "0" * 64,
        "cell": "gru",
        "init": "torch-default",
        "hidden": 8,
        "delay": 10,
        "draw": 0,
        "status": DONE,
        "reason": None,
        "stopped": "updates",
        "best_update": 10,
        "best_accuracy": 0.95,
        "final_loss": best,
        "gradient_norms": {"q05": 0.1, "median": 0.5, "q95": 0.9, "largest": 2.0},
        "costs": {"updates": 20, "parameters": 100},
        "test": {"loss": 0.2, "recall_loss": 0.2, "accuracy": 0.95},
    }
    return BenchmarkRun(learning_rate=rate, best_loss=best, **{**usual, **values})


def rates(*runs: BenchmarkRun) -> list[RateRow]:
    """Return the rows of some runs of the one model."""
    delays = {run.delay: 0.7 for run in runs}
    return rate_rows(runs, [MODEL], delays)


def chosen(*runs: BenchmarkRun) -> float | None:
    """Return the learning rate that is chosen."""
    row = choose(rates(*runs))
    return None if row is None else row.learning_rate


def test_a_mean_lies_between_the_ends():
    """Forty times 0.35 is 0.35, whatever a sum rounds to: bars have no negative length."""
    for value in (0.35, 0.1, 0.7, 1 / 3):
        for count in (3, 10, 40):
            assert Spread.of([value] * count) == Spread(value, value, value)
    assert Spread.of([]) is None


def test_the_lowest_mean_validation_loss_wins_whatever_the_test_says():
    """Over seeds: 0.2 and 0.2 beat 0.05 and 0.4, and a better test changes nothing."""
    good_test = {"loss": 0.0, "recall_loss": 0.0, "accuracy": 1.0}
    runs = [run(0.1, 0.05, test=good_test), run(0.1, 0.4, draw=1, test=good_test)]
    runs += [run(0.01, 0.2), run(0.01, 0.2, draw=1)]
    assert chosen(*runs) == 0.01
    assert chosen(*reversed(runs)) == 0.01


def test_of_two_alike_the_smaller_rate():
    """A rule for ties, so that the order of the grid does not decide."""
    assert chosen(run(0.1, 0.2), run(0.01, 0.2)) == 0.01


def test_a_rate_that_diverged_is_not_chosen_before_one_that_did_not():
    """Its other seed may be the best of all."""
    gone = run(0.1, None, status=DIVERGED, draw=1, test=None)
    assert chosen(run(0.1, 0.01), gone, run(0.01, 0.5), run(0.01, 0.5, draw=1)) == 0.01
    assert chosen(run(0.1, 0.01), gone) == 0.1
    assert chosen(gone) is None


@pytest.mark.parametrize(
    ("values", "stable"),
    [
        ({}, True),
        ({"final_loss": 0.23}, True),
        ({"final_loss": 0.25}, False),
        ({"status": DIVERGED}, False),
        ({"status": FAILED}, False),
    ],
)
def test_a_run_is_stable_that_ends_near_its_best(values: dict[str, Any], stable: bool):
    """Within a fifth of the baseline's loss, 0.14 here, of the best 0.1."""
    assert is_stable(run(0.1, **values), 0.7) is stable


def test_a_rate_that_is_stable_at_short_delays_alone_is_named():
    """With its gradient norms and updates at each delay, in the rows."""
    rows = rates(
        run(0.1, delay=10),
        run(0.1, delay=50, final_loss=0.6),
        run(0.01, delay=10),
        run(0.01, delay=50),
        run(0.3, delay=10, status=DIVERGED),
        run(0.3, delay=50),
    )
    (found,) = short_rates(rows)
    assert (found.learning_rate, found.stable_at, found.unstable_at) == (0.1, (10,), (50,))
    (row,) = [row for row in rows if row.learning_rate == 0.1 and row.delay == 50]
    assert row.gradient_norm is not None
    assert row.updates is not None
    assert (row.gradient_norm.mean, row.updates.mean) == (0.5, 20)


def test_a_crash_says_nothing_of_stability():
    """A crashed run is no instability of its learning rate."""
    rows = rates(run(0.1, delay=10), run(0.1, None, delay=50, status=FAILED, costs={}))
    assert short_rates(rows) == []


def test_a_row_shows_the_chosen_rate_alone():
    """Its tests over seeds, its costs; other rates' tests are not in it."""
    runs = [run(0.01, 0.1), run(0.01, 0.1, draw=1), run(0.1, 0.3, test={"accuracy": 0.0})]
    row = benchmark_row(MODEL, rates(*runs), runs, COIN)
    assert (row.learning_rate, row.verdict, row.seeds, row.learned) == (0.01, LEARNED, 2, 2)
    assert row.accuracy is not None
    assert (row.accuracy.least, row.accuracy.greatest) == (0.95, 0.95)
    assert row.costs["gradient_norm"].mean == 0.5
    assert row.reason is None


def test_a_model_of_which_nothing_came_keeps_its_row():
    """Every combination is reported, with the reason."""
    runs = [run(0.1, None, status=FAILED, reason="boom", costs={}, gradient_norms={}, test=None)]
    row = benchmark_row(MODEL, rates(*runs), runs, COIN)
    assert (row.learning_rate, row.verdict, row.accuracy) == (None, NO_RESULT, None)
    assert row.reason == "1 of 1 runs failed: boom"
