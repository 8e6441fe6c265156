"""A training that is watched: tell, 40 steps later, whether the first number was positive.

The forget gate of torch's LSTM begins at one half, so the gradient reaches some ten steps back,
and nothing is learned. At update 500 its bias is raised to 3; from then on the gradient reaches the
first number, and the loss falls.

    python examples/watched_training.py runs/first-number
    gradflow watch runs/first-number
"""

from __future__ import annotations

import sys

import torch
from torch import nn

import gradflow

HIDDEN, STEPS = 16, 40


class FirstNumber(nn.Module):
    """An LSTM with a head on its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(1, HIDDEN)
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits, (batch, 2), of series (time, batch, 1)."""
        return self.head(self.rnn(x)[0][-1])


def train(out: str, updates: int = 1000, raised_at: int = 500) -> float:
    """Train, watched into the folder `out`, and return the last loss."""
    torch.manual_seed(0)
    model = FirstNumber()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    with gradflow.watch(model, every=50, needs_lag=STEPS - 1, out=out):
        for update in range(updates):
            if update == raised_at:
                model.rnn.bias_ih_l0.data[HIDDEN : 2 * HIDDEN] = 3.0  # the forget gate's rows
            x = torch.randn(STEPS, 32, 1)
            loss = nn.functional.cross_entropy(model(x), (x[0, :, 0] > 0).long())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return float(loss.detach())


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "runs/first-number"
    print(f"The last loss is {train(folder):.3f}.")  # noqa: T201
