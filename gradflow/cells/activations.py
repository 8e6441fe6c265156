"""Slopes of sigmoid and tanh that keep their digits when the gate is saturated.

The usual forms `s * (1 - s)` and `1 - t * t` cancel: at a = 20 they have lost 9 of 16 digits, at
a = 40 they read 0 although the slope is 4e-18. The forms here lose nothing until the dtype itself
underflows.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sigmoid_slope(preactivation: Tensor) -> Tensor:
    """Return d sigmoid(a)/da = sigmoid(a) sigmoid(-a), elementwise.

    >>> float(sigmoid_slope(torch.tensor(40.0, dtype=torch.float64)))
    4.248354255291589e-18
    """
    return torch.sigmoid(preactivation) * torch.sigmoid(-preactivation)


def tanh_slope(preactivation: Tensor) -> Tensor:
    """Return d tanh(a)/da = sech(a)^2 = 4 sigmoid(2a) sigmoid(-2a), elementwise.

    >>> float(tanh_slope(torch.tensor(0.0, dtype=torch.float64)))
    1.0
    """
    return 4.0 * sigmoid_slope(2.0 * preactivation)
