"""Many numbers told by a few: quantiles over units and steps, and one number for each draw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gradflow.records.base import FloatArray, Json, finite_or_none

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of a `Distribution`."""


@dataclass(frozen=True)
class Distribution:
    """A distribution: its mean, its ends and its quantiles at `LEVELS`."""

    mean: float
    least: float
    greatest: float
    quantiles: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return self.quantiles[LEVELS.index(0.5)]

    @classmethod
    def of(cls, values: FloatArray) -> Self:
        """Return the distribution of an array's entries."""
        flat = np.asarray(values, dtype=np.float64).ravel()
        return cls(
            mean=float(flat.mean()),
            least=float(flat.min()),
            greatest=float(flat.max()),
            quantiles=tuple(float(value) for value in np.quantile(flat, LEVELS)),
        )

    def to_json(self) -> Json:
        """Return strict JSON; an infinite time constant (a gate that rounds to 1) is null."""
        return {
            "mean": finite_or_none(self.mean),
            "least": finite_or_none(self.least),
            "greatest": finite_or_none(self.greatest),
            "quantiles": [finite_or_none(value) for value in self.quantiles],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read it back; null is infinity."""
        plain = {key: _number(document[key]) for key in ("mean", "least", "greatest")}
        return cls(**plain, quantiles=tuple(_number(value) for value in document["quantiles"]))


@dataclass(frozen=True)
class PerSeed:
    """One number for each draw; None where a draw has none."""

    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The numbers that there are."""
        return [value for value in self.values if value is not None]

    @property
    def mean(self) -> float | None:
        """The mean, None where any is missing."""
        return sum(self.known) / len(self.known) if self.complete else None

    @property
    def median(self) -> float | None:
        """The middle draw (of an even number the lower); a missing number counts as the largest."""
        ordered = sorted(self.known)
        middle = (len(self.values) - 1) // 2
        return ordered[middle] if middle < len(ordered) else None

    @property
    def complete(self) -> bool:
        """True where every draw has its number."""
        return None not in self.values and bool(self.values)


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)
