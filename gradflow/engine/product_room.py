"""Memory of a running product: two rooms that are multiplied into each other, step by step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gradflow.cells.protocol import StepFactors


class StepFactor(NamedTuple):
    """One step of `StepFactors`; `whole` where the matrix reads all rows and nothing is kept."""

    matrix: Tensor
    keep: Tensor | None
    whole: bool = False


class Room:
    """Memory for the product, (batch, state, columns), and the views of it that a step needs.

    One batch row is multiplied as a plain matrix, which is cheaper than a batch of one.
    """

    def __init__(self, whole: Tensor) -> None:
        self.whole = whole
        self.flat = whole.view(whole.shape[0], -1)
        self._one = len(whole) == 1
        self._target = whole[0] if self._one else whole
        self._product = torch.mm if self._one else torch.bmm
        self._read = self._kept = self._parts = self._target

    def fit(self, factors: StepFactors) -> None:
        """Cut the views that these factors multiply and write."""
        read, kept, parts = self.whole[:, factors.read], self.whole, self.whole
        if factors.keep is not None and factors.kept is not None:
            kept = self.whole[:, factors.kept].unsqueeze(1)
            parts = self.whole.unflatten(1, (factors.keep.shape[2], -1))
        views = (read, kept, parts)
        self._read, self._kept, self._parts = (v[0] for v in views) if self._one else views

    def multiply(self, factor: StepFactor, *, out: Room) -> None:
        """Write factor @ self into the other room."""
        if factor.whole:
            torch.bmm(factor.matrix, self.whole, out=out.whole)
            return
        self._product(factor.matrix, self._read, out=out._target)
        if factor.keep is not None:
            out._parts.addcmul_(factor.keep, self._kept)


def by_step(factors: StepFactors, dtype: torch.dtype) -> list[StepFactor]:
    """Return each step's factor, without the batch axis where there is one row."""
    matrix = factors.matrix.to(dtype)
    one = matrix.shape[1] == 1
    matrices = (matrix.squeeze(1) if one else matrix).unbind(0)
    if factors.keep is None:
        return [StepFactor(matrix, None) for matrix in matrices]
    keep = factors.keep.to(dtype)
    keeps = (keep.squeeze(1) if one else keep).unbind(0)
    return [StepFactor(matrix, keep) for matrix, keep in zip(matrices, keeps, strict=True)]
