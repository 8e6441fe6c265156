"""A training whose forget gate is held, so that how far the gradient reaches is known."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn


class Forgetful(nn.Module):
    """An LSTM whose forget gate is `forget` whatever it reads, with a head on its last output."""

    def __init__(self, forget: float, hidden: int = 8) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn = nn.LSTM(2, hidden)
        self.head = nn.Linear(hidden, 2)
        rows = slice(hidden, 2 * hidden)
        with torch.no_grad():
            self.rnn.weight_ih_l0[rows] = 0.0
            self.rnn.weight_hh_l0[rows] = 0.0
            self.rnn.bias_hh_l0[rows] = 0.0
            self.rnn.bias_ih_l0[rows] = torch.logit(torch.tensor(forget))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][-1])


def training(model: nn.Module, steps: int, updates: int) -> Iterator[int]:
    """Train on the sign of the first step, and yield after each update."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for update in range(updates):
        x = torch.randn(steps, 4, 2)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), (x[0, :, 0] > 0).long())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
        yield update
