"""An inspection as a table and figures: the verdict first, a panel per layer, nothing cut."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from gradflow.present.inspect import inspect_outputs, inspect_table
from gradflow.present.inspect_figure import lone_points
from gradflow.present.notebook import result_html
from gradflow.records.inspect import Finding, InspectedGate, InspectedLayer, InspectResult
from tests.present.drawn import texts_outside

LAGS = tuple(range(11))


def layer_of(number: int, **changes: object) -> InspectedLayer:
    """A layer that loses a decade in two steps."""
    falling = tuple(-0.5 * lag for lag in LAGS)
    gate = InspectedGate("forget", "keep", 1.0, 0.7, 0.1, 0.9, 0.25, (1, 2, 3, 4), 3.0, 9.0)
    fields = {
        "name": "encoder.rnn", "kind": "lstm", "layer": number, "direction": "forward",
        "input_size": 3, "hidden_size": 5, "projection": None, "parameters": 200,
        "dtype": "float32", "gates": (gate,), "lag": LAGS, "log10_norm": falling,
        "low": falling, "high": falling, "windows": (4,) * 11, "direct_log10_norm": falling,
        "kept_log10_norm": falling, "half_life": 0.6, "horizon": 6.0, "lyapunov": -1.15,
        "sampled": True, "sampling": "12 of 90 windows", "method": "dense",
        "log10_dL_dh": (-3.0, -2.0, None, 0.0),
    }  # fmt: skip
    return InspectedLayer(**{**fields, **changes})


def result_of(*layers: InspectedLayer, findings: tuple[Finding, ...] = ()) -> InspectResult:
    """A result with a verdict of three lines."""
    verdict = ("Verdict: gradient flow is fine; look elsewhere.", "Memory horizon: 6 steps.", "On.")
    return InspectResult(layers=layers, findings=findings, verdict=verdict, input={"given": True})


VANISHING = Finding("GF101", "error", "encoder.rnn, layer 0", "forward", "forget", 6.0, "It is.",
                    "Open it.")  # fmt: skip


def test_the_verdict_is_the_title_and_findings_stand_below():
    """A finding with its place, and what to try."""
    table = inspect_table(result_of(layer_of(0), findings=(VANISHING,)))
    assert table.title.startswith("Verdict: gradient flow is fine; look elsewhere.\nMemory")
    assert table.rows[0][0] == "encoder.rnn, layer 0"
    assert table.notes[0] == "GF101 error [encoder.rnn, layer 0, forward, forget]: It is."
    assert table.notes[1].strip() == "Try: Open it."


def test_a_horizon_that_is_not_reached_is_shown_as_more_than_the_data():
    """Nobody knows how long it is."""
    row = inspect_table(result_of(layer_of(0, horizon=None))).rows[0]
    assert ">10" in row


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("count", [1, 3, 11])
def test_the_figures_have_a_panel_per_layer_and_no_text_outside(count: int, style: str):
    """By lag, by step, and the gates; of very many layers the first eight."""
    result = result_of(*(layer_of(number) for number in range(count)))
    figures = inspect_outputs(result, style=style).figures
    assert list(figures) == ["inspect", "gradient", "gates"]
    for figure in figures.values():
        drawn = [ax for ax in figure.axes if ax.axison]
        assert len(drawn) == min(count, 8)
        assert texts_outside(figure) == []


def lines_of(figure: Figure) -> list[list[float]]:
    """The y data of every line of the first panel."""
    return [list(line.get_ydata()) for line in figure.axes[0].lines]


def test_the_curve_by_lag_and_the_product_of_gates_are_drawn_as_measured():
    """The horizon is a point on the line of a thousandth."""
    lines = lines_of(inspect_outputs(result_of(layer_of(0))).figures["inspect"])
    falling = [-0.5 * lag for lag in LAGS]
    assert lines[0] == falling
    assert lines[1] == falling
    assert lines[-1] == [-3.0]


def test_the_heat_map_has_a_row_per_layer_and_is_drawn_when_asked_for():
    """The top layer above; an exact zero is no colour. Without a loss a note says what it needs."""
    asked = replace(result_of(layer_of(0), layer_of(1)), config={"depth": True})
    figure = inspect_outputs(asked).figures["depth"]
    values = figure.axes[0].images[0].get_array()
    assert values.shape == (2, 4)
    assert values.mask[0].tolist() == [False, False, True, False]
    assert texts_outside(figure) == []
    silent = replace(result_of(layer_of(0, log10_dL_dh=None)), config={"depth": True})
    assert "depth" not in inspect_outputs(silent).figures
    assert "needs a loss" in inspect_table(silent).notes[-2]


def test_a_result_without_gates_and_loss_has_one_figure():
    """A plain RNN from a file."""
    result = result_of(layer_of(0, gates=(), log10_dL_dh=None, direct_log10_norm=None))
    assert list(inspect_outputs(result).figures) == ["inspect"]


def test_a_notebook_shows_it():
    """Figure and table in one piece."""
    page = result_html(result_of(layer_of(0), findings=(VANISHING,)))
    assert "<img" in page
    assert "GF101" in page


def test_a_number_that_stands_alone_is_a_point():
    """A line shows nothing of a step whose neighbours have no gradient, as of a reversed half."""
    nan = math.nan
    lone = lone_points(np.array([0.0, nan, -1.0, -2.0, nan, nan, -3.0]))
    assert np.flatnonzero(lone).tolist() == [0, 6]
    assert not lone_points(np.full(3, nan)).any()
