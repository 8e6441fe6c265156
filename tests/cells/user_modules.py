"""Cells as users write them: with gates and without, with one part of state and with several."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

EXAMPLE = Path(__file__).parents[2] / "examples" / "minimal_gated_unit.py"


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("minimal_gated_unit", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MinimalGatedUnit: Any = _example().MinimalGatedUnit
"""The documented example, examples/minimal_gated_unit.py."""


class Plain(nn.Module):
    """h' = tanh(W [x, h] + b): tells its widths and no gates."""

    def __init__(self, input_size: int = 2, hidden_size: int = 3) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.lin = nn.Linear(input_size + hidden_size, hidden_size)

    def mix(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        return torch.tanh(self.lin(torch.cat([x, h], dim=1)))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new state."""
        return self.mix(x, h)


class SilentLSTM(nn.Module):
    """An LSTM on one linear layer over [x, h], rows i, f, g, o, that tells nothing of itself."""

    def __init__(self, inputs: int = 2, hidden: int = 3) -> None:
        super().__init__()
        self.lin = nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        h, c = state
        i, f, g, o = self.lin(torch.cat([x, h], dim=1)).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class DeclaredLSTM(SilentLSTM):
    """The same with its gates declared, the forget gate's rows where `forget_block` says."""

    def __init__(self, inputs: int = 2, hidden: int = 3, *, forget_block: int = 1) -> None:
        super().__init__(inputs, hidden)
        blocks = {"input": 0, "forget": forget_block, "output": 3}
        if forget_block == 0:
            blocks["input"] = 1
        roles = {"input": "write", "forget": "keep", "output": "output"}
        self.gates = [
            {
                "name": name,
                "role": roles[name],
                "bias": f"lin.bias[{block * hidden}:{(block + 1) * hidden}]",
                "weights": f"lin.weight[{block * hidden}:{(block + 1) * hidden}]",
            }
            for name, block in blocks.items()
        ]
        self.gates.append(
            {
                "name": "candidate",
                "role": "candidate",
                "bias": f"lin.bias[{2 * hidden}:{3 * hidden}]",
                "weights": f"lin.weight[{2 * hidden}:{3 * hidden}]",
                "recurrent": f"lin.weight[{2 * hidden}:{3 * hidden}, {inputs}:{inputs + hidden}]",
            }
        )


class ThreeParts(nn.Module):
    """Three parts of three different widths, told by `initial_state`; the slow one is kept."""

    parts = ("fast", "slow", "count")
    kept_part = "slow"

    def __init__(self) -> None:
        super().__init__()
        self.input_size = 2
        self.into_fast = nn.Linear(2 + 4, 3)
        self.into_slow = nn.Linear(3, 4)
        self.into_count = nn.Linear(4, 1)

    def initial_state(self, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first state: the count starts at one."""
        return torch.zeros(batch, 3), torch.zeros(batch, 4), torch.ones(batch, 1)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
        """Return the new state."""
        fast, slow, count = state
        new = torch.tanh(self.into_fast(torch.cat([x, slow], dim=1)))
        kept = 0.9 * slow + 0.1 * torch.tanh(self.into_slow(fast))
        return new, kept, 0.5 * count + torch.sigmoid(self.into_count(kept))
