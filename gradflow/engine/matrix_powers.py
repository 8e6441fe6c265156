"""Powers of a matrix by repeated squaring, each a matrix times a power of two."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.engine.log_norms import LN2, log_norm


def scale_by_powers_of_two_(matrix: Tensor, shifts: Sequence[int]) -> Tensor:
    """Multiply each batch row of `matrix` (batch, rows, columns) by 2**shift, in place; exact.

    torch.ldexp and torch.exp2 are not exact in every dtype; Python's ldexp is. A shift that is no
    number of the dtype is taken in two halves.
    """
    halves = [shift // 2 for shift in shifts]
    for part in (halves, [shift - half for shift, half in zip(shifts, halves, strict=True)]):
        factors = [math.ldexp(1.0, shift) for shift in part]
        scale = torch.tensor(factors, dtype=matrix.dtype, device=matrix.device)
        matrix.mul_(scale[:, None, None])
    return matrix


Scaled = tuple[Tensor, list[int]]
"""(matrix, exponents): each batch row stands for matrix * 2**exponent."""


def scaled_to_unit(matrix: Tensor, exponents: Sequence[int]) -> Scaled:
    """Return the same with a Frobenius norm between about 1/2 and 1, where it is not zero."""
    logs = log_norm(matrix).tolist()  # squares of 1e-200 would be zero
    shifts = [-math.floor(log / LN2) - 1 if math.isfinite(log) else 0 for log in logs]
    unit = scale_by_powers_of_two_(matrix.clone(), shifts)
    return unit, [e - shift for e, shift in zip(exponents, shifts, strict=True)]


class MatrixPowers:
    """K^(2^j) for K = steps[-1] @ ... @ steps[0], made when first asked for, in float64.

    A square doubles the relative error of its factor, so after j squarings it is about 2^j units
    of round-off, as after 2^j steps: float32 has none to spare, and the squares are float64.

    Args:
        steps: one or more matrices, (batch, state, state) each.
    """

    def __init__(self, steps: Sequence[Tensor]) -> None:
        product, exponents = scaled_to_unit(steps[0].to(torch.float64), [0] * len(steps[0]))
        for step in steps[1:]:
            product, exponents = scaled_to_unit(step.to(torch.float64) @ product, exponents)
        self._powers: list[Scaled] = [(product, exponents)]

    def __call__(self, j: int) -> Scaled:
        """Return K^(2^j)."""
        while len(self._powers) <= j:
            matrix, exponents = self._powers[-1]
            self._powers.append(scaled_to_unit(matrix @ matrix, [2 * e for e in exponents]))
        return self._powers[j]
