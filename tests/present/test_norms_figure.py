"""Norms by step or lag on a log axis: nothing is dropped unseen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gradflow.present.log_axis import scale_of
from gradflow.present.norms import NormLabels, norms_figure, norms_sentence
from gradflow.present.theme import alt_text
from gradflow.records.norms import summarize_norms
from tests.field_cases import field_case
from tests.present.drawn import line, marks, texts_on_texts, texts_outside, words

LABELS = NormLabels(title="Gradient norm by lag", norm="||dL/dh||", step="lag")
CASES = {
    "reported": tuple(field_case("norms_with_zeros").arrays.values()),
    "nothing": ((), ()),
    "one": ([5], [0.3]),
    "all zero": (range(3), [0.0, 0.0, 0.0]),
    "all nan": (range(3), [np.nan] * 3),
    "all infinite": (range(3), [np.inf] * 3),
    "negative": (range(4), [1.0, 0.5, -2.0, 0.1]),
    "growing": (range(50), 1.3 ** np.arange(50)),
    "not in order": ([3, 1, 2], [0.125, 0.5, 0.25]),
    "lonely": (range(5), [1.0, np.nan, 0.25, np.nan, 0.0]),
}


def test_the_reported_norms_are_all_in_the_figure():
    """40 values on the line, 20 zeros on the floor, a NaN and an infinity on top, all counted."""
    case = field_case("norms_with_zeros")
    lags, norms = case.arrays["lag"], case.arrays["grad_norm"]
    figure = norms_figure(lags, norms, labels=LABELS)
    (ax,) = figure.axes
    drawn = line(ax, "positive: 40")
    assert_allclose(10 ** drawn.get_ydata()[:40], norms[:40], rtol=1e-14)
    assert np.isnan(drawn.get_ydata()[40:]).all()
    (zeros,), (nan,), (infinite,) = marks(ax, "v"), marks(ax, "x"), marks(ax, "^")
    assert zeros.get_xdata().tolist() == list(range(40, 60))
    assert (nan.get_xdata().tolist(), infinite.get_xdata().tolist()) == ([60], [61])
    text = words(figure)
    for counted in ("positive: 40", "zero: 20", "not a number: 1", "infinite: 1"):
        assert counted in text
    assert "\N{MULTIPLICATION SIGN}0.5 per lag" in text


def test_the_caption_counts_and_names_every_kind():
    """Who reads only the words learns how many zeros there are, and where the NaN is."""
    case = field_case("norms_with_zeros")
    figure = norms_figure(case.arrays["lag"], case.arrays["grad_norm"], labels=LABELS)
    assert alt_text(figure) == (
        "Gradient norm by lag. Of 62 norms 40 are positive (falling by a factor of 0.5 per lag), "
        "20 are zero (the first at lag 40), 1 is infinite (lag 61), 1 is not a number (lag 60)."
    )


def test_zeros_stand_below_every_positive_norm():
    """The floor is no value: it lies under the smallest number, and bears no tick."""
    figure = norms_figure(range(3), [1.0, 1e-12, 0.0])
    (ax,) = figure.axes
    scale = scale_of([np.array([0.0, -12.0])], zeros=1)
    assert marks(ax, "v")[0].get_ydata()[0] < scale.share(-12.0)
    assert min(ax.yaxis.get_majorticklocs()) >= scale.low


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("norms", CASES.values(), ids=CASES.keys())
def test_no_input_crashes_or_overlaps(norms: tuple, style: str):
    """Nothing, one norm, only zeros, only NaN: each has its figure, with every text in place."""
    figure = norms_figure(*norms, labels=LABELS, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []


def test_logarithms_go_below_every_float():
    """A norm of 10^-4000 is drawn at -4000 when its logarithm is given."""
    steps = np.arange(1, 10_001)
    (ax,) = norms_figure(steps, -0.4 * steps, log10=True).axes
    assert line(ax, "positive: 10,000").get_ydata()[-1] == -4000.0


def test_a_value_between_two_gaps_is_seen():
    """Without neighbours there is no line, so it has a marker, in a long series too."""
    norms = np.ones(500)
    norms[100] = norms[102] = np.nan
    (ax,) = norms_figure(np.arange(500), norms).axes
    drawn = line(ax, "positive: 498")
    assert drawn.get_xdata()[drawn.get_markevery()].tolist() == [101]


def test_steps_are_drawn_in_order():
    """Lags may come in any order; the line goes from left to right."""
    (ax,) = norms_figure(*CASES["not in order"]).axes
    assert line(ax, "positive: 3").get_xdata().tolist() == [1, 2, 3]


def test_many_zeros_are_counted_though_not_each_is_drawn():
    """A hundred marks say as much as ten thousand; the legend has the number."""
    figure = norms_figure(range(10_001), [1.0] + [0.0] * 10_000)
    (ax,) = figure.axes
    assert len(marks(ax, "v")[0].get_xdata()) <= 101
    assert "zero: 10,000" in words(figure)


def test_a_negative_norm_is_named_as_what_it_is():
    """No norm is negative, so one that is must be a mistake upstream, and is not hidden."""
    assert norms_sentence(summarize_norms([0, 1, 2], [1.0, -1.0, -2.0])) == (
        "Of 3 norms 1 is positive, 2 are negative, which no norm can be (step 1, 2)."
    )
