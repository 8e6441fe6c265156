"""Modules whose input is as wide as their state, so that shapes tell nothing."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SquareLSTM(nn.Module):
    """One square matrix per gate and source: shapes tell nothing."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.input_size = self.hidden_size = width
        for gate in "ifgo":
            for source in "WU":
                self.register_parameter(f"{source}_{gate}", nn.Parameter(torch.empty(width, width)))
            self.register_parameter(f"b_{gate}", nn.Parameter(torch.empty(width)))
        for parameter in self.parameters():
            nn.init.normal_(parameter)

    def total(self, x: Tensor, h: Tensor, gate: str) -> Tensor:
        """U multiplies x from the left, W multiplies h from the right: against all custom."""
        weights = dict(self.named_parameters())
        return x @ weights[f"U_{gate}"].T + h @ weights[f"W_{gate}"] + weights[f"b_{gate}"]

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        h, c = state
        i, f, o = (torch.sigmoid(self.total(x, h, gate)) for gate in "ifo")
        c = f * c + i * torch.tanh(self.total(x, h, "g"))
        return o * torch.tanh(c), c


class ForgetfulSquareLSTM(SquareLSTM):
    """Leaves h out of the output gate."""

    def total(self, x: Tensor, h: Tensor, gate: str) -> Tensor:
        """Return a pre-activation."""
        return super().total(x, torch.zeros_like(h) if gate == "o" else h, gate)


class SquareGRU(nn.Module):
    """Reset before the product, one square matrix per gate and source."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.input_size = self.hidden_size = width
        for gate in "zrh":
            for source in "WU":
                self.register_parameter(f"{source}_{gate}", nn.Parameter(torch.empty(width, width)))
            self.register_parameter(f"b_{gate}", nn.Parameter(torch.empty(width)))
        for parameter in self.parameters():
            nn.init.normal_(parameter)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new h."""
        w = dict(self.named_parameters())
        z = torch.sigmoid(x @ w["W_z"] + h @ w["U_z"] + w["b_z"])
        r = torch.sigmoid(x @ w["W_r"] + h @ w["U_r"] + w["b_r"])
        candidate = torch.tanh(x @ w["W_h"] + (r * h) @ w["U_h"] + w["b_h"])
        return z * h + (1 - z) * candidate


class StackedGRU(nn.Module):
    """r and z in one layer on [h, x], the candidate in another: 4 wide both."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.input_size = self.hidden_size = width
        self.gate = nn.Linear(2 * width, 2 * width)
        self.candidate = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new h."""
        r, z = torch.sigmoid(self.gate(torch.cat([h, x], 1))).chunk(2, 1)
        n = torch.tanh(self.candidate(torch.cat([r * h, x], 1)))
        return z * h + (1 - z) * n
