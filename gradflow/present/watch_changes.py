"""The moments of a training at which a layer's memory horizon changed for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradflow.present import watch_words as words
from gradflow.records.base import FloatArray, IntArray
from gradflow.records.watch import FlowLayer, Place, WatchRun

_FACTOR = 1.5  # a change is by at least as much, up or down
_LASTING = 3  # samples: their median counts, so that one odd batch is no change
_MOST = 12  # changes; of more none could be read
Rows = Sequence[tuple[int, FlowLayer]]


@dataclass(frozen=True)
class HorizonChange:
    """From `update` on the horizon was about `after`, where it had been about `before`.

    Both are in words: a number of steps, ">59" where it is not reached, "cut at 20".
    """

    update: int
    before: str
    after: str

    @property
    def text(self) -> str:
        """Return both: "3.1 to 18"."""
        return f"{self.before} to {self.after}"


def horizon_changes(run: WatchRun, place: Place) -> tuple[HorizonChange, ...]:
    """Return the updates at which the horizon left the last value told by half as much or more.

    A horizon that is not reached counts as the number of steps that there are.
    """
    rows = [(update, layer) for update, layer in run.of(place) if reach(layer) is not None]
    values = np.array([reach(layer) for _, layer in rows], dtype=np.float64)
    window = _LASTING
    changes = _changes(rows, values, window)
    while len(changes) > _MOST:  # it goes up and down: what lasts longer counts
        window *= 2
        changes = _changes(rows, values, window)
    return changes


def _changes(rows: Rows, values: FloatArray, window: int) -> tuple[HorizonChange, ...]:
    typical = _typical(values, window)
    smooth = values[typical]
    changes, told = [], 0
    for index in range(1, len(rows)):
        if _alike(smooth[index], smooth[told]) or not _holds(smooth, index):
            continue
        begun = next(
            late for late in range(index, len(rows)) if _alike(values[late], smooth[index])
        )
        before, after = (words.horizon_text(rows[typical[i]][1]) for i in (told, index))
        changes.append(HorizonChange(rows[begun][0], before, after))
        told = index
    return tuple(changes)


def reach(layer: FlowLayer) -> float | None:
    """Return the horizon, or how far the profile goes where it is not reached; None without one."""
    if layer.horizon is not None:
        return max(layer.horizon, 1e-3)
    if layer.first_non_finite is not None or all(value is None for value in layer.log10_dL_dh):
        return None
    return float(max(1, layer.steps - 1 if layer.cut_at is None else layer.cut_at))


def _alike(one: float, other: float) -> bool:
    return bool(1.0 / _FACTOR < one / other < _FACTOR)


def _holds(smooth: FloatArray, index: int) -> bool:
    """Return whether the next value is about the same; the last of all has to do.

    So a change is told where the horizon has arrived, and not on its way.
    """
    return index + 1 == len(smooth) or _alike(smooth[index], smooth[index + 1])


def _typical(values: FloatArray, window: int) -> IntArray:
    """Return for each value the index of the median of it and of those that follow it."""
    places = []
    for index in range(len(values)):
        order = np.argsort(values[index : index + window], kind="stable")
        places.append(index + int(order[len(order) // 2]))
    return np.array(places, dtype=np.int64)
