"""Sums of matrices whose rows are scaled by coefficients that change from step to step."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class RowSums:
    """`out[t, b, j] = sum_k coefficients[t, b, j, k] * matrices[k, j]`, for many steps in one call.

    Each row j is one small product, (steps * batch, terms) with (terms, width), so a combined
    matrix costs about one pass over memory, and not one per term. Where there are more rows of
    coefficients than of the matrices, row j stands for row j modulo the matrices' rows.

    Args:
        coefficients: (time, batch, rows, terms), contiguous.
        matrices: (terms, rows, width) for all batch rows, or (batch, terms, rows, width).
    """

    def __init__(self, coefficients: Tensor, matrices: Tensor) -> None:
        self._coefficients = coefficients
        self._shared = matrices.dim() == 3
        self._width = matrices.shape[-1]
        self._terms = matrices.transpose(-3, -2)  # (..., rows, terms, width)
        self._groups = coefficients.shape[2] // matrices.shape[-2]
        if not self._shared:
            self._terms = self._terms.repeat(1, self._groups, 1, 1).flatten(0, 1)

    def steps(self, first: int, last: int, room: Tensor | None = None) -> Tensor:
        """Return the sums of steps first to last - 1, (steps, batch, rows, width).

        Args:
            first, last: the steps, from `first` to before `last`.
            room: flat memory to put them into, where it is large enough.
        """
        part = self._coefficients[first:last]
        time, batch, rows, terms = part.shape
        if self._shared:
            left = part.permute(2, 0, 1, 3).reshape(rows, time * batch, terms)
            sums = take_room(room, (rows, time * batch, self._width), like=part)
            each = rows // self._groups
            for group in range(0, rows, each):
                inside = slice(group, group + each)
                torch.bmm(left[inside], self._terms, out=sums[inside])
            return sums.view(rows, time, batch, self._width).permute(1, 2, 0, 3)
        left = part.permute(1, 2, 0, 3).reshape(batch * rows, time, terms)
        sums = take_room(room, (batch * rows, time, self._width), like=part)
        torch.bmm(left, self._terms, out=sums)
        return sums.view(batch, rows, time, self._width).permute(2, 0, 1, 3)


def take_room(room: Tensor | None, shape: tuple[int, ...], *, like: Tensor) -> Tensor:
    """Return memory of this shape, of `room` where it is large enough.

    Fresh memory has to be mapped page by page when it is first touched, which can take as long as
    what is computed into it.
    """
    size = math.prod(shape)
    if room is None or room.numel() < size or room.dtype != like.dtype:
        return like.new_empty(shape)
    return room[:size].view(shape)
