"""Exact rates of held cells: ln rho of one step's Jacobian at the zero state.

There every slope of tanh is 1 and zero input leaves the state at zero, so that each step is one
and the same matrix:

    LSTM   c_t = (f I + i o U) c_(t-1)          GRU   h_t = (z I + (1-z) r U) h_(t-1)
    RNN    h_t = U h_(t-1)

and its rate is ln of the spectral radius. A run that comes to the zero state has it in the long
run; one that leaves it (a radius above 1, from another start) has not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from gradflow.config import DecaySettings
from gradflow.experiments.held_cells import HeldCell, gate_values, keep_gate
from gradflow.records.base import Check
from gradflow.records.decay import DecayCurve, ExactLine

WIDEST = 512  # units: beyond, all eigenvalues cost more than the run itself
FEWEST_GAINS = 3  # from which on gains are a sweep, and the exact rate is a line
LINE_POINTS = 61
LEAST_GAIN = 1e-30  # below, nothing of it is left beside a gate, and its entries lose digits
# Slopes that differ by less are equal in these dtypes; an estimate by vectors promises 1e-6.
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
ESTIMATED = 1e-5


@dataclass(frozen=True)
class ZeroStateRates:
    """What the rates of one cell follow from.

    `parts` has for each gate value (None for an RNN) the two numbers a and b of a step a I + b U;
    `eigenvalues` are those of U at a candidate gain of 1.
    """

    gate_name: str | None
    parts: dict[float | None, tuple[float, float]]
    eigenvalues: NDArray[np.complex128]

    def rate(self, gate_value: float | None, gain: float) -> float:
        """Return ln rho(a I + b gain U) in nats per step; -inf where nothing is left."""
        keep, through = self.parts[gate_value]
        radius = float(np.abs(keep + through * gain * self.eigenvalues).max())
        return math.log(radius) if radius > 0.0 else -math.inf


def zero_state_rates(cells: Sequence[HeldCell], settings: DecaySettings) -> ZeroStateRates | None:
    """Return the exact rates of a built-in cell; None of others, and of very wide ones.

    Args:
        cells: the held cells of one name; all have one orthogonal matrix, scaled by their gain.
        settings: what was asked for.
    """
    first = cells[0]
    if not first.can_be_stacked or settings.hidden > WIDEST:
        return None
    keep = keep_gate(first.cell)
    values = {held.gate_value: gate_values(held.cell, held.gate_value, settings) for held in cells}
    return ZeroStateRates(
        gate_name=None if keep is None else keep.name,
        parts={value: _parts(gates) for value, gates in values.items()},
        eigenvalues=_unit_eigenvalues(cells),
    )


def with_exact_rate(curve: DecayCurve, rates: ZeroStateRates | None) -> DecayCurve:
    """Return the curve with the exact rate of its zero state, where it is known and not -inf."""
    if rates is None or curve.path != "full" or curve.candidate_gain is None:
        return curve
    if curve.zero_reason == "exact":  # of a block that nothing leads through
        return curve
    rate = rates.rate(curve.gate_value, curve.candidate_gain)
    return replace(curve, exact_rate=rate) if math.isfinite(rate) else curve


def exact_lines(
    name: str, rates: ZeroStateRates | None, settings: DecaySettings
) -> Iterator[ExactLine]:
    """Yield the exact rate over the candidate gain for each gate value of a sweep over gains."""
    gains = settings.candidate_gain
    if rates is None or rates.gate_name is None or len(gains) < FEWEST_GAINS:
        return
    between = np.linspace(min(gains), max(gains), LINE_POINTS)
    at = np.union1d(between, np.array(gains))
    for value in rates.parts:
        if value is not None:
            rate = np.array([rates.rate(value, float(gain)) for gain in at])
            yield ExactLine(name, rates.gate_name, value, at, rate)


def exact_rate_check(curves: Sequence[DecayCurve], settings: DecaySettings) -> Check | None:
    """Return whether the measured rates are the exact ones; None where they need not be.

    They must where the state stays at zero. There the Jacobian is a power of a normal matrix
    (U is orthogonal times its gain), whose spectral norm is the radius to the power T.
    """
    if settings.start != "zero" or settings.norm != "spectral":
        return None
    known = [(c, c.rate, c.exact_rate) for c in curves if c.exact_rate is not None]
    pairs = [(curve, abs(rate - exact)) for curve, rate, exact in known if rate is not None]
    if not pairs:
        return None
    estimated = any(curve.method == "krylov" for curve, _ in pairs)
    allowed = max(TOLERANCE[settings.dtype], ESTIMATED if estimated else 0.0)
    worst = max(error for _, error in pairs)
    return Check(
        name="measured rate is the exact rate of the zero state",
        passed=worst <= allowed,
        detail=f"largest difference {worst:.1e} nats per step ({allowed:g} allowed) over "
        f"{len(pairs)} curves; exact: ln rho(f I + i o U), ln rho(z I + (1-z) r U), ln rho(U)",
    )


def _unit_eigenvalues(cells: Sequence[HeldCell]) -> NDArray[np.complex128]:
    """Return the eigenvalues of the candidate's recurrent matrix, divided by its gain.

    All gains scale one matrix; it is read at the largest, where its entries have all their digits.
    """
    held = max(cells, key=lambda held: held.candidate_gain or 0.0)
    gate, gain = held.cell.candidate_gate, held.candidate_gain or 0.0
    if gain < LEAST_GAIN or gate is None or gate.recurrent is None:
        return np.zeros(1, dtype=np.complex128)  # no live candidate: what is kept is all
    weight = gate.recurrent.weight_of(held.cell)  # type: ignore[arg-type]
    matrix = weight.detach().to("cpu", torch.float64) / gain
    values: NDArray[np.complex128] = torch.linalg.eigvals(matrix).numpy()
    return values


def _parts(gates: dict[str, float]) -> tuple[float, float]:
    """Return a and b of a step a I + b U at the zero state.

    >>> _parts({"forget": 0.9, "input": 0.5, "output": 0.5})
    (0.9, 0.25)
    """
    if "forget" in gates:
        return gates["forget"], gates["input"] * gates["output"]
    if "update" in gates:
        return gates["update"], (1.0 - gates["update"]) * gates["reset"]
    return 0.0, 1.0
