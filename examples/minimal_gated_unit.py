"""A cell of your own: the minimal gated unit, a GRU with a single gate (Zhou et al. 2016).

    z    = sigmoid(W_z [x, h] + b_z)                   the only gate: z keeps
    n    = tanh(W_n [x, (1 - z) * h] + b_n)            candidate
    h_t  = z * h_{t-1} + (1 - z) * n

The paper writes f for 1 - z. Try it:

    gradflow decay --cell examples/minimal_gated_unit.py:make_cell
    gradflow saturate --cell examples/minimal_gated_unit.py:make_cell

What gradflow needs of a cell is little: a torch.nn.Module that is called `cell(x, h)`, or
`cell(x, (h, c))` with more parts, and returns the new state. All else here is optional.

- `input_size` and `hidden_size` save it from trying widths.
- `gates` declares which rows of which parameters make each gate. Gates can then be held at a
  value, and `decay` runs its whole experiment. Without it, `decay` measures the cell as it is.
- `gate_values` shows the gates while they move. Without it, the direct path is known only where
  the keep gate is held.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MinimalGatedUnit(nn.Module):
    """One step of the minimal gated unit: x (batch, input), h (batch, hidden) to the new h."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.update = nn.Linear(input_size + hidden_size, hidden_size)
        self.candidate = nn.Linear(input_size + hidden_size, hidden_size)
        self.gates = [
            # the roles: keep, write, output, reset, and candidate for what is no gate but content
            {"name": "update", "role": "keep", "bias": "update.bias", "weights": "update.weight"},
            {
                "name": "candidate",
                "role": "candidate",
                "bias": "candidate.bias",
                "weights": "candidate.weight",
                # the square block that reads the old state: all rows, the columns after x
                "recurrent": f"candidate.weight[:, {input_size}:]",
            },
        ]

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        z = self._update_gate(x, h)
        n = torch.tanh(self.candidate(torch.cat([x, (1 - z) * h], dim=1)))
        return z * h + (1 - z) * n

    def gate_values(self, x: Tensor, h: Tensor) -> dict[str, Tensor]:
        """Return the gate that this input and state open."""
        return {"update": self._update_gate(x, h)}

    def _update_gate(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.sigmoid(self.update(torch.cat([x, h], dim=1)))


def make_cell(input_size: int, hidden_size: int) -> MinimalGatedUnit:
    """Return a new cell of these widths."""
    return MinimalGatedUnit(input_size, hidden_size)
