"""Cells of a user's own, for the benchmark."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Leaky(nn.Module):
    """h' = tanh(W x + U h), written anew."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.read = nn.Linear(input_size, hidden_size)
        self.turn = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        return torch.tanh(self.read(x) + self.turn(h))


class Dropping(Leaky):
    """The same with dropout on the state, which draws while it trains."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        return nn.functional.dropout(super().forward(x, h), 0.2, self.training)


class Fixed(nn.Module):
    """A cell that is 3 wide whatever it is asked for."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, 3
        self.cell = nn.GRUCell(input_size, 3)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        return self.cell(x, h)


class Breaking(Leaky):
    """A cell that fails in its backward pass, which no check before training sees."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        new = super().forward(x, h)
        if new.requires_grad and self.training:
            raise RuntimeError("the flux capacitor is empty")
        return new


def make_fixed(input_size: int) -> nn.Module:
    """Return the cell of its own width."""
    return Fixed(input_size)
