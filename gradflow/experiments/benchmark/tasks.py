"""What the tasks of the benchmark have in common: sequences, a loss, a score and a baseline.

A task is made of free choices (which symbol, which distractor), and a sequence is a row of them.
So it is known how many different sequences there are, and they can be counted through.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

LEARNED = 0.9
"""The accuracy from which on a task counts as learned."""


@dataclass(frozen=True)
class Sequences:
    """Inputs (time, count), or (time, count, width) where they are numbers, and their targets."""

    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        """How many sequences there are."""
        return self.inputs.shape[1]

    def at(self, rows: Tensor) -> Sequences:
        """Return some of them, by number."""
        return Sequences(self.inputs[:, rows], self.targets[..., rows])


@dataclass(frozen=True)
class Baseline:
    """What a model without memory reaches: it knows the time, the rule and nothing of the past.

    `recall_loss` is that of the answering steps alone, the same as `loss` where there is one.
    """

    loss: float
    recall_loss: float
    accuracy: float


class SequenceTask(ABC):
    """A task at one delay.

    `steps` is a sequence's length, `tokens` how many there are (None where the inputs are
    numbers, `input_width` wide), `outputs` the width of the answer, `reads` how many of the last
    steps the loss is on, `choices` the number of ways to fill each free place (None: endless),
    `to_have_more` what to ask for to have more different sequences.
    """

    name: str
    delay: int
    steps: int
    tokens: int | None
    input_width: int
    outputs: int
    reads: int
    choices: tuple[int, ...] | None
    to_have_more = "take a longer --delay"

    @property
    @abstractmethod
    def baseline(self) -> Baseline:
        """What a memoryless model reaches."""

    @abstractmethod
    def sequences(self, choices: Tensor) -> Sequences:
        """Return the sequences that rows of choices (count, places) make."""

    @abstractmethod
    def loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss over the `reads` last steps, one number."""

    @abstractmethod
    def recall_loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss over the answering steps alone."""

    @abstractmethod
    def accuracy(self, predictions: Tensor, targets: Tensor) -> float:
        """Return the share of right answers on the answering steps."""

    @property
    def different(self) -> int | None:
        """How many different sequences there are; None where there is no end to them.

        >>> from gradflow.experiments.benchmark.copy_task import CopyTask
        >>> CopyTask(delay=50, symbols=3, alphabet=8).different
        512
        """
        return None if self.choices is None else math.prod(self.choices)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return rows of choices, each place by itself and uniformly, (count, places)."""
        columns = [
            torch.randint(ways, (count,), generator=generator) for ways in self.choices or ()
        ]
        return torch.stack(columns, dim=1)

    def numbered(self, numbers: Tensor) -> Tensor:
        """Return the rows of choices with these numbers, from 0 to `different` - 1."""
        columns = []
        for ways in reversed(self.choices or ()):
            columns.append(numbers % ways)
            numbers = numbers // ways
        return torch.stack(columns[::-1], dim=1)
