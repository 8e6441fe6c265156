"""Fewer points that draw the same line."""

from __future__ import annotations

import numpy as np
import pytest

from gradflow.present.thinning import line_indices, marker_indices


def test_a_short_curve_is_drawn_whole():
    """Up to the limit no point is left out."""
    assert line_indices(np.zeros(1200)).tolist() == list(range(1200))


def test_what_stands_out_is_kept():
    """One peak, one gap and both ends of a hundred thousand points survive."""
    values = np.linspace(0, -1000, 100_000)
    values[12_345] = 50.0
    values[54_321] = np.nan
    kept = line_indices(values)
    assert len(kept) < 1_500
    assert {0, 12_345, 54_321, 99_999} <= set(kept.tolist())


@pytest.mark.parametrize("count", [1, 2, 8, 9, 1000])
def test_markers_are_few_and_evenly_spaced(count: int):
    """At most nine, whatever the length, and never outside."""
    steps = np.arange(1, count + 1)
    for shift in (0.0, 0.5, 0.99):
        chosen = marker_indices(steps, shift=shift)
        assert 1 <= len(chosen) <= 9
        assert chosen.max() < count


def test_markers_follow_the_steps_not_the_points():
    """With log-spaced steps the markers are still even along the axis."""
    steps = np.unique(np.geomspace(1, 100_000, 500).astype(int))
    chosen = steps[marker_indices(steps)]
    assert np.diff(chosen).max() < 2 * 100_000 / 8
