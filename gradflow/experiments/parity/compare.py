"""Holding two runs and two sets of gradients against each other, quantity by quantity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from gradflow.checkpoints.sides import STANDARD_ORDER, Run, Weights
from gradflow.experiments.parity.bench import Sided
from gradflow.experiments.parity.mapping import Pair
from gradflow.records.parity import Comparison

# Derivatives by differences: rounding leaves 1e-12 of the loss, truncation somewhat more.
DIFFERENCES_TOLERANCE = 1e-7
STATE, GATE = "state", "gate"
INPUT_GRADIENT, STATE_GRADIENT = "input gradient", "state gradient"
PARAMETER_GRADIENT = "parameter gradient"
_READS = {
    "weight_ih": "weights on x",
    "weight_hh": "weights on h",
    "bias_ih": "bias beside x",
    "bias_hh": "bias beside h",
    "bias": "bias",
}


def compare_runs(a: Run, b: Run, tolerance: float) -> list[Comparison]:
    """Return the comparisons of every part of the state and of every gate that both show."""
    pairs = [(STATE, part, a.states[part], b.states[part]) for part in a.states if part in b.states]
    pairs += [(GATE, gate, a.gates[gate], b.gates[gate]) for gate in a.gates if gate in b.gates]
    return [by_step(group, name, one, other, tolerance) for group, name, one, other in pairs]


def compare_gradients(pair: Pair, a: Sided, b: Sided, tolerance: float) -> list[Comparison]:
    """Return the comparisons of dL by x, by the first state and by the weights."""
    if a.by_input is None or b.by_input is None:
        return []
    if "finite differences" in (pair.a.way, pair.b.way):
        tolerance = max(tolerance, DIFFERENCES_TOLERANCE)
    found = [by_step(INPUT_GRADIENT, "dL/dx", a.by_input, b.by_input, tolerance)]
    for part, one in (a.by_state or {}).items():
        whole = compared(STATE_GRADIENT, f"dL/d{part}_0", one, (b.by_state or {})[part], tolerance)
        found.append(whole)
    return [*found, *_by_weight(pair, a.by_weight or {}, b.by_weight or {}, tolerance)]


def by_step(group: str, quantity: str, one: Tensor, other: Tensor, tolerance: float) -> Comparison:
    """Compare (time, ...) with (time, ...), and say at which step they part."""
    scale = size_of(one)
    errors = [distance(x, y) for x, y in zip(one, other, strict=True)]
    beyond = [step for step, error in enumerate(errors, start=1) if not error <= tolerance * scale]
    whole = max(errors, key=lambda error: math.inf if math.isnan(error) else error)
    return Comparison(
        group=group,
        quantity=quantity,
        error=None if math.isnan(whole) else whole,
        tolerance=tolerance,
        scale=scale,
        errors=tuple(None if math.isnan(error) else error for error in errors),
        first_step=beyond[0] if beyond else None,
        reason="one side is no number" if math.isnan(whole) else None,
    )


def compared(group: str, quantity: str, one: Tensor, other: Tensor, tolerance: float) -> Comparison:
    """Compare two tensors that have no steps."""
    error = distance(one, other)
    none = math.isnan(error)
    return Comparison(
        group=group,
        quantity=quantity,
        error=None if none else error,
        tolerance=tolerance,
        scale=size_of(one),
        reason="one side is no number" if none else None,
    )


def size_of(tensor: Tensor) -> float:
    """Return max(1, largest finite |entry|), what the tolerance is multiplied by."""
    finite = tensor[torch.isfinite(tensor)].abs()
    return max(1.0, float(finite.max()) if finite.numel() else 1.0)


def distance(one: Tensor, other: Tensor) -> float:
    """Return max |one - other|; nan where just one side is no number."""
    same = (one == other) | (torch.isnan(one) & torch.isnan(other))
    difference = torch.where(same, torch.zeros_like(one), (one - other).abs())
    return float(difference.max())


def _by_weight(pair: Pair, a: Weights, b: Weights, tolerance: float) -> Iterator[Comparison]:
    if pair.kind is None:
        for name in a:
            yield compared(PARAMETER_GRADIENT, name, a[name], b[name], tolerance)
        return
    gates = STANDARD_ORDER[pair.kind]
    for name in ("weight_ih", "weight_hh", *biases_of(pair)):
        source = "bias_ih" if name == "bias" else name
        whole = compared(PARAMETER_GRADIENT, _READS[name], a[source], b[source], tolerance)
        if not whole.passed and len(gates) > 1:
            whole = replace(whole, gate=_first_gate(gates, a[source], b[source], whole))
        yield whole


def _first_gate(
    gates: tuple[str, ...], one: Tensor, other: Tensor, whole: Comparison
) -> str | None:
    """Return the first gate whose rows are beyond the tolerance."""
    allowed = whole.tolerance * whole.scale
    blocks = zip(gates, one.chunk(len(gates)), other.chunk(len(gates)), strict=True)
    return next((gate for gate, x, y in blocks if not distance(x, y) <= allowed), None)


def biases_of(pair: Pair) -> tuple[str, ...]:
    """Return the biases to compare: torch's two, or "bias" where both sides have one."""
    known = [set(layout.biases) for layout in pair.layouts if layout is not None]
    if not known or not all(known):  # a side without biases has no gradient by them
        return ()
    found = set[str]().union(*known)
    if found == {"bias"}:
        return ("bias",)
    return ("bias_ih", "bias_hh")
