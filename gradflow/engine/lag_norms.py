"""How much of a state is felt k steps later: ||ds_t/ds_{t-k}|| by lag, from several places.

Windows of a run begin at a few steps of a few samples; each is one row of one measurement, so the
spread over samples and times comes with the mean. Where that would be too dear, fewer windows and
fewer lags are taken, and the answer says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import CellLike, State
from gradflow.engine.blocks import BlockName
from gradflow.engine.jacobian_norms import Progress, jacobian_norms
from gradflow.engine.threads import threads_for

__all__ = ["LagNorms", "Windows", "choose_windows", "lag_norms"]

LN10 = math.log(10.0)
BUDGET = 2e11  # multiply-adds for one cell: about a minute of one core in float64
_DENSE_LAGS = 12  # every lag up to here, then ever fewer
_MOST_LAGS = 40
_FEW_LAGS = 20


@dataclass(frozen=True)
class Windows:
    """Where windows of a run begin: `starts` holds (sample, step of its own reading order).

    `lags` are the lags to report, from 1; `available` how many windows there would be in all.
    """

    starts: tuple[tuple[int, int], ...]
    lags: tuple[int, ...]
    available: int

    @property
    def is_sample(self) -> bool:
        """Whether these are only some of all windows: of every sample, from every step."""
        return len(self.starts) < self.available


@dataclass(frozen=True)
class LagNorms:
    """log10 ||ds_t/ds_{t-k}|| by lag, for each window.

    `lags` (points,) begin at 0; `log10_norm` (points, windows), nan where a window is shorter, and
    -inf where the norm is zero. `direct` is the product of the keep gates alone, `kept` the block
    of the kept part (c of an LSTM); None where there is none, or where the state has one part.
    `last` (windows,) is the number of steps of each window.
    """

    lags: Tensor
    log10_norm: Tensor
    direct: Tensor | None
    kept: Tensor | None
    windows: Windows
    last: Tensor
    method: str


def choose_windows(
    cell: CellLike, lengths: Tensor, *, samples: int = 4, starts: int = 3, budget: float = BUDGET
) -> Windows:
    """Return windows that fit into a budget: the longest samples, from a few steps each.

    Args:
        cell: what is measured: a step costs its state times its recurrent weights for a window.
        lengths: (batch,) steps of each sample.
        samples, starts: how many at most, and from how many steps of each.
        budget: multiply-adds in all.
    """
    longest = int(lengths.max())
    order = lengths.argsort(descending=True, stable=True).tolist()
    width, hidden = sum(cell.part_sizes), cell.hidden_size
    step = width * (len(cell.gates) + 1) * hidden * hidden
    lags = _lags(longest)
    places: list[tuple[int, int]] = []
    spent = 0.0
    for index in range(starts):
        for sample in order[:samples]:
            own = int(lengths[sample])
            begin = index * own // starts
            cost = (own - begin) * step
            if own - begin < 1 or (places and spent + cost > budget):
                continue
            places.append((sample, begin))
            spent += cost
    if spent > budget:
        lags = _thinned(lags, _FEW_LAGS)
    return Windows(tuple(places), tuple(lags), int(lengths.sum()))


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
    >>> cell = hold_(LSTM(1, 3).double(), forget=0.1)
    >>> x, state = torch.zeros(20, 1, 1).double(), torch.zeros(20, 1, 3).double()
    >>> windows = choose_windows(cell, torch.tensor([20]))
    >>> found = lag_norms(cell, x, (state, state), windows, lengths=torch.tensor([20]))
    >>> round(found.direct[3, 0].item(), 9)  # at lag 3
    -3.0
    """
    fed, start, last = _gathered(x, before, windows, lengths=lengths, reverse=reverse)
    work = len(windows.starts) * sum(cell.part_sizes) * cell.hidden_size**2 * 4
    points = [lag for lag in windows.lags if lag <= int(last.max())]

    def measured(block: BlockName) -> tuple[Tensor, Tensor | None, str]:
        with threads_for(work):
            found = jacobian_norms(cell, fed, start, block, at=points, progress=progress)
        direct = found.direct_log_norm
        shown = None if direct is None else _from_zero(direct, points, last)
        return _from_zero(found.log_norm, points, last), shown, found.method

    joint, direct, method = measured("joint")
    kept = None
    if len(cell.parts) > 1:
        kept, direct, _ = measured((cell.kept_part, cell.kept_part))
    return LagNorms(
        torch.tensor([0, *points]), joint, direct, kept, windows=windows, last=last, method=method
    )


def _gathered(
    x: Tensor, before: State, windows: Windows, *, lengths: Tensor, reverse: bool
) -> tuple[Tensor, State, Tensor]:
    """Return each window's inputs (steps, windows, input), first state, and number of steps."""
    samples = torch.tensor([sample for sample, _ in windows.starts])
    begins = torch.tensor([begin for _, begin in windows.starts])
    own = lengths.cpu()[samples]
    last = own - begins
    offset = torch.arange(int(last.max())).unsqueeze(1)
    order = torch.minimum(begins + offset, own - 1)  # a short window repeats its last step
    positions = own - 1 - order if reverse else order
    fed = x[positions.to(x.device), samples.to(x.device)]
    start = tuple(part[positions[0].to(x.device), samples.to(x.device)] for part in before)
    return fed, start, last


def _from_zero(logs: Tensor, points: list[int], last: Tensor) -> Tensor:
    """Return log10 with lag 0 in front, nan beyond each window's end."""
    wide = logs.detach().cpu().to(torch.float64) / LN10
    beyond = torch.tensor(points).unsqueeze(1) > last
    first = torch.zeros(1, wide.shape[1], dtype=torch.float64)
    return torch.cat([first, wide.masked_fill(beyond, math.nan)])


def _lags(longest: int) -> list[int]:
    """Return every lag up to a dozen, then ever fewer, and the longest."""
    if longest <= _MOST_LAGS:
        return list(range(1, longest + 1))
    count = _MOST_LAGS - _DENSE_LAGS
    ratio = (longest / _DENSE_LAGS) ** (1 / count)
    far = [round(_DENSE_LAGS * ratio**power) for power in range(1, count + 1)]
    return sorted({*range(1, _DENSE_LAGS + 1), *far, longest})


def _thinned(lags: list[int], count: int) -> list[int]:
    """Return about `count` of the lags, evenly spaced in their logarithm."""
    longest = lags[-1]
    wanted = {round(longest ** (k / (count - 1))) for k in range(count)}
    return sorted({min(lags, key=lambda lag: abs(lag - target)) for target in wanted})
