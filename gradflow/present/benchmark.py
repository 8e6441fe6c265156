"""`gradflow benchmark` as tables, CSV rows and figures."""

from __future__ import annotations

from gradflow.present.benchmark_gradient import gradient_figure
from gradflow.present.benchmark_learning import learning_figure
from gradflow.present.benchmark_rows import (
    benchmark_rows,
    curve_rows,
    profile_rows,
    rate_rows,
    run_rows,
)
from gradflow.present.benchmark_scores import accuracy_figure, cost_figure
from gradflow.present.benchmark_tables import benchmark_table
from gradflow.present.outputs import Outputs
from gradflow.records.benchmark import BenchmarkResult

__all__ = ["benchmark_outputs", "benchmark_rows", "benchmark_table"]


def benchmark_outputs(result: BenchmarkResult, *, style: str = "screen") -> Outputs:
    """Return a comparison ready to be shown and stored.

    `tables` are "benchmark" (a row per comparison, delay and model), "learning_rates", "runs",
    "curves" and "profiles"; figures are "learning", "accuracy", "cost" and "gradient".
    """
    return Outputs(
        table=benchmark_table(result),
        tables={
            "benchmark": benchmark_rows(result),
            "learning_rates": rate_rows(result),
            "runs": run_rows(result),
            "curves": list(curve_rows(result)),
            "profiles": list(profile_rows(result)),
        },
        figures={
            "learning": learning_figure(result, style=style),
            "accuracy": accuracy_figure(result, style=style),
            "cost": cost_figure(result, style=style),
            "gradient": gradient_figure(result, style=style),
        },
    )
