"""From the rows that workers returned to runs, in the order of the grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from gradflow.errors import RunFolderError
from gradflow.records.base import Json, array_from_list
from gradflow.records.benchmark_runs import (
    DIVERGED,
    DONE,
    FAILED,
    BenchmarkRun,
    FlowProfile,
    LearningCurve,
)


class Stored(Protocol):
    """What a sweep keeps of a task."""

    @property
    def key(self) -> str:
        """The sha256 of the settings."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the run."""

    @property
    def status(self) -> str:
        """done or failed."""

    @property
    def reason(self) -> str | None:
        """Why it failed."""

    @property
    def row(self) -> Mapping[str, Any] | None:
        """What `train_one` returned."""


def read_runs(rows: Iterable[Stored], cells: Mapping[str, str]) -> list[BenchmarkRun]:
    """Return a run for each row.

    Args:
        rows: of a sweep; each is done or failed.
        cells: a cell's name in a run's settings to the name that the user gave.

    Raises:
        RunFolderError: a row is not as `train_one` returns it.
    """
    runs = []
    for stored in rows:
        try:
            runs.append(_read(stored, cells))
        except (KeyError, TypeError, AttributeError) as problem:
            raise RunFolderError(
                f"the stored row of key {stored.key} is no run of this benchmark: it was changed, "
                f"or made by other code ({type(problem).__name__}: {problem}). Delete the row from "
                "sweep.sqlite, or name another folder with --out."
            ) from None
    return runs


def _read(stored: Stored, cells: Mapping[str, str]) -> BenchmarkRun:
    settings = stored.settings
    outcome = _failed(stored.reason) if stored.row is None else _trained(stored.row)
    return BenchmarkRun(
        key=stored.key,
        cell=cells.get(settings["cell"], settings["cell"]),
        **{name: settings[name] for name in ("init", "hidden", "delay", "learning_rate", "draw")},
        **outcome,
    )


def _failed(reason: str | None) -> Json:
    """Return what is known of a run that crashed."""
    return {
        "status": FAILED,
        "reason": reason,
        "stopped": None,
        "best_update": None,
        "best_loss": None,
        "best_accuracy": None,
        "final_loss": None,
        "gradient_norms": {},
        "costs": {},
    }


def _trained(row: Mapping[str, Any]) -> Json:
    """Return what a row tells, diverged or not."""
    if not row["data"].keys() >= {"fingerprint", "shared"}:  # compared with those of other rows
        raise KeyError("data")
    best = next((point for point in row["curve"] if point["update"] == row["best_update"]), None)
    return {
        "status": DIVERGED if row["stopped"] == "diverged" else DONE,
        "reason": row["reason"],
        "stopped": row["stopped"],
        "best_update": row["best_update"],
        "best_loss": None if best is None else best["loss"],
        "best_accuracy": None if best is None else best["accuracy"],
        "final_loss": row["curve"][-1]["loss"] if row["curve"] else None,
        "gradient_norms": row["gradient_norms"] or {},
        "costs": row["costs"],
        "test": row["test"],
        "curve": _curve(row["curve"]),
        "profiles": tuple(FlowProfile.from_json(profile) for profile in row["profiles"]),
    }


def _curve(points: list[Json]) -> LearningCurve | None:
    if not points:
        return None

    def column(name: str) -> Any:
        return array_from_list([point[name] for point in points], missing=np.nan)

    return LearningCurve(
        updates=np.array([point["update"] for point in points], dtype=np.int64),
        train_loss=column("train_loss"),
        loss=column("loss"),
        recall_loss=column("recall_loss"),
        accuracy=column("accuracy"),
    )
