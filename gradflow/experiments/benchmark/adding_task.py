"""Adding: two of T numbers are marked, and their sum is asked for at the end.

Hochreiter & Schmidhuber (1997), experiment 4, in the form of Le, Jaitly & Hinton (2015): one mark
in either half.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.experiments.benchmark.tasks import Baseline, Sequences, SequenceTask

NEAR = 0.1
"""How near to the sum an answer must be to count as right."""


class AddingTask(SequenceTask):
    """T numbers from (0, 1), of which two are marked, one in each half.

    >>> AddingTask(delay=50).baseline.loss == 1 / 6
    True
    """

    name = "adding"
    tokens, choices = None, None
    input_width, outputs, reads = 2, 1, 1

    def __init__(self, *, delay: int) -> None:
        self.delay, self.steps = delay, delay

    @property
    def baseline(self) -> Baseline:
        """Always 1: the variance of a sum of two uniform numbers, 2/12; near with 1 - (1 - d)^2."""
        return Baseline(1.0 / 6.0, 1.0 / 6.0, 1.0 - (1.0 - NEAR) ** 2)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return rows of T numbers and the two marked places, (count, T + 2)."""
        numbers = torch.rand(count, self.steps, generator=generator)
        half = self.steps // 2
        first = torch.randint(half, (count, 1), generator=generator)
        second = torch.randint(half, self.steps, (count, 1), generator=generator)
        return torch.cat([numbers, first, second], dim=1)

    def sequences(self, choices: Tensor) -> Sequences:
        """Return inputs (time, count, 2), number and mark, and targets (count,), the sums."""
        numbers, places = choices[:, : self.steps], choices[:, self.steps :].long()
        marks = torch.zeros_like(numbers).scatter_(1, places, 1.0)
        inputs = torch.stack([numbers, marks], dim=-1).transpose(0, 1).contiguous()
        return Sequences(inputs, (numbers * marks).sum(dim=1))

    def loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the mean squared error at the last step."""
        return (predictions[-1].squeeze(-1) - targets).square().mean()

    def recall_loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the same: there is one answer."""
        return self.loss(predictions, targets)

    def accuracy(self, predictions: Tensor, targets: Tensor) -> float:
        """Return the share of answers within `NEAR` of the sum."""
        near = (predictions[-1].squeeze(-1) - targets).abs() < NEAR
        return float(near.double().mean())
