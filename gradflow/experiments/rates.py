"""Rates of decay: the slope of a logarithm, and what follows from it."""

from __future__ import annotations

import math

import numpy as np

from gradflow.records.base import FloatArray, IntArray

# Slopes closer to 0 than this are round-off of a norm that does not change.
FLAT = 1e-12


def fit_rate(steps: IntArray, ln_norm: FloatArray) -> float | None:
    """Return the least-squares slope of ln ||.|| over t >= T/2, in nats per step.

    The first half is left out because a transient is no rate. Steps at which the norm is zero or
    not a number carry no slope. Where only the last of several steps lies in the second half, as
    when few are reported, the slope is that between the last two.

    Args:
        steps: ascending, from 1.
        ln_norm: natural logarithms at these steps.

    Returns:
        The slope; None where fewer than two usable points are left (T = 1, an all-zero curve).

    >>> fit_rate(np.array([1, 2, 3, 4]), np.log(0.5) * np.array([1.0, 2.0, 3.0, 4.0]))
    -0.6931471805599453
    """
    late = steps >= steps[-1] / 2
    if np.count_nonzero(late) == 1:
        late[-2:] = True
    usable = np.isfinite(ln_norm) & late
    if np.count_nonzero(usable) < 2:
        return None
    t = steps[usable].astype(np.float64)
    t -= t.mean()
    values = ln_norm[usable]
    return float(t @ (values - values.mean()) / (t @ t))


def half_life(rate: float | None) -> float | None:
    """Return -ln 2 / rate in steps; None where the norm does not fall.

    >>> half_life(-math.log(2.0))
    1.0
    """
    if rate is None or rate > -FLAT:
        return None
    return -math.log(2.0) / rate


def report_points(steps: int, points: int | None) -> list[int]:
    """Return the steps to report: all of them, or at most `points`, evenly spaced in log t.

    Beyond 10,000 steps and without a number, at most 1000 points are reported. Early points that
    fall on one step count once.

    >>> report_points(4, None)
    [1, 2, 3, 4]
    >>> report_points(1000, 4)
    [1, 10, 100, 1000]
    """
    count = points or (steps if steps <= 10_000 else 1000)
    if count >= steps:
        return list(range(1, steps + 1))
    if count == 1:
        return [steps]
    spaced = np.unique(np.rint(np.geomspace(1, steps, count)).astype(np.int64))
    return [int(step) for step in spaced]
