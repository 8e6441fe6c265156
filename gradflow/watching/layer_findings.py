"""What one layer's profile shows by itself: what is broken, cut, exploding or saturated."""

from __future__ import annotations

import math

import numpy as np

from gradflow.records.base import FloatArray
from gradflow.records.inspect import Severity
from gradflow.records.watch import FlowFinding, FlowLayer
from gradflow.watching.profiles import (
    flow_finding,
    has_gradient,
    log_profile,
    log_profiles,
    reads_one_step,
)

EXPLODING, EXPLODED = 3.0, 8.0  # log10 of a growth backward in time
SATURATED_SHARE = 0.9
_KEEPS = {"lstm": "forget", "gru": "update"}


def layer_findings(layer: FlowLayer, needs_lag: int | None) -> list[FlowFinding]:
    """Return what a layer shows apart from vanishing; of a broken one, that alone."""
    if layer.first_non_finite is not None:
        return _not_finite(layer)
    if not has_gradient(layer):
        text = "No state of this layer has a gradient: the loss does not depend on it."
        return [flow_finding("GF108", "warning", text, layer)]
    return [*_structural(layer), *_cut(layer, needs_lag), *_exploding(layer), *_saturated(layer)]


def _not_finite(layer: FlowLayer) -> list[FlowFinding]:
    found = layer.first_non_finite
    if found is None:
        return []
    if found.tensor.startswith(("weight", "bias")):
        text = f"{found.tensor} has numbers that are not finite."
        return [flow_finding("GF301", "error", text, layer)]
    way = "on the way back it begins" if "dL" in found.tensor else "it begins"
    text = f"{found.tensor} is not finite; {way} at step {found.step}."
    return [flow_finding("GF303", "error", text, layer, value=found.step)]


def _structural(layer: FlowLayer) -> list[FlowFinding]:
    """A reversed direction whose gradient stands at the step that it reads first, alone."""
    if not reads_one_step(layer):
        return []
    text = (
        "The reversed direction has a gradient at the last position alone: the loss reads the "
        "reversed half of output[-1], which has read one step."
    )
    return [flow_finding("GF105", "warning", text, layer, value=1)]


def _cut(layer: FlowLayer, needs_lag: int | None) -> list[FlowFinding]:
    if layer.cut_at is None or reads_one_step(layer):
        return []
    severity: Severity = "warning"
    if needs_lag is not None:
        severity = "error" if needs_lag >= layer.cut_at else "info"
    needed = "" if severity != "error" else f" {needs_lag} steps are needed."
    text = (
        f"The gradient is exactly 0 from {layer.cut_at} steps before the end on: the graph is cut "
        f"there (detach, or truncated backpropagation). It is no underflow.{needed}"
    )
    return [flow_finding("GF103", severity, text, layer, value=layer.cut_at)]


def _exploding(layer: FlowLayer) -> list[FlowFinding]:
    if layer.arrives is None:
        return []
    arriving = log_profile(layer, "arriving")
    growths = [
        _growth(logs, layer.arrives[1])
        if not np.isfinite(arriving).any()
        else _amplification(logs, arriving)
        for logs in log_profiles(layer)
    ]
    growth, steps = max(growths)
    if growth <= EXPLODING:
        return []
    severity: Severity = "error" if growth > EXPLODED else "warning"
    text = f"The gradient is 10^{growth:.1f} times larger {steps} steps further back."
    return [flow_finding("GF102", severity, text, layer, value=growth)]


def _amplification(logs: FloatArray, arriving: FloatArray) -> tuple[float, int]:
    """Return log10 of how much larger the gradient is than all that entered, and how far from it.

    In a network that neither grows nor shrinks anything n contributions add up to n times the
    largest of them at most.
    """
    count = np.cumsum(np.isfinite(arriving))
    entered = np.maximum.accumulate(arriving) + np.log10(np.maximum(count, 1))
    known = np.isfinite(entered) & np.isfinite(logs)
    if not known.any():
        return -math.inf, 0
    grown = np.where(known, logs, -math.inf) - np.where(known, entered, 0.0)
    top = int(np.argmax(grown))
    return float(grown[top]), top - int(np.argmax(arriving[: top + 1]))


def _growth(logs: FloatArray, entry: int) -> tuple[float, int]:
    """Return log10 of how much the gradient grows backward in time, and over how many steps.

    Beyond `entry`, the last distance where the loss enters, it grows by the recurrence. Before
    it, a gradient may be larger because more of the loss enters there, as in a layer below one that
    forgets; so a profile is not judged of which less than a quarter lies beyond.
    """
    beyond = logs[entry:]
    if 4 * len(beyond) < len(logs) or not len(beyond) or not math.isfinite(beyond[0]):
        return -math.inf, 0
    top = int(np.argmax(beyond))
    return float(beyond[top] - beyond[0]), top


def _saturated(layer: FlowLayer) -> list[FlowFinding]:
    findings = []
    for gate, share in layer.saturated_fraction.items():
        if share is None or not share >= SATURATED_SHARE:
            continue
        # a keep gate that is open remembers, as it was meant to
        is_open = gate == _KEEPS.get(layer.kind) and (layer.gate_means.get(gate) or 0.0) > 0.5
        text = f"{100 * share:.0f} % of the {gate} gate's values are within 0.01 of 0 or 1."
        severity: Severity = "info" if is_open else "warning"
        findings.append(flow_finding("GF204", severity, text, layer, gate=gate, value=share))
    return findings
