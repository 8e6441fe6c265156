"""The tables, the CSV rows and the figure of a comparison of initializations."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

import numpy as np
import pytest
from matplotlib.axes import Axes
from rich.console import Console

from gradflow.documents import csv_text
from gradflow.present.init_panels import init_color, text_color
from gradflow.present.inits import inits_outputs, inits_rows, inits_table
from gradflow.present.inits_figure import inits_figure
from gradflow.present.theme import alt_text
from gradflow.records import Distribution, GateFlow, InitFlow, InitsResult, PerSeed
from gradflow.settings.inits import DEFAULT_SCHEMES
from tests.present.drawn import texts_on_texts, texts_outside, words

STEPS = np.arange(1, 301)


def spread(middle: float) -> Distribution:
    """Return a distribution around a number."""
    shares = (0.8, 0.9, 1.0, 1.05, 1.1)
    values = tuple(min(middle * share, 0.5 * (1 + middle)) for share in shares)
    return Distribution(middle, values[0], values[-1], values)


def flow(
    init: str,
    factor: float,
    *,
    cell: str = "lstm",
    horizons: Sequence[int | None] | None = None,
    keep: float | None = 0.5,
) -> InitFlow:
    """Return an initialization whose norm is `factor` to the power T, a little more or less."""
    ends = (factor / 1.1, factor, 1.1 * factor)
    low, middle, high = (STEPS * math.log10(value) for value in ends)
    gone = -3 / math.log10(factor) if factor < 1 else math.inf
    reached = math.ceil(gone) if gone <= STEPS[-1] else None
    gates = ()
    if keep is not None:
        gates = (GateFlow("forget", "keep", spread(0.1), spread(keep), spread(keep), 0.1, 1, 0.3),)
    return InitFlow(
        cell=cell,
        init=init,
        what=("words",),
        state="c" if cell == "lstm" else "h",
        norm="spectral",
        steps=STEPS,
        log10_norm=middle,
        log10_low=low,
        log10_high=high,
        rates=PerSeed(tuple(math.log(value) for value in ends)),
        horizons=PerSeed(tuple(horizons) if horizons else (reached,) * 3),
        spectral_radii=PerSeed((factor,) * 3),
        singular_values=np.linspace(1.2 * factor, 0, 16),
        gates=gates,
        time_constant=None if keep is None else spread(-1 / math.log(keep)),
    )


def result(*flows: InitFlow, notes: Sequence[str] = ()) -> InitsResult:
    """Return a result of these initializations."""
    config = {"hidden": 64, "seeds": 3, "input": "normal", "start": "random"}
    return InitsResult(inits=flows, notes=tuple(notes), config=config)


FACTORS = np.linspace(0.6, 1.02, len(DEFAULT_SCHEMES))
USUAL = [flow(name, float(value)) for name, value in zip(DEFAULT_SCHEMES, FACTORS, strict=True)]
PLAIN = [flow(name, 0.7, cell="rnn", keep=None) for name in ("he", "xavier")]
CASES = {
    "default": result(*USUAL),
    "two cells": result(*USUAL, *[flow(f.init, 0.8, cell="gru") for f in USUAL], *PLAIN),
    "one": result(flow("he", 0.7)),
    "plain": result(*PLAIN),
    "grows": result(flow("forget-bias:5", 1.3), flow("orthogonal-per-gate:1.5+chrono:1000", 0.99)),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def shown(case: InitsResult, width: int) -> str:
    """Return what a terminal of this width shows."""
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(inits_table(case))
    return stream.getvalue()


def panel(case: InitsResult, title: str) -> Axes:
    """Return the panel of a title."""
    (found,) = [ax for ax in inits_figure(case).axes if ax.get_title(loc="left") == title]
    return found


# table


def test_a_row_has_the_numbers_of_its_initialization():
    """0.7 a step: half in 1.943 steps, a thousandth after 20."""
    (row,) = inits_table(CASES["one"]).rows
    assert row == ("lstm", "he", "-46.47", "0.7", "0.636..0.77", "1.943", "20", "20")
    (start,) = inits_table(CASES["one"]).more[0].rows
    assert start[2:5] == ("0.4", "0.5", "0.55")
    assert start[-2:] == ("0.84", "0.7")


def test_what_is_not_reached_is_said():
    """Past the last step there is no number: > 300, and null with a reason in CSV and JSON."""
    case = result(flow("chrono:100", 0.99), flow("he", 0.96, horizons=(250, None, None)))
    first, second = inits_table(case).rows
    assert (first[-2], first[-1]) == ("> 300", "> 300")
    assert (second[-2], second[-1]) == ("> 300", "250..> 300")
    rows = inits_rows(case)
    assert rows[0]["horizon"] is None
    assert rows[0]["horizon_reason"] == (
        "not reached within 300 steps: 10^-1.31 is left, the limit is 0.001"
    )
    assert (rows[1]["horizon_low"], rows[1]["horizon_high"]) == (250, None)


def test_a_gradient_that_grows_has_no_half_life():
    """The word stands where the number would."""
    assert inits_table(CASES["grows"]).rows[0][5] == "grows"


def test_a_plain_rnn_has_no_columns_for_gates():
    """Columns of dashes say nothing: what is left is the first step's Jacobian."""
    (start,) = inits_table(CASES["plain"]).more
    assert start.title == "First step's Jacobian"
    assert start.rows[0] == ("rnn", "he", "0.84", "0.7")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["default", "two cells", "one", "plain"])
def test_every_initialization_has_one_line_in_each_table(name: str, width: int):
    """At 80 columns the cell moves above its rows; nothing is cut."""
    lines = shown(CASES[name], width).splitlines()
    assert max(len(line) for line in lines) <= width
    for entry in CASES[name].inits:
        rows = [line for line in lines if entry.init in line.split()]
        cells = {other.cell for other in CASES[name].inits if other.init == entry.init}
        assert len(rows) == 2 * len(cells)


def test_notes_stand_below():
    """What chrono gives and what the snippet sets is read after the numbers."""
    assert shown(result(USUAL[0], notes=["A note."]), 80).rstrip().endswith("A note.")


# csv


def test_csv_has_a_table_of_each_kind():
    """One row per initialization, gate, step and singular value, with every digit."""
    outputs = inits_outputs(CASES["default"])
    assert list(outputs.tables) == ["inits", "gates", "curves", "singular_values"]
    count = len(DEFAULT_SCHEMES)
    sizes = [len(rows) for rows in outputs.tables.values()]
    assert sizes == [count, count, 300 * count, 16 * count]
    first = next(csv.DictReader(io.StringIO(csv_text(outputs.rows))))
    assert float(first["log10_norm"]) == USUAL[0].log10_norm[-1]
    assert float(first["keep_gate_q50"]) == 0.5
    plain = next(csv.DictReader(io.StringIO(csv_text(inits_rows(CASES["plain"])))))
    assert plain["keep_gate"] == plain["time_constant_q50"] == ""


# figure


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_word_of_the_figure_lies_on_another(case: InitsResult, style: str):
    """Names right of the rows, labels at the curves' ends, titles and axes: each has its place."""
    figure = inits_figure(case, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []


def test_a_gated_cell_has_four_panels_and_a_plain_one_two():
    """What there is to show: no gate, no time constant."""
    titles = [ax.get_title(loc="left") for ax in inits_figure(CASES["two cells"]).axes]
    assert titles == [
        "LSTM: norm over T",
        "LSTM: forget gate over the run",
        "LSTM: time constant, and steps until gone",
        "LSTM: first step's singular values",
        "GRU: norm over T",
        "GRU: forget gate over the run",
        "GRU: time constant, and steps until gone",
        "GRU: first step's singular values",
        "RNN: norm over T",
        "RNN: first step's singular values",
    ]


def test_a_curve_is_the_median_and_stays_in_its_panel():
    """log10 of the norm against T; what is far below the threshold leaves at the foot."""
    ax = panel(CASES["one"], "LSTM: norm over T")
    (line,) = [entry for entry in ax.lines if entry.get_label() == "he"]
    x, y = line.get_data()
    np.testing.assert_array_equal(x, STEPS)
    inside = np.asarray(y) > -6
    np.testing.assert_allclose(y[inside], CASES["one"].inits[0].log10_norm[inside])
    assert ax.get_ylim()[0] == pytest.approx(-6, abs=0.5)
    assert np.min(y) >= ax.get_ylim()[0] - 1.5


def test_zeros_leave_at_the_foot_of_the_panel():
    """-inf has no place on the axis; the curve ends at the foot and no warning is given."""
    entry = flow("he", 0.7)
    entry.log10_norm[10:] = -np.inf
    entry.log10_low[10:] = -np.inf
    ax = panel(result(entry), "LSTM: norm over T")
    (line,) = [item for item in ax.lines if item.get_label() == "he"]
    assert np.isfinite(line.get_ydata()).all()


def test_the_bars_are_the_quantiles():
    """Thin from 5% to 95%, thick from 25% to 75%, a dot at the median."""
    ax = panel(CASES["one"], "LSTM: forget gate over the run")
    thin, thick, dot = (list(line.get_xdata()) for line in ax.lines)
    assert thin == pytest.approx([0.4, 0.55])
    assert thick == pytest.approx([0.45, 0.525])
    assert dot == pytest.approx([0.5])


def test_a_diamond_is_where_the_gradient_is_gone_and_an_arrow_where_it_is_not():
    """20 steps for 0.7 a step; past the end of the run an arrow points on."""
    gone = panel(CASES["one"], "LSTM: time constant, and steps until gone").lines[-1]
    assert (gone.get_marker(), list(gone.get_xdata())) == ("D", [20.0])
    kept = panel(result(flow("chrono:100", 0.99)), "LSTM: time constant, and steps until gone")
    assert (kept.lines[-1].get_marker(), list(kept.lines[-1].get_xdata())) == (">", [300.0])


def test_an_initialization_has_one_colour_everywhere():
    """In every panel the same; among the usual ones no two are alike, and other names have one."""
    colors = [init_color(name) for name in DEFAULT_SCHEMES]
    assert len(set(colors)) == len(colors)
    assert init_color("he+forget-bias:2") == init_color("he+forget-bias:2")
    assert text_color("xavier") < init_color("xavier")


def test_the_words_say_who_is_gone_first():
    """The caption names the shortest and the longest; the alt text has every number."""
    text = words(inits_figure(CASES["default"])).replace("\n", " ")
    assert "Soonest gone: LSTM torch-default (14 steps)" in text
    assert "longest kept: LSTM as-commonly-copied (10^2.58 left at T=300)" in text
    assert "RNN: he 20 steps, xavier 20 steps." in alt_text(inits_figure(CASES["plain"]))
    assert "Soonest" not in words(inits_figure(CASES["one"]))


def test_for_two_cells_a_figure_still_fits_a_page():
    """Rows stand closer: eight panels of eleven initializations in 8.5 inches."""
    figure = inits_figure(
        result(*USUAL, *[flow(f.init, 0.8, cell="gru") for f in USUAL]), style="paper"
    )
    assert figure.get_figheight() <= 8.5
    assert texts_on_texts(figure) == []


def test_a_gradient_that_is_never_gone_is_explained_in_the_legend():
    """An arrow at the last step, and what it means."""
    lasting = result(flow("forget-bias:5", 1.02), flow("he", 0.7))
    assert "not gone by the last step" in words(inits_figure(lasting))
    assert "not gone by" not in words(inits_figure(result(flow("he", 0.7))))
