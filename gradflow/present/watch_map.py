"""The numbers of a watched training's heat map: shades, and where columns and ticks stand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from gradflow.present import watch_words as words
from gradflow.present.thinning import marker_indices
from gradflow.records.base import FloatArray
from gradflow.records.watch import FlowLayer

_COLUMNS, _ROWS = 400, 256  # of a heat map; more could not be seen
Profiles = Sequence[tuple[int, FlowLayer]]


def profile_map(rows: Profiles, state: str) -> tuple[FloatArray, FloatArray]:
    """Return updates, and log10 of the gradient against its sample's largest (steps, updates).

    -inf is an exact zero, nan where there is no such step or no finite number. Of a long training
    samples are left out evenly, of many steps every so many.
    """
    kept = [rows[index] for index in marker_indices(np.arange(len(rows)), _COLUMNS)]
    longest = longest_of(rows)
    stride = max(1, math.ceil(longest / _ROWS))
    distances = np.arange(0, longest, stride)
    values = np.full((len(distances), len(kept)), math.nan)
    for column, (_, layer) in enumerate(kept):
        logs = relative(layer, state)
        there = distances < len(logs)
        values[there, column] = logs[distances[there]]
    return np.array([update for update, _ in kept], dtype=np.float64), values


def relative(layer: FlowLayer, state: str) -> FloatArray:
    """Return a profile by distance 0, 1, ..., against its largest value."""
    curve = words.curve_of(layer, state) or ()
    logs = np.array([-math.inf if value is None else value for value in curve], dtype=np.float64)
    if layer.first_non_finite is not None or not np.isfinite(logs).any():
        return np.full(len(logs), math.nan if layer.first_non_finite is not None else -math.inf)
    relative: FloatArray = logs - logs[np.isfinite(logs)].max()
    return relative


def longest_of(rows: Profiles) -> int:
    """Return how many steps the longest profile has, at least 1."""
    return max(1, *(len(layer.log10_dL_dh) for _, layer in rows), 1)


def edges_of(updates: FloatArray) -> FloatArray:
    """Return where each sample's column begins and ends: halfway to its neighbours."""
    if len(updates) == 1:
        return np.array([updates[0] - 0.5, updates[0] + 0.5])
    middles = (updates[1:] + updates[:-1]) / 2
    first, last = 2 * updates[0] - middles[0], 2 * updates[-1] - middles[-1]
    return np.concatenate([[first], middles, [last]])


def ticks_of(updates: FloatArray) -> FloatArray:
    """Return whole updates from the first to the last: columns reach farther, and they do not."""
    found = MaxNLocator(6, integer=True, min_n_ticks=1).tick_values(updates[0], updates[-1])
    inside: FloatArray = found[(found >= updates[0]) & (found <= updates[-1])]
    return inside
