"""An LSTM cell as people write it by hand, with the sigmoid spelled out as 1 / (1 + exp(-v)).

Its forward pass is right for any v. Its derivative is not: where exp(-v) overflows, autograd
multiplies infinity by zero. The weights shut one unit's input gate with a bias of -95, beyond
float32's ln(largest) = 88.7.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

GATE_ROWS = (
    ("input", "write", "0:3"),
    ("forget", "keep", "3:6"),
    ("candidate", "candidate", "6:9"),
    ("output", "output", "9:12"),
)
WEIGHTS = Path(__file__).with_name("naive_sigmoid.npz")


def naive_sigmoid(value: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-v)) written out."""
    return 1.0 / (1.0 + torch.exp(-value))


class HandWrittenLSTMCell(nn.Module):
    """``cell(x, (h, c))`` on one linear layer over [x, h], rows in the order i, f, g, o."""

    gates = tuple(
        {
            "name": name,
            "role": role,
            "bias": [f"lin.bias[{rows}]"],
            "weights": [f"lin.weight[{rows}]"],
        }
        for name, role, rows in GATE_ROWS
    )

    def __init__(self, sigmoid: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.sigmoid = sigmoid
        self.lin = nn.Linear(5, 12)
        with np.load(WEIGHTS) as stored:
            state = {name: torch.tensor(stored[name]) for name in ("lin.weight", "lin.bias")}
        self.load_state_dict(state)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Take one step."""
        h, c = state
        rows = self.lin(torch.cat((x, h), dim=1))
        write, forget, candidate, output = rows.chunk(4, dim=1)
        kept = self.sigmoid(forget) * c
        c = kept + self.sigmoid(write) * torch.tanh(candidate)
        return self.sigmoid(output) * torch.tanh(c), c


def make_cell() -> HandWrittenLSTMCell:
    """Return the cell with the sigmoid spelled out."""
    return HandWrittenLSTMCell(naive_sigmoid)


def make_stable_cell() -> HandWrittenLSTMCell:
    """Return the same cell with torch.sigmoid."""
    return HandWrittenLSTMCell(torch.sigmoid)
