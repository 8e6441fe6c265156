"""Patterns: which entries of a matrix are not zero, as ones and zeros.

A product of two patterns counts the paths from an entry to another; a path more or less makes no
difference, so it is made a pattern again. Counts are positive and never cancel.
"""

from __future__ import annotations

import torch
from torch import Tensor


def pattern_of(matrix: Tensor) -> Tensor:
    """Return 1 where the matrix has an entry, 0 where it is zero; a nan is an entry."""
    return (matrix != 0).to(matrix.dtype)


def reached_through(step: Tensor, entries: Tensor) -> Tensor:
    """Return the pattern of where a step's entries lead from where `entries` are.

    >>> reached_through(torch.tensor([[2.0, -2.0], [0.0, 0.0]]), torch.ones(2, 1)).tolist()
    [[1.0], [0.0]]
    """
    return pattern_of(torch.matmul(pattern_of(step), pattern_of(entries)))
