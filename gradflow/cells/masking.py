"""Lengths of padded sequences: which steps are a sample's own, and what its last one holds.

A batch is (time, batch, ...): sample b owns the steps 0 to `lengths[b]` - 1, what follows is
padding. A number of the padding never takes part in a result: it is replaced before it is used, so
that not even a nan there can reach a value or a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.errors import ShapeError

Lengths = Tensor | Sequence[int]


def require_lengths(lengths: Lengths, *, steps: int, batch: int) -> Tensor:
    """Return lengths as an int64 tensor (batch,).

    Args:
        lengths: a whole number for each sample.
        steps: the padded length.
        batch: how many samples there are.

    Raises:
        ShapeError: not one whole number per sample, or one outside 1 to `steps`.
    """
    given = _read(lengths)
    real = given.dtype.is_floating_point or given.dtype.is_complex
    if real or given.dtype == torch.bool or given.shape != (batch,):
        raise ShapeError(
            f"lengths must be a whole number for each of the {batch} samples; got shape "
            f"{tuple(given.shape)} of {given.dtype}."
        )
    numbers = given.to(torch.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if batch else (1, steps)
    if low < 1 or high > steps:
        raise ShapeError(
            f"lengths must lie between 1 and {steps}, the steps of the padded batch, because a "
            f"sample without a step has no state; got {low if low < 1 else high}."
        )
    return numbers


def length_mask(lengths: Lengths, steps: int) -> Tensor:
    """Return which steps are a sample's own, (time, batch), bool.

    Raises:
        ShapeError: see `require_lengths`.

    >>> length_mask([3, 1], 3).int().tolist()
    [[1, 1], [1, 0], [1, 0]]
    """
    counts = _read(lengths)
    counts = require_lengths(counts, steps=steps, batch=counts.numel())
    return torch.arange(steps, device=counts.device).unsqueeze(1) < counts


def _read(lengths: object) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths
    try:
        # on the CPU whatever torch's default device is: the numbers are read at once
        return torch.as_tensor(lengths, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise ShapeError(
            "lengths must be a whole number for each sample, as a list or a tensor; "
            f"got {str(lengths)[:60]} ({type(lengths).__name__})."
        ) from None


def without_padding(values: Tensor, mask: Tensor) -> Tensor:
    """Return values (time, batch, ...) with 0 at every padded step, whatever stood there."""
    wide = mask.to(values.device).reshape(*mask.shape, *[1] * (values.dim() - 2))
    return torch.where(wide, values, torch.zeros((), dtype=values.dtype, device=values.device))


def last_own_step(values: Tensor, lengths: Lengths) -> Tensor:
    """Return what stands at each sample's own last step, (batch, ...).

    Args:
        values: (time, batch, ...), such as the output of a layer.
        lengths: a whole number for each sample.

    Raises:
        ShapeError: see `require_lengths`.

    >>> last_own_step(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), [2, 1]).tolist()
    [3.0, 2.0]
    """
    steps, batch = values.shape[:2]
    numbers = require_lengths(lengths, steps=steps, batch=batch).to(values.device)
    return values[numbers - 1, torch.arange(batch, device=values.device)]
