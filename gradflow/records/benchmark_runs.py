"""One run of a benchmark: its curve, its gradients, its costs, and why it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gradflow.records.base import FloatArray, IntArray, Json, array_from_list, finite_list

DONE, DIVERGED, FAILED = "done", "diverged", "failed"


@dataclass(frozen=True)
class Spread:
    """A number over seeds: its mean and its ends."""

    mean: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self | None:
        """Return the spread of some numbers, None of none.

        >>> Spread.of([1.0, 3.0])
        Spread(mean=2.0, least=1.0, greatest=3.0)
        """
        if not values:
            return None
        least, greatest = min(values), max(values)
        mean = math.fsum(values) / len(values)  # of equal numbers it may round past them
        return cls(min(max(mean, least), greatest), least, greatest)


@dataclass(frozen=True)
class LearningCurve:
    """Scores on the validation set after so many updates; `train_loss` is nan at the start.

    `loss` is over all steps that the loss is on, `recall_loss` over the answering ones.
    """

    updates: IntArray
    train_loss: FloatArray
    loss: FloatArray
    recall_loss: FloatArray
    accuracy: FloatArray

    def to_json(self) -> Json:
        """Return lists, a number that is missing as null."""
        names = ("train_loss", "loss", "recall_loss", "accuracy")
        lists = {name: finite_list(getattr(self, name)) for name in names}
        return {"updates": self.updates.tolist(), **lists}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read it back."""
        return cls(
            updates=np.array(document["updates"], dtype=np.int64),
            **{
                name: array_from_list(document[name], missing=np.nan)
                for name in ("train_loss", "loss", "recall_loss", "accuracy")
            },
        )


@dataclass(frozen=True)
class FlowProfile:
    """log10 ||dL/ds_t|| of each part of the state at t = 1 ... T, at a moment of training.

    `moment` is start, middle or end, after `update` updates; -inf is an exact zero. `recall_norms`
    are those of the loss on the answering steps alone. `loss` is that of the probed batch, and
    `loss_error` how far the layer's own run is from the unrolled one.
    """

    moment: str
    update: int
    loss: float | None
    loss_error: float | None
    log10_norms: Mapping[str, FloatArray]
    recall_norms: Mapping[str, FloatArray]

    def to_json(self) -> Json:
        """Return the profile; an exact zero is null."""
        return {
            "moment": self.moment,
            "update": self.update,
            "loss": self.loss,
            "loss_error": self.loss_error,
            **{
                name: {part: finite_list(values) for part, values in getattr(self, name).items()}
                for name in ("log10_norms", "recall_norms")
            },
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read it back."""
        norms = {
            name: {
                part: array_from_list(values, missing=-np.inf)
                for part, values in document[name].items()
            }
            for name in ("log10_norms", "recall_norms")
        }
        return cls(**{**document, **norms})


@dataclass(frozen=True)
class BenchmarkRun:
    """One run. `status` is done, diverged (`reason` says how) or failed (it crashed).

    `stopped` says what ended training: updates, patience, solved or diverged. `final_loss` is the
    last validation loss, `best_*` the best one and what belongs to it. `costs` and
    `gradient_norms` (quantiles before clipping) are empty where it failed. `test` (loss,
    recall_loss, accuracy), `curve` and `profiles` are kept for chosen learning rates alone.
    """

    key: str
    cell: str
    init: str
    hidden: int
    delay: int
    learning_rate: float
    draw: int
    status: str
    reason: str | None
    stopped: str | None
    best_update: int | None
    best_loss: float | None
    best_accuracy: float | None
    final_loss: float | None
    gradient_norms: Mapping[str, float]
    costs: Mapping[str, float]
    test: Mapping[str, float] | None = None
    curve: LearningCurve | None = None
    profiles: tuple[FlowProfile, ...] = ()

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells its model from all others."""
        return (self.cell, self.init, self.hidden)

    def to_json(self) -> Json:
        """Return the run as strict JSON."""
        curve = None if self.curve is None else self.curve.to_json()
        profiles = [profile.to_json() for profile in self.profiles]
        plain = {name: getattr(self, name) for name in _PLAIN}
        maps = {name: dict(getattr(self, name)) for name in ("gradient_norms", "costs")}
        test = None if self.test is None else dict(self.test)
        return {**plain, **maps, "test": test, "curve": curve, "profiles": profiles}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.runs` back."""
        curve = document["curve"]
        return cls(
            **{
                **document,
                "curve": None if curve is None else LearningCurve.from_json(curve),
                "profiles": tuple(FlowProfile.from_json(one) for one in document["profiles"]),
            }
        )


_PLAIN = (
    "key",
    "cell",
    "init",
    "hidden",
    "delay",
    "learning_rate",
    "draw",
    "status",
    "reason",
    "stopped",
    "best_update",
    "best_loss",
    "best_accuracy",
    "final_loss",
)
