"""Labels at the ends of lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from gradflow.present.end_labels import EndLabel, draw_end_labels, spread

heights = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(sorted)


@given(heights, st.floats(0.001, 0.3))
def test_labels_keep_their_distance_and_their_order(wanted: list[float], gap: float):
    """No two are nearer than the gap (where there is room), and none leaves the panel."""
    places = spread(wanted, gap, 0.0, 1.0)
    least = min(gap, 1.0 / max(1, len(wanted) - 1))
    assert all(above - below >= least * (1 - 1e-9) for below, above in pairwise(places))
    assert min(places) >= -1e-9
    assert max(places) <= 1 + 1e-9


@given(heights, st.floats(0.001, 0.3))
def test_labels_with_room_stay_where_they_belong(wanted: list[float], gap: float):
    """Labels that are apart already do not move."""
    apart = all(above - below >= gap for below, above in pairwise(wanted))
    places = spread(wanted, gap, -10.0, 11.0)
    moved = max(abs(place - want) for place, want in zip(places, wanted, strict=True))
    assert (moved < 1e-9) == apart or moved < 1e-9


def test_crowded_labels_move_as_little_as_can_be():
    """Three labels at one height spread evenly around it: the least sum of squared moves."""
    assert spread([0.5, 0.5, 0.5], 0.1, 0.0, 1.0) == pytest.approx([0.4, 0.5, 0.6])


def test_spare_labels_go_first_where_there_is_no_room():
    """Forty labels do not fit a panel; the curves keep theirs, the trends lose theirs."""
    ax = Figure(figsize=(4, 3)).subplots()
    curves = [EndLabel(f"f={index}", index / 20) for index in range(20)]
    trends = [EndLabel(f"trend {index}", index / 20, spare=True) for index in range(20)]
    draw_end_labels(ax, [*curves, *trends], size=10)
    assert {text.get_text() for text in ax.texts} == {label.text for label in curves}
