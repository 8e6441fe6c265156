"""The table, the CSV rows, the heat map and the curves of gradient flow through time and depth."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from rich.console import Console

import gradflow
from gradflow.documents import csv_text
from gradflow.errors import UnknownNameError
from gradflow.present.depth import depth_outputs, depth_table, lag_rows
from gradflow.present.depth_curves import curve_scale, depth_curves_figure, layer_color
from gradflow.present.depth_figure import color_scale, depth_figure
from gradflow.present.depth_words import findings, read_words, title
from gradflow.present.theme import alt_text, figure_bytes
from gradflow.records import DepthResult
from tests.present.depths import (
    ALL_ZERO,
    BOTH_WAYS,
    CASES,
    DEEP,
    EQUAL,
    LINKS,
    MASKS,
    depth_map,
    depth_result,
    row,
)
from tests.present.drawn import texts_on_texts, texts_outside, words

each_case = pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())
each_style = pytest.mark.parametrize("style", ["screen", "paper"])


def shown(result: DepthResult, width: int) -> str:
    """Return what a terminal of this width shows."""
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(depth_table(result))
    return stream.getvalue()


def value_at(ax: Axes, lag: int, row: int) -> float:
    """Return the value that the heat map shows at a place of its axes."""
    (image,) = ax.images
    left, right, bottom, top = image.get_extent()
    values = image.get_array()
    columns, rows = values.shape[1], values.shape[0]
    column = int((lag - left) / (right - left) * columns)
    return values[int((row - top) / (bottom - top) * rows), column]


@each_case
@each_style
def test_no_word_of_the_figures_lies_on_another(result: DepthResult, style: str) -> None:
    """Numbers, names, legend and captions have their own places."""
    for figure in (depth_figure(result, style=style), depth_curves_figure(result, style=style)):
        assert texts_on_texts(figure) == []
        assert texts_outside(figure) == []


def test_the_heat_map_has_the_end_on_the_right_and_the_last_layer_on_top() -> None:
    """At each place of the axes stands the norm of that lag and layer; the numbers say the same."""
    plain, linked = depth_figure(LINKS).axes
    for ax, found in ((plain, LINKS.maps[0]), (linked, LINKS.maps[1])):
        names = [label.get_text() for label in plain.get_yticklabels()]
        assert names == ["layer 3", "layer 2", "layer 1", "input", "samples n"]
        assert ax.get_xlim()[0] > ax.get_xlim()[1]
        for place, layer in enumerate((3, 2, 1, 0)):
            for lag in (0, 1, 5, 9):
                assert value_at(ax, lag, place) == found.row(layer).log10_norm[lag]
        written = {tuple(map(round, t.get_position())): t.get_text() for t in ax.texts}
        for (lag, place), text in written.items():
            if place < 4:
                value = found.row(3 - place).log10_norm[lag]
                assert text == ("0" if abs(value) < 0.05 else f"{value:.1f}")
            else:
                assert text == str(found.count[lag])


def test_one_scale_serves_all_panels_and_is_light_where_little_is_felt() -> None:
    """Lightness falls evenly from the smallest norm to the largest, so it reads in grey."""
    scale = color_scale(LINKS)
    assert (scale.vmin, scale.vmax) == (-3.0 - 4.5, 0.0)
    images = [ax.images[0] for ax in depth_figure(LINKS).axes]
    assert {(i.norm.vmin, i.norm.vmax) for i in images} == {(-7.5, 0.0)}
    shades = [to_rgb(images[0].cmap(level)) for level in np.linspace(0, 1, 20)]
    grey = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in shades]
    assert all(np.diff(grey) < 0)


def test_zeros_are_hatched_and_in_the_legend() -> None:
    """What is exactly zero has no colour: the hatched ground shows; elsewhere no entry says so."""
    ax = depth_figure(MASKS).axes[0]
    assert ax.images[0].get_array().mask[:, :6].all()  # lags 9 to 4
    assert not ax.images[0].get_array().mask[:, 6:].any()
    assert ax.patch.get_hatch()
    assert "exactly 0" in words(depth_figure(MASKS))
    assert "exactly 0" not in words(depth_figure(LINKS))
    assert not [t for ax in depth_figure(ALL_ZERO).axes for t in ax.texts if t.get_text() == "inf"]


def test_samples_are_counted_where_they_differ_in_length() -> None:
    """With one length there is no row for n."""
    assert "samples n" in words(depth_figure(LINKS))
    assert "samples n" not in words(depth_figure(EQUAL))
    assert "mean over n samples" in words(depth_figure(LINKS))


def test_the_curves_show_each_layer_with_its_range() -> None:
    """A line per layer, from the end on the right; the band from the smallest to the largest."""
    ax = depth_curves_figure(LINKS).axes[0]
    found = LINKS.maps[0]
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert list(lines) == ["input", "layer 1", "layer 2", "layer 3"]
    for layer in (1, 2, 3):
        assert lines[f"layer {layer}"].get_ydata().tolist() == (
            found.row(layer).log10_norm.tolist()
        )
    assert ax.get_xlim() == (9.0, 0.0)
    scale = curve_scale(LINKS)
    assert scale.low < -7.75
    assert scale.high > 0.25
    assert "3 at 0, 2 at 4, 1 at 9" in words(depth_curves_figure(LINKS))
    assert len({layer_color(layer, 3) for layer in (0, 1, 2, 3)}) == 4


def test_curves_of_zeros_stand_on_the_floor() -> None:
    """A mark for each layer at each lag where its norm is zero for every sample."""
    ax = depth_curves_figure(MASKS).axes[0]
    marks = [
        line for line in ax.lines if line.get_marker() == "v" and line.get_linestyle() == "None"
    ]
    assert len(marks) == 4
    assert all(mark.get_xdata().tolist() == [4, 5, 6, 7, 8, 9] for mark in marks)


@each_case
@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_a_terminal(result: DepthResult, width: int) -> None:
    """At 80 columns, whatever is measured; a row for each layer, the last one first."""
    lines = shown(result, width).splitlines()
    assert max(len(line) for line in lines) <= width


def test_the_table_says_norms_rates_and_n() -> None:
    """At the end, in the middle, at the farthest; n where the samples differ in length."""
    table = depth_table(LINKS)
    headings = [column.line for column in table.columns]
    assert headings[4:7] == ["at the end (n=3)", "4 before (n=2)", "9 before (n=1)"]
    first, second = table.sections
    assert first[0] == (
        "lstm",
        "none",
        "none",
        "layer 3",
        "0.000",
        "-2.000",
        "-4.500",
        "-1.151",
        "0.6021",
    )
    assert second[2][3:5] == ("layer 1", "-0.600")
    assert depth_table(MASKS).sections[0][0][4:] == ("0.000", "zero", "zero", "-", "-")
    assert [column.line for column in depth_table(EQUAL).columns][4:7] == [
        "at the end", "19 before", "39 before",
    ]  # fmt: skip


def test_two_directions_have_no_rate() -> None:
    """There is no one way away from what is read."""
    table = depth_table(BOTH_WAYS)
    assert not any("nats" in column.line for column in table.columns)
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert table.rows[0][3] == "layer 3 reverse"


def test_findings_put_maps_side_by_side() -> None:
    """Links by their factor at the end and far away; masks by what one of them lets through."""
    (links,) = findings(LINKS)
    assert links == (
        "LSTM: with residual links layer 1 is felt 25.1 times more at its last step, and "
        "25.1 times more 2 steps before."
    )
    texts = findings(MASKS)
    assert any(
        "under one mask per sequence layer 3 is felt 3.98 times more 2 steps" in t for t in texts
    )
    assert findings(BOTH_WAYS) == []
    assert findings(EQUAL) == []


@pytest.mark.parametrize(
    ("read", "directions", "expected"),
    [
        ("state", 1, "the last layer's final state"),
        ("state", 2, "the last layer's final states, both directions"),
        ("reverse state", 2, "the last layer's reverse final state"),
        ("output", 1, "the last layer's last output"),
        ("reverse output", 2, "the reverse half of the last layer's last output"),
    ],
)
def test_what_is_read_is_said_in_words(read: str, directions: int, expected: str) -> None:
    """In the title of table and figure."""
    found = depth_map(directions=directions)
    read_map = type(found)(**{**vars(found), "read": read})
    assert read_words(read_map) == expected
    assert title(depth_result(read_map)).endswith(expected)


def test_csv_has_every_number_with_its_n() -> None:
    """A row per stack, layer and lag; a zero is empty with its count beside it."""
    outputs = depth_outputs(MASKS)
    assert list(outputs.tables) == ["depth", "lags"]
    assert list(outputs.figures) == ["depth", "curves"]
    rows = list(csv.DictReader(io.StringIO(csv_text(lag_rows(MASKS)))))
    assert len(rows) == 4 * 4 * 10
    zero = next(r for r in rows if (r["layer"], r["lag"], r["masks"]) == ("2", "5", "step"))
    assert (zero["log10_norm"], zero["zeros"], zero["n"]) == ("", "3", "2")
    assert len(list(csv.DictReader(io.StringIO(csv_text(outputs.rows))))) == 16


@each_case
def test_figures_are_described_and_stored(result: DepthResult) -> None:
    """Alt text names panels and rows; the same figure gives the same bytes."""
    figure = depth_figure(result)
    assert "Heat maps of log10 norms" in alt_text(figure)
    assert "layer 1" in alt_text(figure)
    assert figure_bytes(figure, "svg") == figure_bytes(depth_figure(result), "svg")


def test_an_empty_result_is_drawn_and_tabulated() -> None:
    """Nothing was measured; nothing fails."""
    empty = depth_result(lengths=())
    assert depth_table(empty).rows == ()
    assert texts_on_texts(depth_figure(empty)) == []
    assert texts_on_texts(depth_curves_figure(empty)) == []


def test_a_map_is_drawn_into_ones_own_axes() -> None:
    """One of several is named; the only one need not be."""
    ax = Figure().add_subplot()
    figure = gradflow.plot.depth(LINKS, ax, panel=1)
    assert figure is ax.get_figure()
    assert ax.get_title() == "LSTM, residual links"
    assert gradflow.plot.depth(DEEP, Figure().add_subplot()) is not None
    assert gradflow.plot.depth(LINKS).axes
    assert gradflow.plot.depth_curves(LINKS).axes
    for wrong in (None, 2, -1):
        with pytest.raises(UnknownNameError, match="0: LSTM, no links; 1: LSTM, residual links"):
            gradflow.plot.depth(LINKS, ax, panel=wrong)


def test_a_result_shows_itself_in_a_notebook() -> None:
    """Both figures and the table."""
    page = LINKS._repr_html_()
    assert page.count("<img") == 2
    assert "<table" in page


def test_a_narrow_scale_has_fractions_of_decades() -> None:
    """Between 1 and 10^-0.8 no two swatches are called alike, and none 10^-0."""
    found = depth_map(layers=1, slope=0.0, lengths=(3,))
    narrow = replace(found, rows=tuple(row(r.layer, end=(r.layer - 1) * 0.8, slope=0.0, lags=3)
                                       for r in found.rows))  # fmt: skip
    figure = depth_figure(depth_result(narrow, lengths=(3,)))
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(names) == len(set(names)) > 2
    assert "$10^{-0}$" not in names


def test_zeros_in_both_maps_have_no_factor() -> None:
    """Nothing against nothing is neither more nor less."""
    dead = [depth_map(residual=links, zero_from=0) for links in (False, True)]
    assert findings(depth_result(*dead)) == []


def test_one_step_is_drawn_for_the_input_too() -> None:
    """A line of one point is none."""
    one = depth_result(depth_map(layers=1, lengths=(1,)), lengths=(1,))
    lines = {line.get_label(): line for line in depth_curves_figure(one).axes[0].lines}
    assert lines["input"].get_marker() == "_"
    assert {line.get_label(): line for line in depth_curves_figure(LINKS).axes[0].lines}[
        "input"
    ].get_marker() == ""
