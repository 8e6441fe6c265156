"""Maps with known Lyapunov exponents, and random networks, as plain torch functions and cells."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gradflow.cells import RNN


def henon(x: Tensor | None, state: Tensor) -> Tensor:
    """Return the next point of Henon's map, x' = 1 - 1.4 x^2 + y, y' = 0.3 x."""
    del x
    first, second = state.unbind(-1)
    return torch.stack([1 - 1.4 * first**2 + second, 0.3 * first], dim=-1)


def logistic(x: Tensor | None, state: Tensor) -> Tensor:
    """Return the next value of the logistic map at r = 4."""
    del x
    return 4 * state * (1 - state)


def multiply(x: Tensor, state: Tensor) -> Tensor:
    """Return x s, with x (batch, n^2) the entries of a matrix for each row."""
    size = state.shape[-1]
    matrix = x.unflatten(-1, (size, size))
    return (matrix @ state.unsqueeze(-1)).squeeze(-1)


def random_networks(size: int, gain: float, number: int, *, seed: int = 0) -> list[RNN]:
    """Return tanh networks h' = tanh(W h), entries of W normal with variance gain^2 / size.

    With h = tanh(x) they are the networks x' = W tanh(x) of Sompolinsky, Crisanti & Sommers
    (1988) in discrete time; a change of variables leaves the exponents as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    cells = []
    for _ in range(number):
        cell = RNN(1, size, bias=False, dtype=torch.float64)
        drawn = torch.randn(size, size, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            cell.weight_hh.copy_(gain / math.sqrt(size) * drawn)
        cells.append(cell)
    return cells


def random_hidden(rows: int, size: int, *, seed: int = 1) -> Tensor:
    """Return hidden states in (-1, 1), (rows, size)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.tanh(torch.randn(rows, size, generator=generator, dtype=torch.float64))


def mean_field_exponent(gain: float) -> float:
    """Return lambda_1 of x' = W tanh(x) with entries N(0, gain^2 / N) as N grows without bound.

    Each unit is then a sum of many independent terms: normal, of variance v = gain^2 <tanh^2 x>;
    the square of a small change is multiplied by gain^2 <sech^4 x> a step, by the same argument.
    Averages are sums over a fine grid, which converge faster than any power of its step.
    """
    z = np.linspace(-12, 12, 4001)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    variance = gain**2
    for _ in range(1000):
        variance = gain**2 * float(weight @ np.tanh(math.sqrt(variance) * z) ** 2)
    return math.log(gain**2 * float(weight @ np.cosh(math.sqrt(variance) * z) ** -4)) / 2
