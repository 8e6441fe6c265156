"""Numbers of a curve by lag: where it has fallen to a thousandth, its half-life, its slope."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
HORIZON_LOG10 = -3.0  # the horizon is where the gradient has fallen to 1e-3 of lag 0
_LEVEL = 1e-9  # nats over all late lags: a smaller fall is rounding


@dataclass(frozen=True)
class Memory:
    """How long a curve lasts: `horizon` and `half_life` in lags, `rate` in nats per lag.

    `horizon` is None where the curve does not fall to 1e-3 within its lags; `half_life` None where
    it does not fall, or by no more than rounding.
    """

    horizon: float | None
    half_life: float | None
    rate: float | None


def memory_of(lags: FloatArray, log10_norm: FloatArray) -> Memory:
    """Return horizon, half-life and rate of a curve by lag, which begins at lag 0.

    The horizon is interpolated on the log curve at the last lag at which it comes down through
    1e-3 of lag 0 (a curve that comes up again has not been forgotten). The rate is the
    least-squares slope over the second half of the lags with a norm.

    >>> lags = np.arange(10.0)
    >>> found = memory_of(lags, -0.5 * lags)
    >>> round(found.horizon, 9), round(found.half_life, 9)
    (6.0, 0.602059991)
    """
    known = ~np.isnan(log10_norm)
    steps, logs = lags[known], log10_norm[known] - log10_norm[known][0]
    return Memory(_horizon(steps, logs), *_half_life(steps, logs))


def _horizon(lags: FloatArray, logs: FloatArray) -> float | None:
    above = np.flatnonzero(logs > HORIZON_LOG10)
    last = int(above[-1])
    if last == len(lags) - 1:
        return None
    here, after = logs[last], logs[last + 1]
    if not math.isfinite(after):
        return float(lags[last + 1])
    share = (here - HORIZON_LOG10) / (here - after)
    return float(lags[last] + share * (lags[last + 1] - lags[last]))


def _half_life(lags: FloatArray, logs: FloatArray) -> tuple[float | None, float | None]:
    finite = np.isfinite(logs)
    steps, values = lags[finite], logs[finite] * math.log(10.0)
    late = steps >= steps[-1] / 2
    if late.sum() < 2:
        late = np.ones_like(late)
    if late.sum() < 2:
        return None, None
    centred = steps[late] - steps[late].mean()
    rate = float((centred * values[late]).sum() / (centred**2).sum())
    falls = rate * (steps[late][-1] - steps[late][0]) < -_LEVEL
    return (-math.log(2.0) / rate if falls else None), rate
