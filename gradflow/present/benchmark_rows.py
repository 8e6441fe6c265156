"""The CSV tables of a benchmark, with every digit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradflow.present.outputs import Row
from gradflow.records.base import finite_or_none
from gradflow.records.benchmark import BenchmarkResult, BenchmarkRow, RateRow
from gradflow.records.benchmark_runs import BenchmarkRun, Spread


def benchmark_rows(result: BenchmarkResult) -> list[Row]:
    """Return a row for each comparison, delay and model, the memoryless baseline beside it."""
    return [
        _benchmark_row(result, row, comparison)
        for row in result.rows
        for comparison in row.comparisons
    ]


def rate_rows(result: BenchmarkResult) -> list[Row]:
    """Return a row for each model, delay and learning rate."""
    return [
        {
            **_model(row),
            "delay": row.delay,
            "learning_rate": row.learning_rate,
            "chosen": row.chosen,
            "stable": row.stable,
            "diverged": row.diverged,
            "failed": row.failed,
            **_spread("validation_loss", row.validation_loss),
            **_spread("validation_accuracy", row.validation_accuracy),
            **_spread("gradient_norm", row.gradient_norm),
            **_spread("largest_gradient", row.largest_gradient),
            **_spread("updates", row.updates),
        }
        for row in result.rates
    ]


def run_rows(result: BenchmarkResult) -> list[Row]:
    """Return a row for each run, diverged and failed ones with their reason."""
    return [
        {
            **_run(run),
            "status": run.status,
            "reason": run.reason,
            "stopped": run.stopped,
            "best_update": run.best_update,
            "best_validation_loss": run.best_loss,
            "best_validation_accuracy": run.best_accuracy,
            "final_validation_loss": run.final_loss,
            "test_accuracy": None if run.test is None else run.test["accuracy"],
            "test_loss": None if run.test is None else run.test["loss"],
            **{f"gradient_{name}": run.gradient_norms.get(name) for name in _QUANTILES},
            **{name: run.costs.get(name) for name in _COSTS},
            "key": run.key,
        }
        for run in result.runs
    ]


_QUANTILES = ("q05", "median", "q95", "largest")
_COSTS = (
    "parameters",
    "multiply_adds",
    "training_seconds",
    "seconds_of_512",
    "peak_bytes",
    "process_peak_bytes",
    "step_calls",
    "updates",
)


def curve_rows(result: BenchmarkResult) -> Iterator[Row]:
    """Yield a row for each validation of each run of a chosen learning rate."""
    for run in result.runs:
        if run.curve is None:
            continue
        names = ("train_loss", "loss", "recall_loss", "accuracy")
        for index, update in enumerate(run.curve.updates):
            values = {name: float(getattr(run.curve, name)[index]) for name in names}
            yield {
                **_run(run),
                "update": int(update),
                **{name: finite_or_none(value) for name, value in values.items()},
            }


def profile_rows(result: BenchmarkResult) -> Iterator[Row]:
    """Yield a row for each moment, part of the state and step of a chosen run."""
    for run in result.runs:
        for profile in run.profiles:
            for part, values in profile.log10_norms.items():
                pairs = zip(values, profile.recall_norms[part], strict=True)
                for step, (whole, recall) in enumerate(pairs, start=1):
                    yield {
                        **_run(run),
                        "moment": profile.moment,
                        "update": profile.update,
                        "part": part,
                        "step": step,
                        "log10_norm": finite_or_none(float(whole)),
                        "recall_log10_norm": finite_or_none(float(recall)),
                        "zero_reason": "exact" if np.isneginf([whole, recall]).any() else None,
                    }


def _benchmark_row(result: BenchmarkResult, row: BenchmarkRow, comparison: str) -> Row:
    facts = result.at(row.delay)
    return {
        "comparison": comparison,
        "task": result.task,
        **_model(row),
        "delay": row.delay,
        "learning_rate": row.learning_rate,
        "verdict": row.verdict,
        "seeds": row.seeds,
        "seeds_learned": row.learned,
        **_spread("test_accuracy", row.accuracy),
        **_spread("test_loss", row.loss),
        **_spread("test_recall_loss", row.recall_loss),
        "memoryless_accuracy": facts.accuracy,
        "memoryless_loss": facts.loss,
        "memoryless_recall_loss": facts.recall_loss,
        **{name: _mean(row.costs.get(name)) for name in (*_COSTS, "gradient_norm")},
        "reason": row.reason,
    }


def _mean(spread: Spread | None) -> float | None:
    return None if spread is None else spread.mean


def _model(row: BenchmarkRow | RateRow) -> Row:
    return {"cell": row.cell, "init": row.init, "hidden": row.hidden}


def _run(run: BenchmarkRun) -> Row:
    return {
        "cell": run.cell,
        "init": run.init,
        "hidden": run.hidden,
        "delay": run.delay,
        "learning_rate": run.learning_rate,
        "seed": run.draw,
    }


def _spread(name: str, spread: Spread | None) -> Row:
    ends = (None,) * 3 if spread is None else (spread.mean, spread.least, spread.greatest)
    return {name: ends[0], f"{name}_least": ends[1], f"{name}_greatest": ends[2]}
