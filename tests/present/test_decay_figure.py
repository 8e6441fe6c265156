"""The figure of a decay, by its data, its labels and the places of its texts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose

from gradflow.present.decay import decay_figure
from gradflow.present.decay_panel import panel_scale, zero_note
from gradflow.present.decay_words import panels_of
from gradflow.present.palette import gate_color
from gradflow.present.theme import alt_text
from gradflow.records import DecayResult
from tests.present.decays import (
    LIVE_RATE,
    bare_curve,
    decay_of,
    direct_of,
    gainless_curve,
    held_curve,
    two_rows,
    zero_curve,
)
from tests.present.drawn import line, marks, panels, texts_on_texts, texts_outside, words

MANY = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
CASES = {
    "default": two_rows(),
    "many gates": two_rows(MANY, cells=("lstm",)),
    "one gate": decay_of(held_curve(0.9)),
    "one step": two_rows(steps=1),
    "long": two_rows(steps=100_000, cells=("gru",)),
    "grows": decay_of(held_curve(0.9, gain=1.0, rate=LIVE_RATE)),
    "gains of an RNN": decay_of(*[gainless_curve(gain) for gain in (0.5, 0.9, 1.0, 1.1)]),
    "zero": decay_of(*[zero_curve(value) for value in (0.1, 0.5, 0.9)]),
    "underflow": decay_of(zero_curve(0.1, since=40, reason="underflow"), held_curve(0.9)),
    "long name": decay_of(bare_curve("deep/folder/of/experiments/cells.py:make_$my$_cell")),
}
each_case = pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())


def test_measured_and_trend_are_the_numbers_of_the_record():
    """A live cell with f=0.9, i=o=1/2, U=I grows by 1.15 a step, off its trend 0.9^T."""
    curve = held_curve(0.9, gain=1.0, rate=LIVE_RATE)
    (ax,) = panels(decay_figure(decay_of(curve))).values()
    measured, trend = line(ax, "f=0.9"), line(ax, "trend f=0.9")
    assert_allclose(measured.get_ydata(), curve.log10_norm, rtol=0, atol=0)
    assert_allclose(trend.get_xdata(), [0, 1, 100])
    assert_allclose(trend.get_ydata(), [0, math.log10(0.9), 100 * math.log10(0.9)], rtol=1e-15)
    assert measured.get_linestyle() == "-"
    assert trend.get_linestyle() == "--"
    assert "f=0.9: \N{MULTIPLICATION SIGN}1.15" in words(ax.get_figure())


def test_a_panel_shows_one_cell_and_one_gain():
    """Two cells with a dead and a live candidate make four panels, named by what they hold."""
    assert list(panels(decay_figure(two_rows()))) == [
        "LSTM, candidate gain 0",
        "LSTM, candidate gain 1",
        "GRU, candidate gain 0",
        "GRU, candidate gain 1",
    ]


def test_a_gate_value_has_one_colour_in_every_panel():
    """The colour of 0.5 is the same for f and z, dead and live, in the legend of any report."""
    for ax in panels(decay_figure(two_rows())).values():
        for value in (0.1, 0.5, 0.9):
            (name,) = {f"f={value}", f"z={value}"} & {str(item.get_label()) for item in ax.lines}
            assert to_hex(line(ax, name).get_color()) == gate_color(value)


def test_curves_of_a_panel_differ_in_marker_too():
    """On a grey print the marker still tells ten gates apart."""
    ax = panels(decay_figure(CASES["many gates"]))["LSTM, candidate gain 0"]
    assert len({line(ax, f"f={value:g}").get_marker() for value in MANY}) >= len(MANY) - 1


def test_the_axis_goes_on_below_the_smallest_float():
    """0.1^100000 is drawn at -100000 and its axis reads as a power of ten."""
    ax = panels(decay_figure(CASES["long"]))["GRU, candidate gain 0"]
    assert line(ax, "z=0.1").get_ydata()[-1] == pytest.approx(-100_000, rel=1e-15)
    assert ax.get_ylim()[0] < -100_000
    assert "$10^{-100000}$" in [label.get_text() for label in ax.get_yticklabels()]


def test_a_long_curve_is_drawn_from_few_points_and_markers():
    """A hundred thousand steps need no hundred thousand points on paper."""
    ax = panels(decay_figure(CASES["long"]))["GRU, candidate gain 0"]
    drawn = line(ax, "z=0.5")
    assert len(drawn.get_xdata()) < 2_000
    assert len(drawn.get_markevery()) <= 9
    assert drawn.get_xdata()[-1] == 100_000


def test_the_y_axis_names_the_quantity():
    """The label is the norm that was measured, of the state that was measured."""
    frobenius = replace(held_curve(0.9), state="joint", norm="frobenius")
    (ax,) = panels(decay_figure(decay_of(frobenius))).values()
    assert r"\partial s_T\,/\,\partial s_0\|_F" in ax.get_ylabel()
    (ax,) = panels(decay_figure(decay_of(held_curve(0.9)))).values()
    assert r"\partial c_T\,/\,\partial c_0\|_2" in ax.get_ylabel()


def test_the_direct_path_is_drawn_only_where_it_is_a_line_of_its_own():
    """With constant gates it lies on the trend, and the legend says so; else it is dotted."""
    full = held_curve(0.9, gain=1.0, rate=math.log(0.95))
    figure = decay_figure(decay_of(full, direct_of(full)))
    (ax,) = panels(figure).values()
    assert "f=0.9, direct" not in [item.get_label() for item in ax.lines]
    assert "the direct path lies on it" in words(figure)
    wandering = replace(direct_of(full), log10_norm=full.log10_norm - 0.02 * full.steps)
    (ax,) = panels(decay_figure(decay_of(full, wandering))).values()
    assert line(ax, "f=0.9, direct").get_linestyle() == ":"
    same = replace(direct_of(full), log10_norm=full.log10_norm)
    (ax,) = panels(decay_figure(decay_of(full, same))).values()
    assert "f=0.9, direct" not in [item.get_label() for item in ax.lines]


def test_an_rnn_is_drawn_against_its_recurrent_gain():
    """A plain RNN has no gate; g^T is its reference, in the colour of that number."""
    figure = decay_figure(CASES["gains of an RNN"])
    (ax,) = panels(figure).values()
    assert ax.get_title(loc="left") == "RNN, recurrent gain g"
    assert_allclose(line(ax, "trend g=1.1").get_ydata()[-1], 100 * math.log10(1.1), rtol=1e-15)
    assert "reference $g^{\\,T}$" in words(figure)
    assert to_hex(line(ax, "g=0.9").get_color()) == gate_color(0.9)


def test_a_cell_without_gates_has_a_curve_and_no_trend():
    """A user's cell that declares nothing is drawn as it is, its name kept as text."""
    figure = decay_figure(CASES["long name"])
    (ax,) = panels(figure).values()
    assert [item.get_label() for item in ax.lines] == ["measured"]
    assert "make_$my$_cell" in ax.get_title(loc="left")


def test_exact_zeros_are_marked_at_the_floor_and_said():
    """dh_T/dh_0 of an LSTM without weights is 0: three marked curves, no empty panel."""
    figure = decay_figure(CASES["zero"])
    (ax,) = panels(figure).values()
    floor = marks(ax, "v")
    assert len(floor) == 3
    heights = {float(item.get_ydata()[0]) for item in floor}
    assert len(heights) == 3
    scale = panel_scale(panels_of(CASES["zero"]))
    assert max(heights) < scale.share(-100.0)  # below every value that has a logarithm
    assert "3 of 3 curves exactly zero from T=1" in words(figure)
    assert "f=0.1: zero" in words(figure)


def test_an_underflow_is_not_called_an_exact_zero():
    """The mark begins at the step of the underflow, and the note says what it is."""
    (panel,) = panels_of(CASES["underflow"])
    assert zero_note(panel) == "1 of 2 curves zero by underflow from T=40"
    (ax,) = panels(decay_figure(CASES["underflow"])).values()
    (mark,) = marks(ax, "v")
    assert min(mark.get_xdata()) == 40
    assert np.isnan(line(ax, "f=0.1").get_ydata()[-1])


def test_what_is_not_a_number_is_marked_at_the_ceiling():
    """NaN and infinity keep a place in the panel and in the legend."""
    curve = held_curve(0.5)
    values = curve.log10_norm.copy()
    values[50:60], values[60:] = np.inf, np.nan
    figure = decay_figure(decay_of(replace(curve, log10_norm=values, rate=None)))
    (ax,) = panels(figure).values()
    assert min(marks(ax, "^")[0].get_xdata()) == 51
    assert min(marks(ax, "x")[0].get_xdata()) == 61
    assert "not a number" in words(figure)
    assert "infinite" in words(figure)
    assert "f=0.5: nan" in words(figure)


def test_the_caption_says_where_the_trend_is_the_truth_and_where_not():
    """The finding stands in words: dead candidates on the trend, gate 0.1 keeps 0.55 when live."""
    text = words(decay_figure(two_rows(cells=("lstm",)))).replace("\n", " ")
    assert "Measured and trend agree exactly: LSTM, candidate gain 0." in text
    assert "LSTM, candidate gain 1: f=0.1 keeps 0.55 a step, not 0.1." in text


def test_the_alt_text_states_the_finding_of_every_panel():
    """Who cannot see the figure is told the quantity and each factor per step."""
    alt = alt_text(decay_figure(two_rows(cells=("lstm",))))
    assert alt.startswith("Line chart of ||dc_T/dc_0||_2 over T on a log axis, 2 panels.")
    assert "LSTM, candidate gain 1: f=0.1 keeps 0.55 a step, f=0.5 keeps 0.75 a step" in alt
    assert "is zero from T=1" in alt_text(decay_figure(CASES["zero"]))
    assert "is 10^-0.0458 at T=1" in alt_text(decay_figure(decay_of(held_curve(0.9, steps=1))))


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_text_lies_on_another_or_is_cut(result: DecayResult, style: str):
    """Labels at the lines' ends move apart; titles and captions fit; nothing leaves the page."""
    figure = decay_figure(result, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []


def test_a_result_without_curves_is_an_empty_figure():
    """Nothing measured is nothing drawn, and no crash."""
    assert panels(decay_figure(decay_of())) == {}
