"""A forecaster with a mistake, for `gradflow inspect`.

Its data are (batch, time, features), but nn.GRU was not told so: the recurrence runs across the
samples. `make_mended` has batch_first=True.

    gradflow inspect --model examples/forecaster.py:make_model --data examples/forecaster.py:make_batch
"""  # noqa: E501

from __future__ import annotations

import torch
from torch import Tensor, nn


class Forecaster(nn.Module):
    """Predicts a number from what was read."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 16, batch_first=batch_first)
        self.head = nn.Linear(16, 1)

    def forward(self, series: Tensor) -> Tensor:
        """Return (batch, 1) for series (batch, time, features)."""
        output, _ = self.rnn(series)
        return self.head(output[:, -1])


def make_model() -> nn.Module:
    """Return the forecaster with the mistake."""
    torch.manual_seed(0)
    return Forecaster(batch_first=False)


def make_mended() -> nn.Module:
    """Return the forecaster without it."""
    torch.manual_seed(0)
    return Forecaster(batch_first=True)


def make_batch() -> tuple[Tensor, Tensor]:
    """Return 8 series of 20 steps, and what comes next."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(8, 20, 3, generator=generator), torch.randn(8, 1, generator=generator)
