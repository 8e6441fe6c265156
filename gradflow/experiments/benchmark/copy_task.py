"""Delayed copy: symbols, blanks, a cue, and then the symbols again.

A sequence has T + 2N steps: N symbols, T - 1 blanks, the cue, and N blanks during which they are
to be named. The loss is on every step; before the recall the answer is "blank". Hochreiter &
Schmidhuber (1997) measured long time lags so, in the form that Arjovsky et al. (2016) use.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from gradflow.experiments.benchmark.tasks import Baseline, Sequences, SequenceTask


class CopyTask(SequenceTask):
    """N symbols of K, to be named T steps after each was seen.

    Tokens are the symbols 0..K-1, the blank K and the cue K + 1; the answers are the symbols and
    the blank. A symbol and its recall lie T + N steps apart.

    >>> task = CopyTask(delay=50, symbols=10, alphabet=8)
    >>> task.steps, round(task.baseline.loss, 4)
    (70, 0.2971)
    """

    name = "copy"
    to_have_more = "take more --symbols"

    def __init__(self, *, delay: int, symbols: int, alphabet: int) -> None:
        self.delay, self.symbols, self.alphabet = delay, symbols, alphabet
        self.steps = self.reads = delay + 2 * symbols
        self.tokens, self.input_width = alphabet + 2, alphabet + 2
        self.outputs = alphabet + 1
        self.choices = (alphabet,) * symbols

    @property
    def baseline(self) -> Baseline:
        """Blank for certain before the recall, any symbol in it: N ln K / (T + 2N) over all."""
        recall = math.log(self.alphabet)
        return Baseline(self.symbols * recall / self.steps, recall, 1.0 / self.alphabet)

    def sequences(self, choices: Tensor) -> Sequences:
        """Return inputs and targets (time, count), both token numbers."""
        symbols = choices.mT
        blank, cue = self.alphabet, self.alphabet + 1
        count = choices.shape[0]
        inputs = torch.full((self.steps, count), blank)
        inputs[: self.symbols] = symbols
        inputs[self.symbols + self.delay - 1] = cue
        targets = torch.full((self.steps, count), blank)
        targets[-self.symbols :] = symbols
        return Sequences(inputs, targets)

    def loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy over all steps."""
        return functional.cross_entropy(predictions.flatten(0, 1), targets.flatten())

    def recall_loss(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy over the recall."""
        return self.loss(predictions[-self.symbols :], targets[-self.symbols :])

    def accuracy(self, predictions: Tensor, targets: Tensor) -> float:
        """Return the share of symbols that are named rightly, each at its place."""
        named = predictions[-self.symbols :].argmax(dim=-1)
        return float((named == targets[-self.symbols :]).double().mean())
