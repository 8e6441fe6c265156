"""How a call's tensors lie: batch first, without a batch, packed, or one step of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence


@dataclass(frozen=True)
class Layout:
    """Brings sequences to (time, rows, width) and states to (cells, rows, width).

    Rows of a packed call are in the order in which it is packed, longest first.
    """

    batch_first: bool = False
    unbatched: bool = False
    is_step: bool = False
    batch_sizes: Tensor | None = None
    sorted_indices: Tensor | None = None

    @classmethod
    def of_layer(cls, x: Tensor | PackedSequence, *, batch_first: bool) -> Layout:
        """Return how a call of torch's layer on `x` lies."""
        if isinstance(x, PackedSequence):
            return cls(batch_sizes=x.batch_sizes, sorted_indices=x.sorted_indices)
        return cls(batch_first=batch_first and x.dim() == 3, unbatched=x.dim() == 2)

    @classmethod
    def of_cell(cls, x: Tensor) -> Layout:
        """Return how one step of a cell lies."""
        return cls(is_step=True, unbatched=x.dim() == 1)

    @property
    def lengths(self) -> Tensor | None:
        """How many steps each row has, (rows,); None where all have as many."""
        if self.batch_sizes is None:
            return None
        rows = torch.arange(int(self.batch_sizes[0]), device="cpu")
        found = (self.batch_sizes.unsqueeze(1) > rows).sum(dim=0)
        return None if bool((found == len(self.batch_sizes)).all()) else found

    def sequence(self, values: Tensor) -> Tensor:
        """Return values of every step as (time, rows, width), zero in padding."""
        if self.batch_sizes is not None:
            packed = PackedSequence(values, self.batch_sizes)
            padded: Tensor = pad_packed_sequence(packed)[0]
            return padded
        if self.is_step:
            return values.reshape(1, -1, values.shape[-1])
        if self.unbatched:
            return values.unsqueeze(1)
        return values.transpose(0, 1) if self.batch_first else values

    def state(self, values: Tensor) -> Tensor:
        """Return a state as (cells, rows, width)."""
        if self.is_step:
            return values.reshape(1, -1, values.shape[-1])
        if self.unbatched:
            return values.unsqueeze(1)
        order = self.sorted_indices
        return values if order is None else values.index_select(1, order.to(values.device))


def parts_of(state: Any) -> tuple[Tensor, ...]:
    """Return the parts of a state, none where it is None.

    Raises:
        TypeError: it is neither a tensor nor a tuple of them.
    """
    if state is None:
        return ()
    parts = (state,) if isinstance(state, Tensor) else tuple(state)
    if not all(isinstance(part, Tensor) for part in parts):
        raise TypeError("a state is a tensor, or a tuple of them")
    return parts
