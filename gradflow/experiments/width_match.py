"""Which width gives a cell as many parameters as another network has?

A total grows strictly with the hidden width, so the integers around the target are found by
bisection, and the nearer of the two is the optimum over all widths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gradflow.errors import SettingError
from gradflow.experiments.parameter_counts import total_parameters
from gradflow.records.params import Architecture, WidthMatch

Count = Callable[[Architecture], int]


def match_width(
    target: int,
    template: Architecture,
    *,
    biases: int | None = 2,
    count: Count | None = None,
) -> WidthMatch:
    """Find the hidden width whose total is nearest to `target`; of two as near, the narrower.

    Args:
        target: the number of parameters to come near to, at least 1.
        template: everything but the width: cell, inputs, layers, directions, projection, head.
        biases: bias vectors per gate, for the total by formula.
        count: another way to count an architecture, such as building it; must grow with width.

    Returns:
        WidthMatch, with the totals of both neighbouring widths.

    Raises:
        SettingError: the target is below 1.

    >>> found = match_width(71680, Architecture("gru", 10, 1))
    >>> found.architecture.hidden_size, found.parameters
    (149, 71967)
    """
    if target < 1:
        raise SettingError(f"the target must be at least 1 parameter; got {target}.")

    def total(width: int) -> int:
        candidate = replace(template, hidden_size=width)
        if count is not None:
            return count(candidate)
        return total_parameters(candidate, biases=biases or 0)

    narrowest = template.projection + 1  # torch wants proj_size < hidden_size
    below = _widest_within(target, total, narrowest)
    width = below if target - total(below) <= total(below + 1) - target else below + 1
    return WidthMatch(
        architecture=replace(template, hidden_size=width),
        target=target,
        parameters=total(width),
        biases=biases,
        narrower=total(width - 1) if width > narrowest else None,
        wider=total(width + 1),
    )


def _widest_within(target: int, total: Callable[[int], int], narrowest: int) -> int:
    """Return the widest width whose total does not exceed the target, `narrowest` at least."""
    low, high = narrowest, narrowest + 1
    while total(high) <= target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle) <= target else (low, middle)
    return low
