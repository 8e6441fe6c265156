"""Signal and distractors: the first token decides, the rest means nothing, the end asks.

After the two-class problems of Bengio, Simard & Frasconi (1994), with tokens for numbers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from gradflow.experiments.benchmark.tasks import Baseline, Sequences, SequenceTask


class SignalTask(SequenceTask):
    """One of two signal tokens, then T - 1 distractors; the answer is read at the last step.

    >>> task = SignalTask(delay=50, distractors=5)
    >>> task.steps, task.baseline.accuracy
    (50, 0.5)
    """

    name = "signal"
    to_have_more = "take a longer --delay or more --distractors"
    outputs, reads = 2, 1

    def __init__(self, *, delay: int, distractors: int) -> None:
        self.delay, self.steps = delay, delay
        self.tokens = self.input_width = 2 + distractors
        self.choices = (2, *(distractors,) * (delay - 1))

    @property
    def baseline(self) -> Baseline:
        """A coin: ln 2, and one half."""
        return Baseline(math.log(2.0), math.log(2.0), 0.5)

    def sequences(self, choices: Tensor) -> Sequences:
        """Return inputs (time, count), token numbers, and targets (count,), 0 or 1."""
        tokens = torch.cat([choices[:, :1], 2 + choices[:, 1:]], dim=1)
        return Sequences(tokens.mT.contiguous(), choices[:, 0])

    def loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy at the last step."""
        return functional.cross_entropy(predictions[-1], targets)

    def recall_loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the same: there is one answer."""
        return self.loss(predictions, targets)

    def accuracy(self, predictions: Tensor, targets: Tensor) -> float:
        """Return the share of right labels."""
        return float((predictions[-1].argmax(dim=-1) == targets).double().mean())
