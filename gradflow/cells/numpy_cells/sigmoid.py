"""The sigmoid, written so that neither tail overflows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + e^-v) elementwise.

    With e = exp(-|v|), which lies in [0, 1], the value is 1 / (1 + e) for v >= 0 and
    e / (1 + e) for v < 0. The exponent is never positive, so nothing overflows, and the left tail
    keeps its relative accuracy down to the smallest subnormal number, where the copy-book
    expression first warns and then divides by infinity.

    Args:
        values: pre-activations, any shape, floating point.

    Returns:
        Same shape and dtype, in [0, 1]; 0 and 1 are reached by rounding only. NaN stays NaN.

    >>> sigmoid(np.array([-1e308, 0.0, 1e308])).tolist()
    [0.0, 0.5, 1.0]
    """
    values = np.asarray(values)
    decayed = np.exp(-np.abs(values))
    numerator = np.where(values >= 0, np.ones_like(decayed), decayed)
    return np.asarray(numerator / (1 + decayed))


def sigmoid_slope(gate: Array) -> Array:
    """Return the sigmoid's derivative from its value: s' = s (1 - s).

    >>> sigmoid_slope(np.array([0.5])).tolist()
    [0.25]
    """
    return gate * (1 - gate)
