"""Modules as users write them: cells, what only looks like one, and models around them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Gated(nn.Module):
    """A cell of a user's own, with one gate."""

    def __init__(self, input_size: int = 3, hidden_size: int = 4) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.lin = nn.Linear(input_size + hidden_size, 2 * hidden_size)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        gate, new = self.lin(torch.cat([x, h], dim=-1)).chunk(2, dim=-1)
        keep = torch.sigmoid(gate)
        return keep * h + (1 - keep) * torch.tanh(new)


class Zoneout(nn.Module):
    """A cell around one of torch's, with what a plain one does not do."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = self.cell(x, state)
        return 0.9 * h + 0.1 * state[0], c


class Whole(nn.Module):
    """A model that takes a state, but a whole sequence at once, and gives scores with it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 3)
        self.rnn = nn.LSTM(3, 4, num_layers=2)
        self.cell = Gated(4, 4)
        self.head = nn.Linear(4, 20)

    def forward(self, tokens: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        output, state = self.rnn(self.embedding(tokens), state)
        return self.head(self.cell(output[-1], output[-2])), state


class StepByStep(nn.Module):
    """A model of one step that gives scores beside the state: no cell, but it holds one."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(x, h)
        return self.head(h), h


class Memory(nn.Module):
    """Looks like a cell, but needs a third argument."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 4)

    def forward(self, x: Tensor, h: Tensor, context: Tensor) -> Tensor:
        return self.lin(x) + h + context


class Broken(nn.Module):
    """Looks like a cell, but its answer is no state."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = 3, 4
        self.lin = nn.Linear(3, 5)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return self.lin(x)


class Scripted(nn.Module):
    """A cell that needs a mask, and has weights of torch's names."""

    def __init__(self) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.randn(16, 3))
        self.weight_hh = nn.Parameter(torch.randn(16, 4))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor], mask: Tensor) -> tuple[Tensor, Any]:
        i, f, g, o = (x @ self.weight_ih.T + state[0] @ self.weight_hh.T).chunk(4, dim=1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h * mask, (h, c)


class Louder(nn.LSTM):
    """A user's subclass with a forward of its own."""

    def forward(self, *args: Any) -> Any:
        output, state = super().forward(*args)
        return 2 * output, state
