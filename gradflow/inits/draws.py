"""Random matrices, drawn in float64 so that one seed gives the same numbers in every dtype."""

from __future__ import annotations

import math

import torch
from torch import Tensor

Generator = torch.Generator | None


def uniform(rows: int, columns: int, bound: float, generator: Generator) -> Tensor:
    """Return entries uniform in (-bound, bound), (rows, columns)."""
    empty = torch.empty(rows, columns, dtype=torch.float64, device=_device(generator))
    return empty.uniform_(-bound, bound, generator=generator)


def normal(rows: int, columns: int, deviation: float, generator: Generator) -> Tensor:
    """Return normal entries of mean 0, (rows, columns)."""
    empty = torch.empty(rows, columns, dtype=torch.float64, device=_device(generator))
    return empty.normal_(0.0, deviation, generator=generator)


def xavier(rows: int, columns: int, generator: Generator) -> Tensor:
    """Return Glorot & Bengio's (2010) uniform draw: variance 2 / (fan in + fan out)."""
    return uniform(rows, columns, math.sqrt(6.0 / (rows + columns)), generator)


def he(rows: int, columns: int, generator: Generator) -> Tensor:
    """Return He et al.'s (2015) normal draw: variance 2 / fan in."""
    return normal(rows, columns, math.sqrt(2.0 / columns), generator)


def orthogonal(rows: int, columns: int, generator: Generator) -> Tensor:
    """Return a matrix whose shorter side is orthonormal, uniform over all such (Haar measure).

    QR of a Gaussian matrix, with the signs of R's diagonal divided out (Mezzadri 2007, section 5).
    """
    tall = normal(max(rows, columns), min(rows, columns), 1.0, generator)
    q, r = torch.linalg.qr(tall)
    matrix: Tensor = q * torch.sign(r.diagonal())
    return matrix if rows >= columns else matrix.mT


def _device(generator: Generator) -> torch.device:
    """Return where to draw: on the generator's device, on the CPU without one."""
    return torch.device("cpu") if generator is None else generator.device
