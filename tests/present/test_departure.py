"""The figure of a sweep over candidate gains, by its data, its labels and its words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from gradflow.present.decay import decay_outputs
from gradflow.present.decay_words import shown_panels
from gradflow.present.departure_figure import departure_figure
from gradflow.present.departure_words import alt_of, caption_of, sweeps_of
from gradflow.present.palette import gate_color
from gradflow.records import DecayResult
from gradflow.records.decay import ExactLine
from tests.present.decays import bare_curve, decay_of, held_curve
from tests.present.drawn import line, panels, texts_on_texts, texts_outside, words

GAINS = (0.0, 0.5, 1.0, 2.0, 3.0)


def exact(value: float, gain: float) -> float:
    """ln rho(f I + i o U) with U = gain I, i = 1 - f, o = 1/2; for z and r = 1/2 it is the same."""
    return math.log(value + 0.5 * (1 - value) * gain)


def sweep(*values: float, cells: tuple[str, ...] = ("lstm", "gru")) -> DecayResult:
    """A sweep whose measured rates are the exact ones up to a factor of 1, and 1 beyond."""
    curves, lines = [], []
    at = np.linspace(0, 3, 13)
    for cell in cells:
        for value in values:
            for gain in GAINS:
                rate = exact(value, gain)
                curve = held_curve(value, cell=cell, gain=gain, rate=min(rate, 0.0))
                curves.append(replace(curve, exact_rate=rate))
            rates = np.array([exact(value, float(gain)) for gain in at])
            lines.append(ExactLine(cell, curve.gate_name or "", value, at, rates))
    return replace(decay_of(*curves), exact_lines=tuple(lines))


USUAL = sweep(0.1, 0.5, 0.9)
CASES = {
    "usual": USUAL,
    "one cell": sweep(0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, cells=("lstm",)),
    "no exact": replace(USUAL, exact_lines=()),
}


def test_marks_lines_and_trends_are_the_numbers_of_the_record() -> None:
    """log10 of the factor per step: measured at the gains, exact between them, the trend level."""
    ax = panels(departure_figure(USUAL))["LSTM"]
    measured, known, trend = (line(ax, name) for name in ("f=0.1", "exact f=0.1", "trend f=0.1"))
    assert list(measured.get_xdata()) == list(GAINS)
    assert measured.get_linestyle() == "None"
    assert 10 ** measured.get_ydata()[2] == pytest.approx(0.55)
    assert 10 ** known.get_ydata()[-1] == pytest.approx(1.45)
    assert len(known.get_xdata()) == 13
    assert list(trend.get_ydata()) == [pytest.approx(-1.0)] * 2


def test_a_gate_value_has_its_colour() -> None:
    """In the marks, in the exact line, for f and for z."""
    for ax in panels(departure_figure(USUAL)).values():
        for item in ax.lines:
            name = str(item.get_label())
            if "=" in name and not name.startswith("trend"):
                assert to_hex(item.get_color()) == gate_color(float(name.split("=")[1]))


def test_the_caption_says_what_a_live_candidate_keeps() -> None:
    """0.55 a step and not 0.1 at gain 1; and where the exact rate is not the measured one."""
    text = caption_of(USUAL)
    assert "LSTM: at candidate gain 1 f=0.1 keeps 0.55 a step, not 0.1." in text
    assert "agree within 0 nats per step" in text
    assert "stays nearer to 1" in text
    assert "LSTM: f=0.1 keeps 0.1 at gain 0, 0.55 at gain 1, 1 at gain 3;" in alt_of(USUAL)


def test_two_gains_are_no_sweep() -> None:
    """The default question has no such figure; three gains have it, and it comes first."""
    two = decay_of(*[held_curve(0.5, gain=gain) for gain in (0.0, 1.0)])
    assert sweeps_of(two) == ()
    assert list(decay_outputs(two).figures) == ["decay"]
    outputs = decay_outputs(USUAL)
    assert list(outputs.figures) == ["departure", "decay"]
    assert len(outputs.tables["exact"]) == 6 * 13
    assert sweeps_of(decay_of(bare_curve("cell.py:make"))) == ()


def test_of_many_gains_two_are_drawn_as_curves() -> None:
    """A panel for each of nine gains would say less; the caption counts what is left out."""
    assert [panel.gain for panel in shown_panels(USUAL)] == [0.0, 1.0] * 2
    text = words(decay_outputs(USUAL).figures["decay"]).replace("\n", " ")
    assert "6 panels of other candidate gains are left out" in text


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())
def test_no_text_lies_on_another_or_is_cut(result: DecayResult, style: str) -> None:
    """Names at the ends of lines move apart."""
    figure = departure_figure(result, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []
