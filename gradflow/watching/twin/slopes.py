"""Slopes of gates from their values, which cost next to nothing, where that keeps the digits."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.activations import sigmoid_slope, tanh_slope

_NEAR = 1.0 - 1e-6  # from here on `1 - value` has lost more than 6 of 16 digits


def is_near_one(values: Tensor) -> bool:
    """Return whether a value is so near 1 or -1 that its slope has lost digits: `1 - value`."""
    if not values.numel():
        return False
    low, high = torch.aminmax(values)
    return float(torch.maximum(high, -low)) > _NEAR


def sigmoid_slope_at(before: Tensor, value: Tensor) -> Tensor:
    """Return the slope of a sigmoid, from its value or, where one is nearly 1, its argument.

    >>> before = torch.tensor([0.0, 40.0], dtype=torch.float64)
    >>> sigmoid_slope_at(before, torch.sigmoid(before)).tolist()
    [0.25, 4.248354255291589e-18]
    """
    return sigmoid_slope(before) if is_near_one(value) else value * (1.0 - value)


def tanh_slope_at(before: Tensor, value: Tensor) -> Tensor:
    """Return the slope of tanh, from its value or, where one is nearly 1 or -1, its argument."""
    return tanh_slope(before) if is_near_one(value) else (1.0 - value) * (1.0 + value)
