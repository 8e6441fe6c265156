"""Layers over sequences as people write them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.data.parity_modules import Cell


class Layer(nn.Module):
    """An LSTM layer: (time, batch, input) and (h, c) in, all outputs and (h, c) out."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.cell = Cell(input_size, hidden_size)

    def before(self, step: int, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return what goes into a step."""
        del step
        return state

    def forward(
        self, xs: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return every h and the last state."""
        outputs = []
        for step, x in enumerate(xs):
            state = self.cell(x, self.before(step, state))
            outputs.append(state[0])
        return torch.stack(outputs), state


class BatchFirstInName(Layer):
    """Says batch_first and loops over axis 0."""

    batch_first = True


class Truncated(Layer):
    """Detaches the state before the fourth step."""

    def before(self, step: int, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return what goes into a step."""
        return (state[0].detach(), state[1].detach()) if step == 3 else state


class Startless(Layer):
    """Takes no first state."""

    def forward(self, xs: Tensor) -> Tensor:  # type: ignore[override]
        """Return every h."""
        zero = xs.new_zeros(xs.shape[1], self.hidden_size)
        return super().forward(xs, (zero, zero))[0]
