"""Norms by step or lag, sorted by what a logarithm can say of them: nothing is dropped unseen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradflow.errors import ShapeError
from gradflow.records.base import FloatArray, Json, finite_or_none


@dataclass(frozen=True)
class NormSummary:
    """How many norms are positive, zero, infinite or no number, and how fast the positive fall.

    `log10_slope` is the least-squares slope of log10(norm) over the positive finite norms, per
    step; None where fewer than two different steps have one. `smallest_log10` and
    `largest_log10` are over the same norms. Steps are listed as they were given.
    """

    count: int
    positive: int
    zero: int
    infinite: int
    nan: int
    negative: int
    first_zero_step: float | None
    infinite_steps: tuple[float, ...]
    nan_steps: tuple[float, ...]
    negative_steps: tuple[float, ...]
    smallest_log10: float | None
    largest_log10: float | None
    log10_slope: float | None

    @property
    def smallest_positive(self) -> float | None:
        """The smallest positive norm; 0.0 where it is below what a float can hold."""
        return None if self.smallest_log10 is None else float(10.0**self.smallest_log10)

    @property
    def factor_per_step(self) -> float | None:
        """10^slope: what one step multiplies the norm by, on the fitted line."""
        return None if self.log10_slope is None else float(10.0**self.log10_slope)

    def to_json(self) -> Json:
        """Return the counts and the fit as strict JSON."""
        return {
            "count": self.count,
            "positive": self.positive,
            "zero": self.zero,
            "infinite": self.infinite,
            "nan": self.nan,
            "negative": self.negative,
            "first_zero_step": finite_or_none(self.first_zero_step),
            "infinite_steps": list(self.infinite_steps),
            "nan_steps": list(self.nan_steps),
            "negative_steps": list(self.negative_steps),
            "smallest_log10": finite_or_none(self.smallest_log10),
            "largest_log10": finite_or_none(self.largest_log10),
            "log10_slope": finite_or_none(self.log10_slope),
        }


def log10_of_norms(norms: ArrayLike) -> FloatArray:
    """Return log10 of norms: -inf for zero, inf for infinity, nan for nan and for below zero.

    >>> log10_of_norms([100.0, 0.0, float("inf")]).tolist()
    [2.0, -inf, inf]
    """
    values = np.asarray(norms, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(values)


def summarize_norms(steps: ArrayLike, norms: ArrayLike, *, log10: bool = False) -> NormSummary:
    """Sort norms into positive, zero, infinite, nan and negative, and fit log10 over steps.

    Args:
        steps: the step or lag of each norm, shape (count,).
        norms: the norms, shape (count,); their base-10 logarithms (-inf for zero) with `log10`.
        log10: whether `norms` are logarithms.

    Raises:
        ShapeError: the two are not one-dimensional and of one length.

    >>> summary = summarize_norms([0, 1, 2, 3, 4], [1.0, 0.1, 0.01, 0.0, float("nan")])
    >>> summary.positive, summary.zero, summary.first_zero_step, summary.nan_steps
    (3, 1, 3.0, (4.0,))
    >>> round(summary.log10_slope, 12)
    -1.0
    """
    at, logs, negative = paired_log10(steps, norms, log10=log10)
    positive = np.isfinite(logs)
    zero = np.isneginf(logs)
    nan = np.isnan(logs) & ~negative
    kept = logs[positive]
    return NormSummary(
        count=len(at),
        positive=int(positive.sum()),
        zero=int(zero.sum()),
        infinite=int(np.isposinf(logs).sum()),
        nan=int(nan.sum()),
        negative=int(negative.sum()),
        first_zero_step=float(at[zero].min()) if zero.any() else None,
        infinite_steps=tuple(at[np.isposinf(logs)].tolist()),
        nan_steps=tuple(at[nan].tolist()),
        negative_steps=tuple(at[negative].tolist()),
        smallest_log10=float(kept.min()) if kept.size else None,
        largest_log10=float(kept.max()) if kept.size else None,
        log10_slope=_slope(at[positive], kept),
    )


def paired_log10(
    steps: ArrayLike, norms: ArrayLike, *, log10: bool = False
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return steps, log10 norms and which norms are below zero (and so no norms), all (count,).

    Raises:
        ShapeError: the two are not one-dimensional and of one length.
    """
    at = np.asarray(steps, dtype=np.float64)
    values = np.asarray(norms, dtype=np.float64)
    if at.ndim != 1 or at.shape != values.shape:
        raise ShapeError(
            "steps and norms must be lists of one length, because each norm belongs to a step; "
            f"got shapes {at.shape} and {values.shape}."
        )
    if log10:
        return at, values, np.zeros(at.shape, dtype=bool)
    return at, log10_of_norms(values), values < 0


def _slope(steps: FloatArray, logs: FloatArray) -> float | None:
    """Return the least-squares slope, from centred numbers so that long runs lose no digits."""
    if steps.size < 2 or steps.min() == steps.max():
        return None
    centred = steps - steps.mean()
    return float(centred @ (logs - logs.mean()) / (centred @ centred))
