"""Blocks of cotangents with a power of two beside them, so that sums and products stay in range."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.engine.blocks import Norm
from gradflow.engine.log_norms import LN2, log_norm


@dataclass(frozen=True)
class Scaled:
    """`matrix` (batch, width, columns) times 2^`exponent`, one exponent (batch,) per row.

    None stands for a block that nothing reaches: it is zero by structure and costs nothing.
    """

    matrix: Tensor
    exponent: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Scaled:
        """Return a block as it is, with exponent 0."""
        return cls(matrix, torch.zeros(matrix.shape[0], dtype=torch.float64, device=matrix.device))

    def log_norm(self, norm: Norm) -> Tensor:
        """Return ln of the norm of each row's matrix, (batch,), float64; -inf for zero."""
        return log_norm(self.matrix, norm) + LN2 * self.exponent

    def rescaled(self) -> Scaled:
        """Return the same block with its largest entries near 1 where they had left that range.

        Powers of two are exact. The range leaves room to multiply once more and to square.
        """
        size = self.matrix.abs().amax(dim=(-2, -1))
        limit = round(-math.log2(torch.finfo(self.matrix.dtype).tiny))
        bound = 2.0 ** (limit / 8)
        ordinary = (size > 0) & torch.isfinite(size)
        far = ordinary & ((size > bound) | (size < 1.0 / bound))
        if not bool(far.any()):
            return self
        exponent = torch.frexp(size).exponent.clamp(-limit, limit)
        powers = torch.where(far, exponent, 0).tolist()
        factors = _powers_of_two([-float(power) for power in powers], self.matrix)
        return Scaled(self.matrix * factors, self.exponent + self.exponent.new_tensor(powers))


def add(one: Scaled | None, other: Scaled | None) -> Scaled | None:
    """Return the sum of two blocks; the larger exponent of a row serves both."""
    if one is None or other is None:
        return other if one is None else one
    if torch.equal(one.exponent, other.exponent):
        return Scaled(one.matrix + other.matrix, one.exponent)
    # a row of zeros has no exponent of its own
    lowest = torch.full_like(one.exponent, -math.inf)
    exponents = [
        torch.where(block.matrix.flatten(1).any(dim=1), block.exponent, lowest)
        for block in (one, other)
    ]
    top = torch.maximum(*exponents)
    top = torch.where(torch.isneginf(top), 0.0, top)
    shifts = [(exponent - top).tolist() for exponent in exponents]
    first = one.matrix * _powers_of_two(shifts[0], one.matrix)
    return Scaled(first + other.matrix * _powers_of_two(shifts[1], other.matrix), top)


def placed(block: Scaled | None, *, first: int, width: int) -> Scaled | None:
    """Return a block as the rows from `first` on of one that is `width` high, zero elsewhere."""
    if block is None or block.matrix.shape[1] == width:
        return block
    after = width - first - block.matrix.shape[1]
    return Scaled(torch.nn.functional.pad(block.matrix, (0, 0, first, after)), block.exponent)


def rows_of(block: Scaled | None, rows: slice) -> Scaled | None:
    """Return some rows of a block."""
    return None if block is None else Scaled(block.matrix[:, rows], block.exponent)


def _powers_of_two(powers: list[float], like: Tensor) -> Tensor:
    """Return 2^powers as exact factors (batch, 1, 1); 0 for -inf and for what is far below."""
    factors = [0.0 if power < -1100 else math.ldexp(1.0, int(power)) for power in powers]
    return like.new_tensor(factors, dtype=torch.float64).to(like.dtype)[:, None, None]
