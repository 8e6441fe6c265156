"""The record of a cell's profile: horizon, half-life, gates, and what one should know of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradflow.engine.memory import memory_of
from gradflow.records.base import FloatArray
from gradflow.records.inspect import Curve
from gradflow.records.watch import BrokenTensor, FlowLayer
from gradflow.watching.flow_sums import LN10, FlowSum

# How far the twin's last states may be from the layer's, by what the layer computes in.
_CLOSE = {"float64": 1e-8, "float32": 1e-3}
_CLOSE_IN_HALF = 0.2


@dataclass(frozen=True)
class CellPlace:
    """Where a cell stands: the fields of a `FlowLayer` that no sample changes."""

    name: str
    kind: str
    layer: int
    direction: str
    hidden_size: int
    parts: tuple[str, ...]
    dtype: str
    has_twin: bool


def flow_layer(
    place: CellPlace,
    found: FlowSum,
    *,
    log10_scale: float,
    call: int,
    calls: int,
    forget_bias: float | None,
    broken_weight: str | None,
) -> FlowLayer:
    """Return the record of what came together for a cell.

    Args:
        place: the cell.
        found: its sums.
        log10_scale: of the loss scale, which is taken out.
        call, calls: which of the module's runs this is, and how many there are.
        forget_bias: the effective bias of the keep gate.
        broken_weight: the first weight that is not finite.
    """
    h = place.parts.index("h") if "h" in place.parts else 0
    c = place.parts.index("c") if "c" in place.parts else None
    logs = _profile(found, h, log10_scale)
    cell_logs = None if c is None else _profile(found, c, log10_scale)
    memory = _memory(found, logs)
    if cell_logs is not None:
        memory = _longer(memory, _memory(found, cell_logs))
    broken = found.broken if broken_weight is None else BrokenTensor(broken_weight, 0)
    return FlowLayer(
        name=place.name,
        kind=place.kind,
        layer=place.layer,
        direction=place.direction,
        hidden_size=place.hidden_size,
        steps=found.steps,
        distance=tuple(range(found.steps)),
        log10_dL_dh=_curve(logs),
        log10_dL_dc=None if cell_logs is None else _curve(cell_logs),
        horizon=memory.horizon,
        horizon_reason=memory.horizon_reason,
        half_life=memory.half_life,
        half_life_reason=memory.half_life_reason,
        gate_means={name: sums.mean for name, sums in found.gates.items()},
        saturated_fraction={name: s.saturated_fraction for name, s in found.gates.items()},
        effective_forget_bias=forget_bias,
        first_non_finite=broken,
        cut_at=found.cut_at,
        arrives=found.arrives,
        log10_arriving=_arriving(found, log10_scale),
        call=call,
        calls=calls,
        notes=_notes(place, found, logs),
    )


def _profile(found: FlowSum, part: int, log10_scale: float) -> FloatArray:
    """Return log10 of the norm by distance, -inf where it is zero."""
    whole = np.full(found.steps, -math.inf)
    if part < len(found.squares):
        squares = found.squares[part][: found.steps]
        whole[: len(squares)] = squares / (2.0 * LN10) - log10_scale
    return whole


def _arriving(found: FlowSum, log10_scale: float) -> Curve | None:
    if found.came is None or not np.isfinite(found.came).any():
        return None
    whole = np.full(found.steps, -math.inf)
    size = min(found.steps, len(found.came))
    whole[:size] = found.came[:size] / (2.0 * LN10) - log10_scale
    return _curve(whole)


def _curve(logs: FloatArray) -> Curve:
    return tuple(float(value) if math.isfinite(value) else None for value in logs)


@dataclass(frozen=True)
class _Memory:
    horizon: float | None = None
    horizon_reason: str | None = None
    half_life: float | None = None
    half_life_reason: str | None = None


def _memory(found: FlowSum, logs: FloatArray) -> _Memory:
    """Return horizon and half-life from the end, of the mean over the rows that reach so far."""
    end = found.cut_at or found.steps
    counts = np.ones(found.steps)
    counts[: len(found.counts)] = np.maximum(found.counts[: found.steps], 1.0)
    mean = (logs - 0.5 * np.log10(counts))[:end]
    alive = np.flatnonzero(np.isfinite(mean))
    if not len(alive):
        return _Memory(horizon_reason="no gradient", half_life_reason="no gradient")
    if bool((np.isnan(mean) | np.isposinf(mean)).any()):
        return _Memory(horizon_reason="not finite", half_life_reason="not finite")
    first = int(alive[0])
    memory = memory_of(np.arange(end - first, dtype=np.float64), mean[first:])
    horizon = None if memory.horizon is None else memory.horizon + first
    until = ", where the graph is cut" if found.cut_at is not None else ""
    beyond = None if horizon is not None else f"not reached within {end - first} steps{until}"
    slow = None
    if memory.half_life is None:
        slow = "it does not fall" if len(alive) > 1 else "one step has a gradient"
    return _Memory(horizon, beyond, memory.half_life, slow)


def _longer(one: _Memory, other: _Memory) -> _Memory:
    """Return the memory of the part that is felt longer: c may carry what h shows no more."""
    known = [each for each in (one, other) if each.horizon_reason != "no gradient"]
    return max(
        known, key=lambda each: math.inf if each.horizon is None else each.horizon, default=one
    )


def _notes(place: CellPlace, found: FlowSum, logs: FloatArray) -> tuple[str, ...]:
    notes = []
    if found.padded:
        notes.append("Distances count from each sample's own last step; fewer reach farther back.")
    if found.together > 1:
        notes.append(f"{found.together} calls in a pass are shown as one.")
    close = _CLOSE.get(place.dtype, _CLOSE_IN_HALF)
    if found.gap is not None and found.gap > close:
        notes.append(
            f"The twin's last state differs from the layer's by {found.gap:.1e}: its dropout could "
            "not be drawn again, or it is no plain layer of torch. The profile is the twin's."
        )
    if not place.has_twin:
        notes.append(f"The gradients are as the training computed them, in {place.dtype}.")
        alive = np.flatnonzero(np.isfinite(logs))
        end = found.cut_at or found.steps
        if len(alive) and alive[-1] + 1 < end and found.broken is None:
            notes.append(
                f"From {alive[-1] + 1} steps on it is 0 in {place.dtype} though the graph goes "
                "on: underflow, or a state that is not read."
            )
    return tuple(notes)
