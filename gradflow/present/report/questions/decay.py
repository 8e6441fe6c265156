"""The words of a report around `gradflow decay`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from gradflow.present import decay_words, paths_words
from gradflow.present.cell_titles import cell_title
from gradflow.present.numbers import number_text
from gradflow.present.report.formula import norm, row
from gradflow.present.report.question import Question, Statement
from gradflow.records import DecayCurve, DecayResult

_ROUNDING = 1e-9  # relative: a larger difference is a difference of level, not of rounding


def decay_findings(result: DecayResult) -> Sequence[str]:
    """Return how near the trend is with a dead candidate, and how far off with a live one."""
    full = [curve for curve in result.curves if curve.path == "full" and curve.steps.size]
    held = [curve for curve in full if curve.gate_value is not None]
    dead = [curve for curve in held if curve.candidate_gain == 0]
    live = [curve for curve in held if curve.candidate_gain]
    sentences = [_dead_sentence(dead)] if dead else []
    sentences += _live_sentences(live)
    sentences += _gain_sentences([curve for curve in full if curve.gate_value is None])
    if result.paths:
        sentences.append(paths_words.answer(result.paths))
    return sentences


def relative_error(curve: DecayCurve) -> float | None:
    """Return the largest |norm / trend - 1| over all T, None where either has no logarithm."""
    if curve.trend_log10 is None:
        return None
    apart = (curve.log10_norm - curve.trend_log10) * math.log(10.0)
    if not np.isfinite(apart).all():
        return None
    return float(np.abs(np.expm1(np.minimum(apart, 700.0))).max())


def _dead_sentence(curves: Sequence[DecayCurve]) -> str:
    powers = " and ".join(dict.fromkeys(f"{decay_words.curve_symbol(c)}^T" for c in curves))
    errors = [relative_error(curve) for curve in curves]
    known = [error for error in errors if error is not None]
    worst = max(known, default=0.0)
    gates = _listed([f"{curve.gate_value:g}" for curve in curves])
    if len(known) == len(curves) and worst <= _ROUNDING:
        how = f"to {number_text(worst, 2)}" if worst else "exactly"
        return f"With a dead candidate, measured equals {powers} {how} for every gate ({gates})."
    rates = [abs(curve.departure) for curve in curves if curve.departure is not None]
    if not rates:
        return f"With a dead candidate no rate could be read (gates {gates})."
    close = max(rates) <= decay_words.ON_TREND
    verb = "fades at the rate of" if close else "is off the rate of"
    amount = "at most " if close else "up to "
    return (
        f"With a dead candidate, measured {verb} {powers}, {amount}{number_text(max(rates), 2)} "
        f"nats per step apart (gates {gates})."
    )


def _live_sentences(curves: Sequence[DecayCurve]) -> Iterator[str]:
    """Yield a sentence per gain: what the smallest gate of each cell keeps a step."""
    for gain in dict.fromkeys(curve.candidate_gain for curve in curves):
        clauses = []
        for cell in dict.fromkeys(curve.cell for curve in curves):
            mine = [c for c in curves if c.candidate_gain == gain and c.cell == cell]
            clauses += [_live_clause(mine)] if mine else []
        yield f"With a live candidate (gain {gain:g}), {'; '.join(clauses)}."


def _live_clause(curves: Sequence[DecayCurve]) -> str:
    least = min(curves, key=lambda curve: curve.gate_value or 0.0)
    place = f"{cell_title(least.cell)} {least.gate_name} gate {least.gate_value:g}"
    if least.first_zero_step is not None:
        return f"{place} is zero from step {least.first_zero_step}"
    if least.factor_per_step is None:
        return f"{place} has no rate"
    return f"{place} keeps {number_text(least.factor_per_step, 3)} a step"


def _gain_sentences(curves: Sequence[DecayCurve]) -> Iterator[str]:
    """Yield a sentence per cell without a keep gate: what each recurrent gain keeps a step."""
    for cell in dict.fromkeys(curve.cell for curve in curves):
        parts = [
            f"{number_text(curve.factor_per_step, 3)} a step"
            + ("" if curve.candidate_gain is None else f" at gain {curve.candidate_gain:g}")
            for curve in curves
            if curve.cell == cell and curve.factor_per_step is not None
        ]
        if parts:
            yield f"{cell_title(cell)}, without a keep gate, keeps {_listed(parts)}."


def _listed(texts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(texts))
    if len(unique) < 2:
        return "".join(unique)
    return f"{', '.join(unique[:-1])} and {unique[-1]}"


_STATE = norm("partial s_T / partial s_0")
DECAY = Question(
    command="decay",
    title="How fast does the state's influence fade when the keep gate is held?",
    statements=(
        Statement(
            (row(_STATE, "=", norm("J_T J_T-1 ... J_1")),),
            "The norm of the product of step Jacobians, with J for the derivative of one state by "
            "the state before; s is c for an LSTM and h for a GRU.",
        ),
        Statement(
            (row(_STATE, "approx f^T"), row(_STATE, "approx z^T")),
            "The trend: the keep gate to the power T (f of an LSTM, z of a GRU). It is the whole "
            "truth where the candidate is dead (gain 0).",
        ),
        Statement(
            (row("ln rho ( f I + i o U )"), row("ln rho ( z I + (1-z) r U )")),
            "The exact rates with a live candidate at the zero state, LSTM and GRU: \u03c1 is the "
            "spectral radius, U the candidate's recurrent weights.",
        ),
    ),
    findings=decay_findings,
    shows="Where the measured line lies on its trend, the gradient runs straight through the keep "
    "gate, and the gate alone decides how long the memory is. Where it lies above, the candidate "
    "carries the rest.",
    shows_not="Gates are held constant here; a trained network opens and closes them. The norm "
    "is that of the direction that is kept best, which a loss need not use: `gradflow inspect` "
    "measures your own model and loss, `gradflow spectrum` every direction.",
    units="Logarithms are base 10; a factor is per step, the half-life in steps, the departure "
    "(measured rate less the trend's) in nats per step.",
    captions={
        "decay": "Solid lines with markers are measured, dashed lines are the trend; a gate value "
        "has the same colour and marker in every figure. The factor at a line's end is what one "
        "step keeps.",
        "departure": "What one step keeps, over the candidate's gain, on a log axis: marks are "
        "measured, lines the exact factor at the zero state, dashed lines the trend. The departure "
        "is the gap between a line and its dashed one.",
        "blocks": "The blocks of the joint Jacobian of a cell whose state has parts: how much of "
        "each part is felt by each other.",
        "paths": "The same norms by path: full (solid), straight through the keep gate (dashed), "
        "all the rest (dotted), and the full path with one gate taken as a constant (thin).",
    },
    in_verdict=2,
)
