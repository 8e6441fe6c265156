"""Rates: the slope over the second half, what has no slope, and which steps are reported."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.experiments.rates import fit_rate, half_life, report_points

slopes = st.floats(-20, 20, allow_subnormal=False)


@given(slopes, st.floats(-100, 100), st.integers(2, 300))
def test_the_rate_of_a_line_is_its_slope(slope: float, level: float, last: int) -> None:
    """Whatever the level, a straight line has its slope, from T = 2 on."""
    steps = np.arange(1, last + 1)
    found = fit_rate(steps, level + slope * steps)
    # round-off of the values, seen over at least one step
    assert found == pytest.approx(slope, abs=1e-12 * (abs(level) + last * abs(slope) + 1))


@pytest.mark.parametrize("last", [4, 5, 40, 41])
def test_only_the_second_half_counts(last: int) -> None:
    """What happens before T/2 is a transient: any slope there leaves the rate alone."""
    steps = np.arange(1, last + 1)
    bend = last / 2
    values = np.where(steps >= bend, -2.0 * steps, 30.0 - 7.0 * steps)
    assert fit_rate(steps, values) == pytest.approx(-2.0, rel=1e-13)


@pytest.mark.parametrize("last", [4, 40])
def test_the_step_at_half_time_counts(last: int) -> None:
    """t >= T/2, its first step included: moving that one point moves the slope."""
    steps = np.arange(1, last + 1)
    values = -1.0 * steps
    values[steps == last // 2] += 1.0
    assert fit_rate(steps, values) != pytest.approx(-1.0, abs=1e-4)
    values[steps < last // 2] += 5.0
    moved = fit_rate(steps, values)
    values[steps < last // 2] -= 5.0
    assert moved == fit_rate(steps, values)


def test_the_slope_is_by_least_squares_over_steps_as_they_are_spaced() -> None:
    """Log-spaced points weigh as they are, not as if they were evenly spaced."""
    steps = np.array([1, 10, 50, 60, 80, 100])
    values = np.array([9.0, 9.0, 1.0, 0.5, 0.9, -2.0])
    late = steps >= 50
    expected = np.polyfit(steps[late], values[late], 1)[0]
    assert fit_rate(steps, values) == pytest.approx(expected, rel=1e-12)


def test_what_is_zero_or_no_number_has_no_slope() -> None:
    """-inf and nan are left out; with fewer than two points left there is no rate."""
    steps = np.arange(1, 11)
    values = -0.5 * steps
    values[[5, 7]] = -math.inf, math.nan
    assert fit_rate(steps, values) == pytest.approx(-0.5, rel=1e-13)
    assert fit_rate(steps, np.full(10, -math.inf)) is None
    assert fit_rate(steps, np.full(10, math.nan)) is None
    assert fit_rate(np.array([1]), np.array([-0.5])) is None
    only_one = np.full(10, -math.inf)
    only_one[9] = -3.0
    assert fit_rate(steps, only_one) is None


def test_half_lives() -> None:
    """-ln 2 / rate: one step for halving, 6.58 for 0.9, none where nothing falls."""
    assert half_life(math.log(0.5)) == pytest.approx(1.0, rel=1e-15)
    assert half_life(math.log(0.9)) == pytest.approx(6.578813478960585, rel=1e-12)
    assert half_life(None) is half_life(0.0) is half_life(0.3) is half_life(-1e-15) is None
    assert half_life(-1e-9) == pytest.approx(math.log(2) * 1e9, rel=1e-15)


@given(st.integers(1, 10**6), st.one_of(st.none(), st.integers(1, 2000)))
def test_points_ascend_from_the_first_step_to_the_last(steps: int, points: int | None) -> None:
    """At most as many as asked for, ascending, each once, T always among them."""
    found = report_points(steps, points)
    assert found == sorted(set(found))
    assert found[-1] == steps
    assert found[0] == 1 or len(found) == 1
    limit = points if points is not None else steps if steps <= 10_000 else 1000
    assert len(found) <= limit


def test_up_to_ten_thousand_steps_all_are_reported() -> None:
    """10,000 steps are 10,000 points; one more step makes them log-spaced."""
    assert report_points(10_000, None) == list(range(1, 10_001))
    found = report_points(10_001, None)
    assert len(found) < 1000
    ratios = np.diff(np.log(found[200:]))
    assert ratios.max() < 2 * ratios.min() + 0.1


def test_more_points_than_steps_are_the_steps() -> None:
    """Asking for more than there is gives all there is."""
    assert report_points(7, 100) == [1, 2, 3, 4, 5, 6, 7]
    assert report_points(7, 1) == [7]


def test_few_reported_steps_still_have_a_rate():
    """Of seven log-spaced steps up to 20000 one lies in the second half: the last two tell."""
    steps = np.array(report_points(20_000, 7))
    assert np.count_nonzero(steps >= 10_000) == 1
    assert fit_rate(steps, -0.5 * steps) == pytest.approx(-0.5, rel=1e-13)
    ended = -0.5 * steps
    ended[-1] = -math.inf
    assert fit_rate(steps, ended) is None
