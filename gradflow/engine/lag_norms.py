"""How much of a state is felt k steps later: ||ds_t/ds_{t-k}|| by lag, from several places.

Windows of a run begin at a few steps of a few samples; each is one row of one measurement, so the
spread over samples and times comes with the mean. Where that would be too dear, fewer windows are
taken, and of some the first steps alone; the answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import CellLike, State
from gradflow.engine.blocks import BlockName
from gradflow.engine.jacobian_norms import Progress, jacobian_norms
from gradflow.engine.lag_windows import BUDGET, Windows
from gradflow.engine.threads import threads_for

__all__ = ["LagNorms", "lag_norms"]

LN10 = math.log(10.0)
_WIDE = 128  # width of a state from which on a step costs more than what surrounds it


@dataclass(frozen=True)
class LagNorms:
    """log10 ||ds_t/ds_{t-k}|| by lag, for each window.

    `lags` (points,) begin at 0; `log10_norm` (points, windows), nan where a window is shorter, and
    -inf where the norm is zero. `direct` is the product of the keep gates alone, `kept` the block
    of the kept part (c of an LSTM); None where there is none, or where the state has one part.
    Both are of the first window alone where more would be too dear. `last` (windows,) is the
    number of steps of each window.
    """

    lags: Tensor
    log10_norm: Tensor
    direct: Tensor | None
    kept: Tensor | None
    windows: Windows
    last: Tensor
    method: str


def lag_norms(
    cell: CellLike,
    x: Tensor,
    before: State,
    windows: Windows,
    *,
    lengths: Tensor,
    reverse: bool = False,
    progress: Progress | None = None,
) -> LagNorms:
    """Measure log10 ||ds_t/ds_{t-k}|| by lag k from each window's first step.

    Args:
        cell: the cell that ran.
        x: what it read, (time, batch, input).
        before: the state before each position, (time, batch, width) per part.
        windows: where to begin, from `choose_windows`.
        lengths: (batch,) steps of each sample.
        reverse: the cell reads each sample from its last position.
        progress: called as `progress(steps done, steps in all)`.

    Returns:
        The norms of the joint state's Jacobian, spectral; see `LagNorms`.

    >>> from gradflow.cells import LSTM, hold_
    >>> from gradflow.engine.lag_windows import choose_windows
    >>> cell = hold_(LSTM(1, 3).double(), forget=0.1)
    >>> x, state = torch.zeros(20, 1, 1).double(), torch.zeros(20, 1, 3).double()
    >>> windows = choose_windows(cell, torch.tensor([20]))
    >>> found = lag_norms(cell, x, (state, state), windows, lengths=torch.tensor([20]))
    >>> round(found.direct[3, 0].item(), 9)  # at lag 3
    -3.0
    """
    run = _Run(cell, x, before, windows, lengths, reverse, progress)
    groups = _groups(cell, windows)
    found = [run.measured("joint", group) for group in groups]
    joint, direct = run.joined(groups, found)
    kept = None
    if len(cell.parts) > 1:
        groups = groups if _is_cheap(cell, windows) else [[0]]
        block: BlockName = (cell.kept_part, cell.kept_part)
        kept, direct = run.joined(groups, [run.measured(block, group) for group in groups])
    return LagNorms(
        lags=torch.tensor([0, *windows.lags], device="cpu"),
        log10_norm=joint,
        direct=direct,
        kept=kept,
        windows=windows,
        last=torch.tensor(windows.steps, device="cpu"),
        method=found[0].method,
    )


@dataclass(frozen=True)
class _Block:
    """A block's norms for some windows, log10 with lag 0 in front, up to their own end."""

    norm: Tensor
    direct: Tensor | None
    method: str


@dataclass(frozen=True)
class _Run:
    """What a cell read and was, and which windows of it are measured; see `lag_norms`."""

    cell: CellLike
    x: Tensor
    before: State
    windows: Windows
    lengths: Tensor
    reverse: bool
    progress: Progress | None

    def measured(self, block: BlockName, group: Sequence[int]) -> _Block:
        """Measure one block of a group's windows at the lags that they have."""
        fed, start, last = self._gathered(group)
        points = [lag for lag in self.windows.lags if lag <= len(fed)]
        with threads_for(len(group) * _step_cost(self.cell)):
            found = jacobian_norms(
                self.cell, fed[: points[-1]], start, block, at=points, progress=self.progress
            )
        direct = found.direct_log_norm
        shown = None if direct is None else _from_zero(direct, points, last)
        return _Block(_from_zero(found.log_norm, points, last), shown, found.method)

    def joined(
        self, groups: Sequence[Sequence[int]], blocks: Sequence[_Block]
    ) -> tuple[Tensor, Tensor | None]:
        """Return the groups' norms and direct paths side by side, (points, windows).

        What was not measured is nan.
        """
        shape = (1 + len(self.windows.lags), len(self.windows.starts))
        norm = torch.full(shape, math.nan, dtype=torch.float64, device="cpu")
        direct = norm.clone()
        for group, each in zip(groups, blocks, strict=True):
            norm[: len(each.norm), list(group)] = each.norm
            if each.direct is not None:
                direct[: len(each.direct), list(group)] = each.direct
        return norm, None if blocks[0].direct is None else direct

    def _gathered(self, group: Sequence[int]) -> tuple[Tensor, State, Tensor]:
        """Return a group's inputs (steps, windows, input), first state, and number of steps."""
        x, windows = self.x, self.windows
        places = torch.tensor([windows.starts[k] for k in group], device="cpu")
        last = torch.tensor([windows.steps[k] for k in group], device="cpu")
        samples, begins = places.unbind(dim=1)
        own = self.lengths.cpu()[samples]
        offset = torch.arange(int(last.max()), device="cpu").unsqueeze(1)
        order = torch.minimum(begins + offset, own - 1)  # a short window repeats its last step
        positions = (own - 1 - order if self.reverse else order).to(x.device)
        rows = samples.to(x.device)
        return x[positions, rows], tuple(p[positions[0], rows] for p in self.before), last


def _step_cost(cell: CellLike) -> int:
    return sum(cell.part_sizes) * cell.hidden_size**2 * 4


def _groups(cell: CellLike, windows: Windows) -> list[list[int]]:
    """Return which windows run together: all, but of wide cells those of one length alone.

    A short window beside a longer one goes on for nothing.
    """
    if sum(cell.part_sizes) < _WIDE:
        return [list(range(len(windows.starts)))]
    lengths = dict.fromkeys(windows.steps)
    return [[k for k, n in enumerate(windows.steps) if n == length] for length in lengths]


def _is_cheap(cell: CellLike, windows: Windows) -> bool:
    return sum(windows.steps) * _step_cost(cell) < BUDGET / 30


def _from_zero(logs: Tensor, points: list[int], last: Tensor) -> Tensor:
    """Return log10 with lag 0 in front, nan beyond each window's end."""
    wide = logs.detach().cpu().to(torch.float64) / LN10
    beyond = torch.tensor(points, device="cpu").unsqueeze(1) > last
    first = torch.zeros(1, wide.shape[1], dtype=torch.float64, device="cpu")
    return torch.cat([first, wide.masked_fill(beyond, math.nan)])
