"""The table, the rows and the figure of a spectrum, by their data and labels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gradflow.present import plot
from gradflow.present import spectrum_words as words_of
from gradflow.present.spectrum import (
    spectrum_figure,
    spectrum_outputs,
    spectrum_rows,
    spectrum_table,
)
from gradflow.present.theme import alt_text
from gradflow.records.spectrum import SpectrumInput, SpectrumResult
from tests.present.drawn import marks, texts_on_texts, texts_outside, words
from tests.present.spectra import long_spectrum, spectrum_of

CASES = {
    "one": spectrum_of(-0.1),
    "quiet": spectrum_of(-0.1, -0.2, -3.0),
    "half gone": spectrum_of(-0.1, -0.2, gone=2),
    "all gone": spectrum_of(gone=3),
    "one gone": spectrum_of(0.5, gone=1, dimension=1.0),
    "underflow": spectrum_of(-0.1, gone=64, reason="underflow"),
    "chaos": long_spectrum(runs=5),
    "no errors": spectrum_of(0.2, -0.3, error=math.nan, dimension=1.7),
    "neutral": spectrum_of(0.001, -0.5),
    "flat": spectrum_of(0.0, 0.0, error=0.0, dimension=2.0),
    "wide": long_spectrum(1024),
}
each_case = pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())


def dots(ax: Axes) -> dict[str, Line2D]:
    """Return the dots of each kind by the first word of their label."""
    lines = [container[0] for container in ax.containers]
    names = [str(container.get_label()) for container in ax.containers]
    return {name.partition(":")[0]: line for name, line in zip(names, lines, strict=True)}


# the figure


def test_the_dots_are_the_exponents_of_the_record() -> None:
    """What grows and what fades are told apart; numbers count from 1."""
    result = spectrum_of(0.3, 0.1, -0.2, gone=2, dimension=2.5)
    (ax,) = spectrum_figure(result).axes
    found = dots(ax)
    np.testing.assert_array_equal(found["grows"].get_xydata(), [[1, 0.3], [2, 0.1]])
    np.testing.assert_array_equal(found["fades"].get_xydata(), [[3, -0.2]])
    assert found["grows"].get_marker() != found["fades"].get_marker()
    (gone,) = marks(ax, "v")
    np.testing.assert_array_equal(gone.get_xdata(), [4, 5])


def test_bars_are_two_standard_errors() -> None:
    """An error bar reaches two standard errors either way; where none is known it has no length."""
    (ax,) = spectrum_figure(spectrum_of(-0.1, error=0.02)).axes
    (bars,) = ax.containers[0][2]
    np.testing.assert_allclose(bars.get_segments()[0][:, 1], [-0.14, -0.06])
    (ax,) = spectrum_figure(CASES["no errors"]).axes
    (bars,) = ax.containers[0][2]
    assert np.ptp(bars.get_segments()[0][:, 1]) == 0


def test_no_bar_and_no_run_is_cut_off() -> None:
    """The axis reaches as far as two standard errors and the single runs do."""
    for result in (spectrum_of(-0.1, error=5.0), CASES["chaos"]):
        (ax,) = spectrum_figure(result).axes
        low, high = ax.get_ylim()
        finite = np.isfinite(result.exponents)
        bars = 2.0 * np.nan_to_num(result.standard_errors[finite])
        runs = result.by_row[np.isfinite(result.by_row)]
        reach = [*(result.exponents[finite] - bars), *(result.exponents[finite] + bars), *runs]
        assert low < min(reach)
        assert max(reach) < high


def test_the_dimension_is_a_line_where_there_is_one() -> None:
    """A dotted line stands at the Kaplan-Yorke dimension of a chaotic cell, at no other."""
    (ax,) = spectrum_figure(CASES["chaos"]).axes
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"] == [0.27 * 128]
    (ax,) = spectrum_figure(CASES["quiet"]).axes
    assert not [line for line in ax.lines if line.get_linestyle() == ":"]


def test_every_run_stands_behind_the_mean() -> None:
    """Five runs of 128 exponents are 640 small dots."""
    (ax,) = spectrum_figure(CASES["chaos"]).axes
    (behind,) = [line for line in ax.lines if line.get_marker() == "."]
    assert len(behind.get_xdata()) == 5 * 128


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_text_is_cut_or_covered(result: SpectrumResult, style: str) -> None:
    """Every text lies within the figure and on no other."""
    figure = spectrum_figure(result, style=style)
    assert texts_outside(figure) == []
    assert texts_on_texts(figure) == []


@each_case
def test_the_alt_text_tells_the_finding(result: SpectrumResult) -> None:
    """Who cannot see the figure is told what it shows, in the words below it."""
    figure = spectrum_figure(result)
    assert words_of.leading(result) in alt_text(figure)
    assert alt_text(figure).startswith(f"Dot plot of {result.count:,} Lyapunov exponent")


def test_axes_name_quantity_and_unit() -> None:
    """The y axis is in nats per step, the x axis counts exponents of how many."""
    shown = words(spectrum_figure(replace(long_spectrum(8), state_size=64)))
    assert "Lyapunov exponent (nats per step)" in shown
    assert "number of the exponent (of 64)" in shown


# the table


def test_a_short_spectrum_is_shown_whole() -> None:
    """One row per exponent with its error, factor and pace; what is gone is one row."""
    table = spectrum_table(spectrum_of(math.log(2), -math.log(2) / 8, gone=2, dimension=2.0))
    assert table.rows == (
        ("1", "0.693147", "0.01", "2", "doubles in 1"),
        ("2", "-0.0866434", "0.01", "0.917004", "halves in 8"),
        ("3..4", "-inf", "-", "0", "gone at once"),
    )


def test_a_long_spectrum_is_shown_by_its_ends() -> None:
    """Twelve rows, dots, four rows: the CSV has them all."""
    rows = spectrum_table(long_spectrum()).rows
    assert [row[0] for row in rows] == [*map(str, range(1, 13)), "...", "125", "126", "127", "128"]
    assert len(spectrum_rows(long_spectrum())) == 128


def test_what_is_too_fast_to_tell_is_not_called_gone() -> None:
    """Directions that only numbers ran out for have a row of their own, named so."""
    mixed = replace(spectrum_of(-0.1, gone=3), zero_reason=(None, "underflow", "exact", "exact"))
    rows = spectrum_table(mixed).rows
    assert [(row[0], row[4]) for row in rows[1:]] == [
        ("2", "too fast to tell"),
        ("3..4", "gone at once"),
    ]


def test_rows_have_every_digit_and_say_why_one_is_empty() -> None:
    """A CSV row per exponent: -inf and an unknown error are empty, the reason stands beside."""
    rows = spectrum_rows(spectrum_of(1 / 3, gone=1, error=0.1))
    assert rows == [
        {"number": 1, "exponent": 1 / 3, "standard_error": 0.1, "zero_reason": None},
        {"number": 2, "exponent": None, "standard_error": None, "zero_reason": "exact"},
    ]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (spectrum_of(-math.log(2)), "the longest memory halves every step."),
        (spectrum_of(-math.log(2) / 20), "the longest memory halves every 20 steps"),
        (spectrum_of(0.3), "nearby states part, doubling their distance every 2.31 steps"),
        (spectrum_of(0.015), "not told from 0"),
        (spectrum_of(gone=2), "No direction of the state survives."),
    ],
)
def test_the_leading_exponent_is_read_out(result: SpectrumResult, sentence: str) -> None:
    """Memory that fades, distances that grow, or neither within two standard errors."""
    assert sentence in words_of.leading(result)


def test_a_sum_is_named_for_what_it_is_of() -> None:
    """A part of the spectrum has a sum of its own, and no dimension while that is positive."""
    part = replace(spectrum_of(0.3, 0.1, dimension=None), state_size=9)
    assert "The sum of these 2 exponents is 0.4" in words_of.totals(part)
    assert "needs more of them" in words_of.totals(part)
    assert "minus infinity" in words_of.totals(spectrum_of(0.1, gone=1))


def test_conditions_tell_what_was_measured() -> None:
    """Gain, size, input, steps and runs stand in one line."""
    result = replace(
        long_spectrum(runs=5), trajectories=3, fed=SpectrumInput("data", 2, "x.npy", "0" * 64)
    )
    assert words_of.conditions(result) == (
        "recurrent gain 3, state of 128, input x.npy, "
        "2,000 steps after 500 of 5 networks times 3 trajectories"
    )
    assert "gain" not in words_of.conditions(replace(result, gain=None))


def test_a_spectrum_draws_itself_into_any_axes() -> None:
    """`plot.spectrum(result)` is the figure; with an ax of one's own it draws there."""
    own = Figure()
    ax = own.add_subplot()
    assert plot.spectrum(CASES["quiet"], ax) is own
    assert dots(ax).keys() == {"fades"}
    assert alt_text(plot.spectrum(CASES["quiet"])) == alt_text(spectrum_figure(CASES["quiet"]))


def test_outputs_have_one_name() -> None:
    """Table, CSV and figure of the command are called like it."""
    outputs = spectrum_outputs(CASES["quiet"])
    assert list(outputs.tables) == list(outputs.figures) == ["spectrum"]
    assert outputs.notes[0] == words_of.leading(CASES["quiet"])
