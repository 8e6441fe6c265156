"""Where windows of a run begin and how long they are followed, within a budget of time."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gradflow.cells import CellLike

__all__ = ["BUDGET", "Windows", "choose_windows"]

BUDGET = 3.4e12  # multiply-adds for all cells of a model: one to two minutes of one core in float64
_DENSE_LAGS = 12  # every lag up to here, then ever fewer
_MOST_LAGS = 40
_FEWEST = 3  # windows, for a spread
_LEAST = 24  # steps of the first of them, whatever they cost
_FIRST_SHARE = 0.6  # of a budget that three whole windows do not fit into, for the longest one


@dataclass(frozen=True)
class Windows:
    """Where windows of a run begin: `starts` holds (sample, step of its own reading order).

    `steps` says how many steps of each are followed; `lags` are the lags to report, from 1;
    `available` is how many windows there would be in all, `longest` how many steps the longest.
    """

    starts: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    lags: tuple[int, ...]
    available: int
    longest: int

    @property
    def is_sample(self) -> bool:
        """Whether these are only some of all windows: of every sample, from every step."""
        return len(self.starts) < self.available

    @property
    def is_cut(self) -> bool:
        """Whether even the longest window is followed for a part of its steps alone."""
        return max(self.steps) < self.longest


def choose_windows(
    cell: CellLike, lengths: Tensor, *, samples: int = 4, starts: int = 3, budget: float = BUDGET
) -> Windows:
    """Return windows that fit into a budget: the longest samples, from a few steps each.

    Where three whole windows are too dear, the first has most of the budget and two more share the
    rest: few lags of several windows tell how far one of them is from their mean.

    Args:
        cell: what is measured: a step costs its state times its recurrent weights for a window.
        lengths: (batch,) steps of each sample.
        samples, starts: how many at most, and from how many steps of each.
        budget: multiply-adds in all.
    """
    longest = int(lengths.max())
    order = lengths.argsort(descending=True, stable=True).tolist()[:samples]
    owns = {sample: int(lengths[sample]) for sample in order}
    step = sum(cell.part_sizes) * (len(cell.gates) + 1) * cell.hidden_size**2
    affordable = int(budget / step)  # steps
    whole = [
        (sample, index * owns[sample] // starts) for index in range(starts) for sample in order
    ]
    whole = list(dict.fromkeys(whole))
    asked = [owns[sample] - begin for sample, begin in whole]
    fewest = min(_FEWEST, len(whole))
    if sum(asked[:fewest]) > affordable:
        first = max(_LEAST, round(affordable * _FIRST_SHARE))
        caps = [first, *[max(_LEAST, affordable - first) // 2] * (_FEWEST - 1)]
        taken = {place: min(n, cap) for place, n, cap in zip(whole, asked, caps, strict=False)}
    else:
        taken, spent = {}, 0
        for place, count in zip(whole, asked, strict=True):
            if spent + count <= affordable:
                taken[place], spent = count, spent + count
    most = max(taken.values())
    lags = tuple(lag for lag in _lags(longest) if lag < most)
    return Windows(tuple(taken), tuple(taken.values()), (*lags, most), int(lengths.sum()), longest)


def _lags(longest: int) -> list[int]:
    """Return every lag up to a dozen, then ever fewer, and the longest."""
    if longest <= _MOST_LAGS:
        return list(range(1, longest + 1))
    count = _MOST_LAGS - _DENSE_LAGS
    ratio = (longest / _DENSE_LAGS) ** (1 / count)
    far = [round(_DENSE_LAGS * ratio**power) for power in range(1, count + 1)]
    return sorted({*range(1, _DENSE_LAGS + 1), *far, longest})
