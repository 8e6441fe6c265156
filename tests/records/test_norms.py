"""Norms sorted by what a logarithm can say of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.errors import ShapeError
from gradflow.records.norms import log10_of_norms, summarize_norms
from tests.field_cases import field_case

anything = st.floats(allow_nan=True, allow_infinity=True)


def test_a_geometric_series_has_its_factor_as_slope():
    """Norms 3 * 0.5^t fall by log10(0.5) a step, however small they get."""
    steps = np.arange(2000)
    summary = summarize_norms(steps, math.log10(3) + steps * math.log10(0.5), log10=True)
    assert summary.log10_slope == pytest.approx(math.log10(0.5), rel=1e-12)
    assert summary.factor_per_step == pytest.approx(0.5, rel=1e-12)
    assert summary.smallest_positive == 0.0  # 10^-601 is below every float; its log10 is not
    assert summary.smallest_log10 == pytest.approx(-601.28, abs=0.01)


def test_the_reported_norms_are_sorted_and_counted():
    """40 positive norms, 20 exact zeros from lag 40 on, a NaN and an infinity; fit on positive."""
    case = field_case("norms_with_zeros")
    summary = summarize_norms(case.arrays["lag"], case.arrays["grad_norm"])
    expected = case.expected
    assert summary.count == expected["rows"]
    assert summary.positive == expected["finite_positive"]
    assert summary.zero == expected["exact_zero"]
    assert summary.nan == expected["nan"]
    assert summary.infinite == expected["inf"]
    assert summary.first_zero_step == expected["first_zero_lag"]
    assert (summary.nan_steps, summary.infinite_steps) == ((60.0,), (61.0,))
    assert summary.smallest_positive == pytest.approx(
        expected["smallest_positive"], rel=case.tolerance
    )
    assert summary.log10_slope == pytest.approx(
        expected["slope_log10_per_step"], rel=case.tolerance
    )


@given(st.lists(anything, max_size=30))
def test_no_norm_is_lost(norms: list[float]):
    """Every value is in exactly one kind, whatever it is."""
    summary = summarize_norms(range(len(norms)), norms)
    kinds = (summary.positive, summary.zero, summary.infinite, summary.nan, summary.negative)
    assert sum(kinds) == summary.count == len(norms)
    assert summary.nan == sum(math.isnan(norm) for norm in norms)
    assert summary.negative == sum(norm < 0 for norm in norms)
    json.dumps(summary.to_json(), allow_nan=False)


@given(st.lists(st.floats(1e-300, 1e300), max_size=30))
def test_norms_and_their_logarithms_are_read_alike(norms: list[float]):
    """The caller may pass either: the counts are the same and so is the fit."""
    steps = range(len(norms))
    plain = summarize_norms(steps, norms)
    logs = summarize_norms(steps, log10_of_norms(norms), log10=True)
    assert plain == logs


def test_a_fit_needs_two_steps():
    """One positive norm, or many at one step, has no slope; nor has nothing."""
    assert summarize_norms([3], [0.5]).log10_slope is None
    assert summarize_norms([3, 3], [0.5, 0.1]).log10_slope is None
    assert summarize_norms([], []).log10_slope is None
    assert summarize_norms([0, 1], [0.0, 0.5]).factor_per_step is None


def test_a_subnormal_norm_is_not_zero():
    """5e-324 is the smallest float there is, and it is positive."""
    summary = summarize_norms([0, 1], [5e-324, 0.0])
    assert (summary.positive, summary.zero, summary.first_zero_step) == (1, 1, 1.0)


def test_steps_and_norms_must_pair():
    """The message says what belongs together and which shapes came."""
    with pytest.raises(
        ShapeError, match=r"each norm belongs to a step; got shapes \(2,\) and \(3,\)"
    ):
        summarize_norms([0, 1], [1.0, 0.5, 0.25])
    with pytest.raises(ShapeError, match="lists of one length"):
        summarize_norms([[0, 1]], [[1.0, 0.5]])
