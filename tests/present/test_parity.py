"""The table and the figure of a parity: what they say, by their data and labels."""

from __future__ import annotations

import io

import pytest
import torch
from rich.console import Console
from torch import nn

from gradflow.experiments.parity import parity
from gradflow.present.notebook import result_html
from gradflow.present.parity import parity_figure, parity_outputs, parity_rows
from gradflow.present.theme import alt_text
from gradflow.records.parity import ParityResult
from tests.data import parity_modules, parity_steps


@pytest.fixture(scope="module")
def broken() -> ParityResult:
    """A textbook's GRU beside torch's."""
    return parity(nn.GRUCell(3, 5), parity_steps.d2l_gru)


@pytest.fixture(scope="module")
def whole() -> ParityResult:
    """Ours beside the NumPy twin."""
    return parity("lstm", "numpy.lstm")


def shown(result: ParityResult, width: int) -> str:
    """Return the table as a terminal of a width shows it."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(parity_outputs(result).table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_cell_is_cut_at_any_width(broken: ParityResult, width: int):
    """Every place, name and number is whole; no line is wider than the terminal."""
    text = shown(broken, width)
    assert max(map(len, text.splitlines())) <= width
    for word in ("bias_ih[10:15] + bias_hh[10:15]", "W_xz.T", "DIFFERS", "2.22045e-16"):
        assert word in text
    plain = " ".join(text.split())
    assert "resets before the matrix product, U_n (r * h)" in plain


def test_the_table_says_the_answer_first(broken: ParityResult, whole: ParityResult):
    """The title is the verdict in two words, with both names."""
    title = parity_outputs(broken).table.title
    assert title == "Parity is broken: A is GRUCell, B is d2l_gru"
    assert parity_outputs(whole).table.title == "Parity holds: A is lstm, B is numpy.lstm"


def test_gates_that_both_show_have_rows(whole: ParityResult):
    """Ours and NumPy's show four each."""
    rows = parity_outputs(whole).table.rows
    gates = [row[1] for row in rows if row[0] == "gate"]
    assert gates == ["input", "forget", "output", "candidate"]
    assert {row["quantity"] for row in parity_rows(whole) if row["group"] == "gate"} == set(gates)


def test_the_figure_has_a_mark_for_every_quantity(broken: ParityResult):
    """Dots at the errors, bars at what is allowed, the names on the axis."""
    figure = parity_figure(broken)
    (ax,) = figure.axes
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[:2] == ["state h", "gradient by x"]
    dots = [line for line in ax.get_lines() if line.get_marker() in "oD" and line.get_marker()]
    assert len(dots) == len(broken.comparisons)
    passed = [comparison.passed for comparison in broken.comparisons]
    assert [dot.get_marker() == "o" for dot in dots] == passed  # in grey too
    errors = [comparison.error for comparison in broken.comparisons]
    assert [10 ** float(dot.get_xdata()[0]) for dot in dots] == pytest.approx(errors)
    assert "Parity is broken" in alt_text(figure)


def test_zeros_and_no_numbers_have_a_place():
    """An exact zero is an open triangle at the left edge, what is no number a cross."""
    cell = nn.LSTMCell(3, 5)
    same = parity_figure(parity(cell, cell, weights="own")).axes[0]
    assert {line.get_marker() for line in same.get_lines()} >= {"<"}
    none = parity_figure(parity("torch.LSTMCell", parity_modules.NotANumber())).axes[0]
    assert "x" in {line.get_marker() for line in none.get_lines()}


def test_drawing_changes_no_result(broken: ParityResult):
    """The same record before and after, and the same figure twice."""
    before = broken.to_json()
    first = parity_outputs(broken).figure_files(["svg"])
    assert parity_outputs(broken).figure_files(["svg"]) == first
    assert broken.to_json() == before


def test_a_notebook_shows_figure_tables_and_checks(broken: ParityResult):
    """One piece of HTML, names escaped."""
    html = result_html(broken)
    assert "<img alt=" in html
    assert "Where each gate&#x27;s weights stand" in html
    assert "failed</strong>: states agree" in html


def test_torch_is_not_needed_to_show_what_is_stored(broken: ParityResult):
    """The record is plain numbers and text."""
    assert not any(isinstance(value, torch.Tensor) for value in vars(broken).values())
