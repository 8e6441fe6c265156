"""The Kaplan-Yorke dimension of an attractor, from its Lyapunov exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence


def kaplan_yorke_dimension(exponents: Sequence[float], *, state_size: int) -> float | None:
    """Return j + (lambda_1 + ... + lambda_j) / |lambda_{j+1}|.

    j is the largest number of leading exponents whose sum is not negative (Kaplan & Yorke 1979;
    Frederickson, Kaplan, Yorke & Yorke 1983). A volume of so many dimensions does not shrink.

    Args:
        exponents: in nats per step, the largest first; -inf is allowed.
        state_size: how many exponents there are in all.

    Returns:
        The dimension: 0 where all exponents are negative, `state_size` where no volume shrinks;
        None where the exponents given do not reach far enough down.

    >>> round(kaplan_yorke_dimension([0.41922, -1.62319], state_size=2), 4)
    1.2583
    """
    total = 0.0
    for index, exponent in enumerate(exponents):
        if total + exponent < 0.0:
            return index + total / abs(exponent)
        total += exponent
    if math.isnan(total):
        return None
    return float(state_size) if len(exponents) == state_size else None
