"""Sums of per-step growth, and how sure their means are."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class GrowthSums:
    """Sums of ln growth (batch, count) over the steps of a run, and over blocks of them.

    Growth is correlated from step to step, so its standard error comes from the means of blocks
    that are long enough to be nearly independent. What a run that was stopped had added by then
    is as good as that of a shorter run, but for the block that it was in.

    Args:
        rows, count: shape of one step's growth.
        steps: how many steps will be added.
        blocks: how many blocks to cut them into.
    """

    def __init__(self, rows: int, count: int, *, steps: int, blocks: int) -> None:
        self._steps, self._blocks = steps, max(1, min(blocks, steps))
        self._sums = torch.zeros(self._blocks, rows, count, dtype=torch.float64, device="cpu")
        self._done = 0

    @property
    def done(self) -> int:
        """How many steps were added."""
        return self._done

    def add(self, growth: Tensor) -> None:
        """Add the growth of some steps, (time, batch, count), all of them or none."""
        done = self._done + growth.shape[0]
        block = torch.arange(self._done, done, device="cpu") * self._blocks // self._steps
        sums = self._sums.index_add(0, block, growth.cpu())
        self._sums, self._done = sums, done  # one statement, so that Ctrl-C finds no half of it

    def sort(self) -> None:
        """Put each row's entries in descending order of their sums."""
        order = self._sums.sum(dim=0).argsort(dim=-1, descending=True)
        self._sums = self._sums.gather(-1, order.expand_as(self._sums))

    @property
    def means(self) -> Tensor:
        """Mean growth per step, (batch, count)."""
        return self._sums.sum(dim=0) / self._done

    @property
    def standard_errors(self) -> Tensor:
        """Standard errors of the means over all rows, (count,); nan where they cannot be known.

        The larger of two estimates: from all complete blocks as if independent, and from the rows'
        means, which differ more than their blocks do where rows are different networks.
        """
        edges = -(
            -torch.arange(self._blocks + 1, device="cpu") * self._steps // self._blocks
        )  # of each, rounded up
        complete = edges[1:] <= self._done
        by_block = self._sums[complete] / edges.diff()[complete, None, None]
        return torch.fmax(_error_of_mean(by_block.flatten(0, 1)), _error_of_mean(self.means))


def _error_of_mean(samples: Tensor) -> Tensor:
    """Return deviation / sqrt(number) of (number, count) samples; nan for one, or for zeros."""
    number = samples.shape[0]
    if number < 2:
        return samples.new_full(samples.shape[1:], math.nan)
    return samples.std(dim=0) / math.sqrt(number)
