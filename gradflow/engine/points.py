"""The steps of a run at which something is measured."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.errors import ShapeError


def measured_points(at: object, steps: int) -> Tensor:
    """Return the steps to measure, ascending and each once; all from 1 to `steps` where None.

    Raises:
        ShapeError: one of them lies outside of the run.

    >>> measured_points([3, 1, 3], 5).tolist()
    [1, 3]
    """
    if at is None:
        return torch.arange(1, steps + 1, device="cpu")
    try:
        given = torch.as_tensor(at, device="cpu")
    except (TypeError, ValueError, RuntimeError):  # texts, None, numbers beyond 64 bits
        given = torch.empty(0, device="cpu")
    if given.dtype == torch.bool or given.is_complex():
        given = torch.empty(0)
    whole: Tensor = given.long().unique()
    # 1.5 is no step, and read as 1 it would be one that was not asked for
    if len(whole) == 0 or whole[0] < 1 or whole[-1] > steps or (given != given.long()).any():
        shown = given.tolist() if given.numel() else at
        raise ShapeError(f"'at' lists steps from 1 to {steps}, the length of x; got {shown}.")
    return whole


def points_within(points: Tensor, start: int, steps: int) -> Tensor:
    """Return which of the steps of a chunk are measured, as indices into it.

    Args:
        points: from `measured_points`.
        start: how many steps come before the chunk.
        steps: how many it has.

    >>> points_within(torch.tensor([1, 4, 6]), 3, 2).tolist()
    [0]
    """
    return points[(points > start) & (points <= start + steps)] - start - 1
