"""What the figure of departures says in words, and its curves by cell and gate value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradflow.present.cell_titles import cell_title, short_names
from gradflow.present.decay_words import conditions as decay_conditions
from gradflow.present.decay_words import curve_name
from gradflow.present.numbers import number_text
from gradflow.records import DecayCurve, DecayResult
from gradflow.records.base import FloatArray
from gradflow.records.decay import ExactLine

TITLE = "How far a live candidate takes the decay from its trend"
FEWEST_GAINS = 3  # from which on gains are a sweep
_GROWS = 1e-6  # nats per step
_FORMULAS = {
    "lstm": r"$\rho(f\,I + i\,o\,U)$",
    "gru": r"$\rho(z\,I + (1-z)\,r\,U)$",
}


@dataclass(frozen=True)
class SweepLine:
    """The full paths of one cell and gate value over the candidate's gain, and their exact rate."""

    gate_value: float
    curves: tuple[DecayCurve, ...]
    exact: ExactLine | None

    @property
    def gains(self) -> FloatArray:
        """The candidate gains, rising."""
        return np.array([curve.candidate_gain for curve in self.curves], dtype=np.float64)

    @property
    def rates(self) -> FloatArray:
        """The measured rates in nats per step; nan where there is none."""
        rates = [math.nan if curve.rate is None else curve.rate for curve in self.curves]
        return np.array(rates, dtype=np.float64)

    @property
    def trend_rate(self) -> float:
        """The rate of the trend, ln of the gate value."""
        return math.log(self.gate_value)


@dataclass(frozen=True)
class Sweep:
    """The lines of one cell."""

    cell: str
    title: str
    lines: tuple[SweepLine, ...]

    @property
    def is_exact(self) -> bool:
        """True where the exact rate is known."""
        return any(line.exact is not None for line in self.lines)


def sweeps_of(result: DecayResult) -> tuple[Sweep, ...]:
    """Return the cells that were measured at three candidate gains or more."""
    groups: dict[str, dict[float, list[DecayCurve]]] = {}
    for curve in result.curves:
        if curve.path == "full" and curve.gate_value is not None:
            groups.setdefault(curve.cell, {}).setdefault(curve.gate_value, []).append(curve)
    exact = {(line.cell, line.gate_value): line for line in result.exact_lines}
    names = short_names({curve.cell: None for curve in result.curves})
    return tuple(
        Sweep(
            cell=cell,
            title=cell_title(names[cell]),
            lines=tuple(
                SweepLine(value, _by_gain(curves), exact.get((cell, value)))
                for value, curves in values.items()
            ),
        )
        for cell, values in groups.items()
        if max(map(len, values.values())) >= FEWEST_GAINS
    )


def exact_formula(sweep: Sweep) -> str:
    """Return the exact factor per step as mathtext: the spectral radius of a step at zero."""
    return _FORMULAS.get(sweep.cell, r"$\rho$")


def conditions(result: DecayResult) -> str:
    """Return the settings that the rates depend on, as one line."""
    steps = result.config.get("steps")
    return decay_conditions(result) + (f", T up to {steps:,}" if steps else "")


def caption_of(result: DecayResult) -> str:
    """Return the finding: the greatest departure of each cell, and how exact the exact rate is."""
    sweeps = sweeps_of(result)
    sentences = [_departure_sentence(sweep) for sweep in sweeps]
    curves = [curve for sweep in sweeps for line in sweep.lines for curve in line.curves]
    known = [(curve, *pair) for curve in curves if (pair := _rates(curve)) is not None]
    fading = [abs(rate - exact) for _, rate, exact in known if exact < -_GROWS]
    if fading:
        within = number_text(max(fading), 1)
        sentences.append(
            f"Where a step shrinks the state, measured and exact agree within {within} nats per "
            "step."
        )
    if any(exact > _GROWS and rate < exact - 0.01 for _, rate, exact in known):
        sentences.append(
            "Where it would grow, the state leaves zero, tanh bends it, and the measured factor "
            "stays nearer to 1."
        )
    return " ".join(sentences)


def alt_of(result: DecayResult) -> str:
    """Return the alt text: the kind of chart, and each line's factors at its gains."""
    parts = []
    for sweep in sweeps_of(result):
        lines = [
            f"{curve_name(line.curves[0])} keeps {_factors(line.curves)}" for line in sweep.lines
        ]
        parts.append(f"{sweep.title}: {'; '.join(lines)}.")
    what = "Line chart of the factor per step over the candidate's gain, on a log axis."
    return " ".join([what, *parts])


def _departure_sentence(sweep: Sweep) -> str:
    curves = [curve for line in sweep.lines for curve in line.curves]
    at = 1.0 if any(curve.candidate_gain == 1.0 for curve in curves) else None
    chosen = [
        curve
        for curve in curves
        if curve.departure is not None and at in (None, curve.candidate_gain)
    ]
    if not chosen:
        return f"{sweep.title}: no rates."
    worst = max(chosen, key=lambda curve: abs(curve.departure or 0.0))
    return (
        f"{sweep.title}: at candidate gain {number_text(worst.candidate_gain, 3)} "
        f"{curve_name(worst)} keeps {number_text(worst.factor_per_step, 3)} a step, "
        f"not {number_text(worst.gate_value, 3)}."
    )


def _factors(curves: Sequence[DecayCurve]) -> str:
    """Return the factors at the first gain, at 1 where it was measured, and at the last."""
    shown = [curves[0], *(c for c in curves[1:-1] if c.candidate_gain == 1.0), curves[-1]]
    return ", ".join(
        f"{number_text(curve.factor_per_step, 3)} at gain {number_text(curve.candidate_gain, 3)}"
        for curve in shown
    )


def _by_gain(curves: Sequence[DecayCurve]) -> tuple[DecayCurve, ...]:
    return tuple(sorted(curves, key=lambda curve: curve.candidate_gain or 0.0))


def _rates(curve: DecayCurve) -> tuple[float, float] | None:
    if curve.rate is None or curve.exact_rate is None:
        return None
    return curve.rate, curve.exact_rate
