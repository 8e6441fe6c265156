"""Sizes and files of every figure."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import matplotlib
import pytest
from matplotlib.figure import Figure

from gradflow.errors import UnknownNameError
from gradflow.present.decay import decay_figure
from gradflow.present.layout import panel_title
from gradflow.present.theme import figure_bytes, shortened, text_width, theme_of, wrapped
from tests.present.decays import bare_curve, decay_of, held_curve, two_rows
from tests.present.drawn import texts_on_texts, texts_outside

HEADLESS = """
import sys
import numpy as np
from gradflow.present.norms import norms_figure
from gradflow.present.layout import panel_title
from gradflow.present.theme import figure_bytes
figure = norms_figure([0, 1, 2, 3], [1.0, 0.0, np.nan, np.inf])
assert figure_bytes(figure, "png").startswith(b"\\x89PNG")
assert b"<svg" in figure_bytes(figure, "svg")
print(sorted({"tkinter", "matplotlib.pyplot", "torch"} & set(sys.modules)))
"""


@pytest.mark.parametrize("backend", [None, "TkAgg", "agg"])
def test_figures_need_no_display(backend: str | None):
    """Without DISPLAY, and with a backend for windows asked for, files are made all the same."""
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    environment.pop("MPLBACKEND", None)
    if backend is not None:
        environment["MPLBACKEND"] = backend
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HEADLESS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_result_gives_the_same_bytes(ending: str):
    """No date and no random id, so a file changes only when the numbers do."""
    result = two_rows((0.5,), cells=("lstm",), steps=20)
    first, second = (figure_bytes(decay_figure(result), ending) for _ in range(2))
    assert first == second
    other = figure_bytes(decay_figure(two_rows((0.6,), cells=("lstm",), steps=20)), ending)
    assert other != first


def test_a_users_own_style_changes_nothing():
    """A matplotlibrc with other fonts and colours leaves the file as it is."""
    result = decay_of(held_curve(0.5))
    plain = figure_bytes(decay_figure(result), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        assert figure_bytes(decay_figure(result), "svg") == plain


def test_styles_are_one_and_two_columns_wide():
    """On paper one panel fills a column of 3.25 inches, several fill 6.75; the screen has more."""
    one, two = decay_of(held_curve(0.9)), two_rows(cells=("lstm",))
    assert decay_figure(one, style="paper").get_figwidth() == 3.25
    assert decay_figure(two, style="paper").get_figwidth() == 6.75
    assert decay_figure(two).get_figwidth() > 6.75


def test_a_png_has_the_pixels_of_its_style():
    """6.75 inches at 300 dots are 2025 pixels."""
    data = figure_bytes(decay_figure(two_rows(cells=("lstm",), steps=5), style="paper"))
    assert struct.unpack(">I", data[16:20]) == (2025,)


def test_svg_and_pdf_need_no_font_of_the_reader():
    """Letters are outlines in SVG, and embedded in PDF as TrueType."""
    figure = decay_figure(decay_of(held_curve(0.5)))
    assert b"<text" not in figure_bytes(figure, "svg")
    assert b"/FontFile2" in figure_bytes(figure, "pdf")


def test_an_unknown_style_or_format_offers_the_nearest():
    """The message names what there is."""
    with pytest.raises(UnknownNameError, match="Did you mean 'paper'"):
        theme_of("papr")
    with pytest.raises(UnknownNameError, match="Did you mean 'svg'"):
        figure_bytes(Figure(), "svgz")


def test_wrapped_lines_fit_and_lose_no_word():
    """A caption is broken between words, each line no wider than the page."""
    text = "how much of the state at step 0 is still felt at step T " * 5
    lines = wrapped(text, 3.0, 10)
    assert " ".join(lines).split() == text.split()
    assert all(text_width(line, 10) <= 3.0 for line in lines)
    assert len(lines) > 3


def test_a_long_name_keeps_its_end():
    """Of path/to/cells.py:make_cell the function says more than the path."""
    short = shortened("some/very/long/path/to/cells.py:make_cell", 1.5, 10)
    assert short.endswith("make_cell")
    assert short.startswith("\N{HORIZONTAL ELLIPSIS}")
    assert text_width(short, 10) <= 1.5
    assert shortened("lstm", 1.5, 10) == "lstm"


def test_a_wide_panel_title_has_two_lines():
    """It is broken where a name ends, or between file and function; what is short stays whole."""
    theme = theme_of("screen")
    assert panel_title("LSTM, candidate gain 0", 4.0, theme) == "LSTM, candidate gain 0"
    two = panel_title("minimal_gated_unit.py:make_cell, candidate gain 0", 2.4, theme)
    assert two == "minimal_gated_unit.py:\nmake_cell, candidate gain 0"
    named = panel_title("unit.py:make_cell, candidate gain 0", 2.4, theme)
    assert named == "unit.py:make_cell,\ncandidate gain 0"
    cut = panel_title("a_name_without_any_end_at_all_that_nobody_wants, gain 0", 2.4, theme)
    assert cut.startswith("\N{HORIZONTAL ELLIPSIS}")
    assert cut.endswith("nobody_wants,\ngain 0")


def test_panels_make_room_for_titles_of_two_lines():
    """The figure grows by a line, and nothing lies on anything."""
    short = decay_figure(decay_of(bare_curve("cell.py:make")), style="paper")
    name = "a_file_with_a_long_name.py:make_a_cell_of_some_kind"
    long = decay_figure(decay_of(bare_curve(name)), style="paper")
    assert long.get_figheight() > short.get_figheight()
    assert texts_on_texts(long) == texts_outside(long) == []
