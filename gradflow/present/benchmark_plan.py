"""What a benchmark would run, as a table: `gradflow benchmark --dry-run`."""

from __future__ import annotations

from gradflow.present.benchmark_words import init_name
from gradflow.present.cell_titles import short_names
from gradflow.present.numbers import counted
from gradflow.present.outputs import Row
from gradflow.present.tables import Column, TextTable
from gradflow.records.benchmark_plan import BenchmarkPlan

_MINUTE, _HOUR = 60.0, 3600.0


def plan_table(plan: BenchmarkPlan, workers: int) -> TextTable:
    """Return the models of the grid, and below how many runs are there, and how many are left."""
    each = len(plan.delays) * len(plan.learning_rates) * plan.seeds
    names = short_names(dict.fromkeys(model.cell for model in plan.models))
    rows = tuple(
        (
            names[model.cell],
            init_name(model.cell, model.init),
            str(model.hidden),
            f"{model.parameters:,}",
            str(each),
            ", ".join(model.comparisons),
        )
        for model in plan.models
    )
    return TextTable(
        title=f"{plan.task}: {counted(plan.total, 'run')}",
        columns=(
            Column("cell", numeric=False),
            Column("initialization", numeric=False),
            Column("hidden"),
            Column("parameters"),
            Column("runs"),
            Column("compared at", numeric=False),
        ),
        sections=(rows,),
        notes=plan_notes(plan, workers),
    )


def plan_notes(plan: BenchmarkPlan, workers: int) -> tuple[str, ...]:
    """Return the grid, what is there and the estimate, in sentences."""
    delays = ",".join(map(str, plan.delays))
    rates = ",".join(f"{rate:g}" for rate in plan.learning_rates)
    there = f"{plan.done} are there"
    if plan.failed:
        there += f", {plan.failed} failed"
    return (
        f"Each at delays {delays}, learning rates {rates} and {counted(plan.seeds, 'seed')}.",
        f"Of {counted(plan.total, 'run')} {there}; {plan.to_run} would be made.",
        _estimate(plan, workers),
        *(
            f"Left out ({', '.join(entry.comparisons)}): {entry.cell} {entry.init or ''}: "
            f"{entry.reason}"
            for entry in plan.left_out
        ),
    )


def plan_rows(plan: BenchmarkPlan) -> list[Row]:
    """Return one CSV row per model."""
    return [
        {
            "cell": model.cell,
            "init": model.init,
            "hidden": model.hidden,
            "parameters": model.parameters,
            "comparisons": ", ".join(model.comparisons),
        }
        for model in plan.models
    ]


def duration(seconds: float) -> str:
    """Return a time as a reader says it.

    >>> duration(42.4), duration(150), duration(7300)
    ('42 s', '2.5 min', '2 h')
    """
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.2g} min"
    return f"{seconds / _HOUR:.2g} h"


def _estimate(plan: BenchmarkPlan, workers: int) -> str:
    wall = plan.wall_seconds(workers)
    if wall is None or not plan.to_run:
        return "Nothing is left to do."
    basis = "from the runs that are there" if plan.calibrated else "a guess, no run is there yet"
    return (
        f"That takes at most about {duration(wall)} on {counted(workers, 'worker')} ({basis}); "
        "less where training stops early."
    )
