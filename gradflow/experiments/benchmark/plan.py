"""What a benchmark would run, and an estimate of how long that takes: `--dry-run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradflow.experiments.benchmark.grid import make_grid
from gradflow.experiments.benchmark.made_task import make_task
from gradflow.experiments.benchmark.networks import FUSED
from gradflow.experiments.benchmark.run import benchmark_tasks
from gradflow.experiments.parameter_counts import CELL_ARITHMETIC
from gradflow.records.benchmark_plan import BenchmarkPlan
from gradflow.settings.benchmark import BenchmarkSettings
from gradflow.settings.sweeps import SweepOptions
from gradflow.sweeps import plan_sweep
from gradflow.sweeps.executors import require_executor

# Seconds on one core of 2025, from timing the presets: an estimate before any run is stored.
_RUN, _STEP, _STEP_OF_OWN_CELL, _MULTIPLY_ADD = 0.6, 6e-5, 4e-4, 5e-11
_OWN_CELL_GATES = 4


def plan_benchmark(settings: BenchmarkSettings, folder: Path, how: SweepOptions) -> BenchmarkPlan:
    """Return what `run_benchmark` would do; nothing is trained and nothing written.

    Raises:
        RequestError: what `run_benchmark` would refuse.
    """
    require_executor(how.executor)
    grid = make_grid(settings)
    plan = plan_sweep(
        benchmark_tasks(grid),
        folder=folder,
        retry_failed=how.retry_failed,
        cost=guessed_seconds,
    )
    return BenchmarkPlan(
        task=settings.task,
        delays=settings.delay,
        models=grid.models,
        learning_rates=settings.learning_rate,
        seeds=settings.seeds,
        left_out=grid.left_out,
        total=plan.total,
        done=plan.done,
        failed=plan.failed,
        to_run=len(plan.to_run),
        seconds=plan.seconds,
        calibrated=plan.calibrated,
    )


def guessed_seconds(settings: Mapping[str, Any]) -> float:
    """Return about how long a run takes: all its updates, forward and twice backward."""
    task = make_task(settings, settings["delay"])
    known = CELL_ARITHMETIC.get(settings["cell"])
    gates = _OWN_CELL_GATES if known is None else known.gates
    width = settings["embedding"] or task.input_width
    weights = gates * settings["hidden"] * (settings["hidden"] + width)
    work = 3 * settings["batch"] * weights * _MULTIPLY_ADD
    step = work + (_STEP if settings["cell"] in FUSED else _STEP_OF_OWN_CELL)
    return float(_RUN + settings["updates"] * task.steps * step)
