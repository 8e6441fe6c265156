"""Benchmarks that take seconds: few sequences, narrow cells, few updates."""

from __future__ import annotations

from typing import Any

from gradflow.experiments.benchmark.copy_task import CopyTask
from gradflow.experiments.benchmark.grid import Grid
from gradflow.records.benchmark import WIDTH, BenchmarkModel
from gradflow.settings.benchmark import BenchmarkSettings

SIZES = {"train_size": 120, "validation_size": 40, "test_size": 40}
SHORT = {"updates": 6, "evaluate_every": 2, "batch": 32, "patience": 100, "seeds": 1}


def settings(**values: Any) -> BenchmarkSettings:
    """Return settings of a small signal benchmark."""
    usual: dict[str, Any] = {"task": "signal", "delay": (6,), "cell": "lstm", "hidden": 4}
    return BenchmarkSettings(**{**usual, "learning_rate": 0.01, **SIZES, **SHORT, **values})


def run_of(cell: str = "lstm", init: str = "torch-default", **values: Any) -> dict[str, Any]:
    """Return the settings of one small run."""
    whole = settings(cell=cell, init=init, **values)
    model = BenchmarkModel(cell, init, whole.hidden, 0, (WIDTH,))
    return next(Grid(whole, (), (model,), (), 0).runs())


def copy_task(delay: int = 3, symbols: int = 2, alphabet: int = 4) -> CopyTask:
    """Return a small copy task."""
    return CopyTask(delay=delay, symbols=symbols, alphabet=alphabet)
