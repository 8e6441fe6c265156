"""Gradients of what nothing can differentiate, by finite differences of fourth order.

    f'(v) = [8 (f(v+d) - f(v-d)) - (f(v+2d) - f(v-2d))] / (12 d)   +   d^4 f'''''/30

(Abramowitz & Stegun 1964, table 25.2). With d = 5e-4 the truncation is some 1e-12 for weights of
order 1, and rounding adds about 1e-16 |L| / d, another 1e-12. A plain central difference with its
best step would leave 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

STEP = 5e-4
MOST_ENTRIES = 4000  # four runs each


def finite_differences(
    function: Callable[[list[Tensor]], float], at: Sequence[Tensor]
) -> list[Tensor]:
    """Return the derivative of a scalar function by every entry of its arguments.

    Args:
        function: called with a list of tensors shaped as `at`; it must not keep or change them.
        at: where, float64.

    >>> cube = lambda tensors: float((tensors[0] ** 3).sum())
    >>> (slope,) = finite_differences(cube, [torch.tensor([2.0], dtype=torch.float64)])
    >>> round(float(slope), 9)
    12.0
    """
    found = []
    for index, tensor in enumerate(at):
        slopes = torch.zeros(tensor.shape, dtype=tensor.dtype)
        for entry in range(tensor.numel()):
            slopes.view(-1)[entry] = _slope(function, at, index, entry)
        found.append(slopes)
    return found


def _slope(
    function: Callable[[list[Tensor]], float], at: Sequence[Tensor], index: int, entry: int
) -> float:
    def moved(by: float) -> float:
        tensors = [tensor.clone(memory_format=torch.contiguous_format) for tensor in at]
        tensors[index].view(-1)[entry] += by
        return function(tensors)

    near = moved(STEP) - moved(-STEP)
    far = moved(2 * STEP) - moved(-2 * STEP)
    return (8 * near - far) / (12 * STEP)
