"""Decays in closed form: what the figures and tables of `decay` are tested on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradflow.records import Check, DecayCurve, DecayResult

_GATES = {"lstm": "forget", "gru": "update"}
CONFIG = {
    "hidden": 64,
    "start": "random",
    "input_gate": "coupled",
    "output_gate": 0.5,
    "reset_gate": 0.5,
    "dtype": "float64",
}
LIVE_RATE = math.log(0.9 + 0.25)
"""ln rho(f I + i o U) of an LSTM with f=0.9, i=o=0.5 and U=I: it grows."""


def held_curve(
    value: float,
    *,
    cell: str = "lstm",
    gain: float = 0.0,
    steps: int = 100,
    rate: float | None = None,
) -> DecayCurve:
    """Return the curve e^(T rate) beside the trend value^T; without a rate it is the trend."""
    at = np.arange(1, steps + 1)
    trend = math.log(value)
    slope = trend if rate is None else rate
    return DecayCurve(
        cell=cell,
        gate_name=_GATES.get(cell, "keep"),
        gate_value=value,
        gate_min=value,
        gate_max=value,
        candidate_gain=gain,
        state="c" if cell == "lstm" else "h",
        path="full",
        norm="spectral",
        steps=at,
        log10_norm=at * slope / math.log(10),
        trend_log10=at * trend / math.log(10),
        rate=slope if steps > 1 else None,
        trend_rate=trend,
        half_life=-math.log(2) / slope if slope < 0 and steps > 1 else None,
    )


def direct_of(curve: DecayCurve) -> DecayCurve:
    """Return the direct path of a curve whose gate is constant: the trend itself."""
    assert curve.trend_log10 is not None
    return replace(
        curve, path="direct", log10_norm=curve.trend_log10, rate=curve.trend_rate, half_life=None
    )


def zero_curve(
    value: float, *, since: int = 1, reason: str = "exact", state: str = "h", steps: int = 100
) -> DecayCurve:
    """Return a curve that is zero from step `since` on."""
    curve = held_curve(value, steps=steps)
    zero = curve.steps >= since
    return replace(
        curve,
        state=state,
        log10_norm=np.where(zero, -np.inf, curve.log10_norm),
        rate=None,
        half_life=None,
        first_zero_step=since,
        zero_reason=reason,
    )


def gainless_curve(gain: float, *, steps: int = 100) -> DecayCurve:
    """Return the curve g^T of a plain RNN: no keep gate, a recurrent gain."""
    curve = held_curve(gain, cell="rnn", steps=steps)
    return replace(
        curve,
        gate_name=None,
        gate_value=None,
        gate_min=None,
        gate_max=None,
        candidate_gain=gain,
        trend_log10=None,
        trend_rate=None,
    )


def bare_curve(cell: str) -> DecayCurve:
    """Return the curve of a user's cell that declares no gate: no gain and no trend."""
    return replace(gainless_curve(0.8), cell=cell, candidate_gain=None)


def decay_of(*curves: DecayCurve, notes: Sequence[str] = ()) -> DecayResult:
    """Return a result of these curves, with a check that passed."""
    checks = (Check("autograd agrees", True, "largest relative error 1e-14"),)
    return DecayResult(curves=curves, notes=tuple(notes), checks=checks, config=dict(CONFIG))


def two_rows(
    gates: Sequence[float] = (0.1, 0.5, 0.9),
    *,
    cells: Sequence[str] = ("lstm", "gru"),
    steps: int = 100,
) -> DecayResult:
    """Return the default question: each cell with a dead and with a live candidate, both paths.

    The live rate is ln(f + i o) with i = 1 - f and o = 1/2, which is exact for U = I.
    """
    curves: list[DecayCurve] = []
    for cell in cells:
        for gain in (0.0, 1.0):
            for value in gates:
                rate = math.log(value + (1 - value) / 2) if gain else None
                full = held_curve(value, cell=cell, gain=gain, steps=steps, rate=rate)
                curves += [full, direct_of(full)]
    return decay_of(*curves)
