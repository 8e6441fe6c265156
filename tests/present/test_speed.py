"""The table, the rows and the figure of timings, by their data and labels."""

from __future__ import annotations

import numpy as np
import pytest

from gradflow.present import speed_words as words_of
from gradflow.present.speed import speed_figure, speed_outputs, speed_rows, speed_table
from gradflow.present.theme import alt_text
from gradflow.records.speed import SpeedCase, SpeedRatio, SpeedResult, SpeedRow
from tests.present.drawn import texts_on_texts, texts_outside, words

SECONDS = {
    "restart": 12.0,
    "chain": 0.12,
    "chain-vmap": 0.05,
    "unroll": 0.03,
    "gradflow": 0.01,
    "floor": 0.005,
}


def case(hidden: int = 64, steps: int = 200, cell: str = "lstm") -> SpeedCase:
    """Return a case."""
    return SpeedCase(cell=cell, hidden=hidden, steps=steps, dtype="float64", threads=2)


def timings(*cases: SpeedCase, methods: tuple[str, ...] = tuple(SECONDS)) -> SpeedResult:
    """Return a result in which time grows with the cube of the width."""
    rows, ratios = [], []
    for one in cases:
        growth = (one.hidden / 64) ** 3
        for method in methods:
            points = {"floor": 0, "unroll": 1}.get(method, one.steps)
            rows.append(
                SpeedRow(
                    case=one,
                    method=method,
                    seconds=SECONDS[method] * growth,
                    rounds=5,
                    points=points,
                    peak_bytes=None if method == "restart" else 1_234_567,
                    max_relative_error=None if method == "floor" else 2.5e-15,
                )
            )
        ratios.append(SpeedRatio(one, "chain", "gradflow", 12.0))
        ratios.append(SpeedRatio(one, "gradflow", "floor", 2.0))
    return SpeedResult(rows=tuple(rows), ratios=tuple(ratios), notes=("unroll gives one point.",))


ONE = timings(case())
MANY = timings(*(case(hidden, steps) for steps in (50, 200) for hidden in (32, 64, 128)))
CASES = {
    "one": ONE,
    "many": MANY,
    "cells": timings(
        *(case(hidden, cell=cell) for cell in ("lstm", "gru", "rnn") for hidden in (64, 512))
    ),
    "two methods": timings(case(), methods=("gradflow", "floor")),
}
each_case = pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())


def test_every_method_is_a_line_over_the_widths() -> None:
    """A panel for each T; the points of a line are the medians of the record."""
    figure = speed_figure(MANY)
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in panels] == [
        "LSTM, T = 50, float64, 2 threads",
        "LSTM, T = 200, float64, 2 threads",
    ]
    lines = {line.get_label(): line for line in panels[1].lines if line.get_label() in SECONDS}
    assert set(lines) == set(SECONDS)
    np.testing.assert_allclose(
        lines["gradflow"].get_xydata(), [[32, 0.01 / 8], [64, 0.01], [128, 0.08]]
    )
    looks = {(line.get_color(), line.get_marker()) for line in lines.values()}
    assert len(looks) == len(SECONDS)
    assert panels[0].get_yscale() == panels[0].get_xscale() == "log"


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_text_is_cut_or_covered(result: SpeedResult, style: str) -> None:
    """Every text lies within the figure and on no other."""
    figure = speed_figure(result, style=style)
    assert texts_outside(figure) == []
    assert texts_on_texts(figure) == []


def test_axes_name_quantity_and_unit() -> None:
    """Times are read in seconds, milliseconds or microseconds, each with its unit."""
    shown = words(speed_figure(MANY))
    assert "hidden units" in shown
    assert "10 ms" in shown
    assert "12 times as fast as chain" in alt_text(speed_figure(ONE))


def test_the_table_has_a_section_for_each_case() -> None:
    """Each method's median, points, share of gradflow's time, memory and difference."""
    table = speed_table(MANY)
    assert len(table.sections) == 6
    by_method = {row[1]: row for row in speed_table(ONE).rows}
    assert by_method["chain"] == (
        "lstm 64, T = 200, float64, 2 threads", "chain", "120 ms", "200", "12", "1.23 MB",
        "2.5e-15",
    )  # fmt: skip
    assert by_method["floor"][3:] == ("-", "0.5", "1.23 MB", "-")
    assert by_method["restart"][5] == "-"
    assert speed_table(ONE).notes == (
        "lstm 64, T = 200, float64, 2 threads: gradflow is 12 times as fast as chain, "
        "2 times the floor.",
        "unroll gives one point.",
    )


def test_rows_are_those_of_the_document() -> None:
    """The CSV has a row per case and method, and one per ratio, with every digit."""
    outputs = speed_outputs(ONE)
    assert [row["method"] for row in speed_rows(ONE)] == list(SECONDS)
    assert outputs.tables["ratios"][1]["value"] == 2.0
    assert set(outputs.figures) == {"speed"}
    assert SpeedResult.from_json(ONE.to_json()) == ONE


def test_a_case_without_gradflow_has_no_finding() -> None:
    """What was not timed is not compared."""
    result = timings(case(), methods=("chain", "floor"))
    bare = SpeedResult(rows=result.rows, ratios=())
    assert list(words_of.finding(bare)) == []
    assert speed_table(bare).rows[0][4] == "-"
