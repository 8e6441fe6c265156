"""A log axis for numbers that no float can hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from gradflow.present.log_axis import DecadeFormatter, DecadeLocator, Scale, scale_of


def labels(low: float, high: float) -> list[str]:
    """Return the tick labels of an axis between two log10 values."""
    return [DecadeFormatter()(tick) for tick in DecadeLocator().tick_values(low, high)]


def test_wide_axes_have_whole_powers_of_ten():
    """Over a hundred decades the ticks are 10^-100, 10^-80, ... 1."""
    assert labels(-105, 6)[:2] == ["$10^{-100}$", "$10^{-80}$"]
    assert "1" in labels(-105, 6)


def test_narrow_axes_have_numbers():
    """Over one decade the ticks are 0.1, 0.2, 0.5, 1; over less they are evenly spaced numbers."""
    assert labels(-1.0, 0.1) == ["$10^{-1}$", "0.2", "0.5", "1"]
    assert labels(math.log10(0.8), 0.0) == ["0.8", "0.84", "0.88", "0.92", "0.96", "1"]


def test_far_below_every_float_ticks_are_still_powers():
    """At 10^-5000 no float is left, and half a decade there reads as a power of ten."""
    assert len(labels(-5000.6, -5000.0)) >= 3
    assert all(label.startswith("$10^{-5000") for label in labels(-5000.6, -5000.0))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_every_axis_has_ticks_inside_it(low: float, span: float):
    """Whatever the limits, at least one number is written, and none outside."""
    ticks = DecadeLocator().tick_values(low, low + span)
    assert 1 <= len(ticks) <= 30
    assert all(low - span * 1e-6 <= tick <= low + span * (1 + 1e-6) for tick in ticks)


def test_the_scale_holds_every_finite_value():
    """Zeros, infinities and NaN do not stretch the axis."""
    scale = scale_of([np.array([-100.0, -np.inf, np.nan, np.inf, 0.0])])
    assert -110 < scale.low < -100
    assert 0 < scale.high < 10


def test_nothing_finite_and_a_level_curve_still_have_an_axis():
    """Limits are never equal, and rounding is not blown up to full height."""
    assert scale_of([np.array([-np.inf, np.nan])]) == Scale(-1.0, 0.15)
    level = scale_of([np.array([-3.0, -3.0 + 1e-12])])
    assert level.high - level.low > 0.1


@pytest.mark.parametrize("zeros", [1, 3, 12])
def test_the_floor_of_zeros_lies_below_every_value(zeros: int):
    """However many curves are zero, their rows are apart and under the lowest number."""
    scale = scale_of([np.array([-100.0, 0.0])], zeros=zeros)
    rows = [scale.row_height(row) for row in range(zeros)]
    assert rows == sorted(set(rows))
    assert rows[-1] < scale.share(scale.low) == pytest.approx(scale.floor)
    assert scale.share(scale.foot) == 0.0
    assert scale.floor < 0.5


def test_the_floor_has_no_ticks():
    """Under the lowest value the axis means zero, so no number stands there."""
    ax = Figure().subplots()
    scale = scale_of([np.array([-100.0, 0.0])], zeros=5)
    scale.apply(ax)
    assert min(ax.yaxis.get_majorticklocs()) >= scale.low > scale.foot
