"""Vanishing, judged against a need: a lag that was asked for, or the first step of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradflow.records.inspect import Severity
from gradflow.records.watch import FlowFinding, FlowLayer
from gradflow.watching.profiles import flow_finding, has_gradient, log_profiles, reads_one_step

LOST = -6.0  # log10 of the gradient at the first step against the largest one


def vanishing_findings(group: Sequence[FlowLayer], needs_lag: int | None) -> list[FlowFinding]:
    """Return whether one module's layers of one direction and call reach as far back as needed."""
    if any(_is_untold(layer) for layer in group):
        return []
    best = max(group, key=lambda layer: math.inf if layer.horizon is None else layer.horizon)
    if best.horizon is None:
        return []
    if needs_lag is not None:
        if best.horizon >= needs_lag:
            return []
        text = f"{_falls(best)}; {needs_lag} steps back are needed.{_blame(best)}"
        return [_vanished("error", text, best)]
    share = max(_far_share(layer) for layer in group)
    if share >= LOST:
        return []
    text = f"{_falls(best)}; the first step is {best.steps - 1} steps back.{_blame(best)}"
    return [_vanished("warning", text, best)]


def _vanished(severity: Severity, text: str, layer: FlowLayer) -> FlowFinding:
    keep = next((gate for gate in ("forget", "update") if gate in layer.gate_means), None)
    return flow_finding("GF101", severity, text, layer, gate=keep, value=layer.horizon)


def _falls(layer: FlowLayer) -> str:
    horizon = f"{layer.horizon:.3g}"
    steps = "step" if horizon == "1" else "steps"
    return f"The gradient from the loss falls to 1e-3 within {horizon} {steps}"


def _blame(layer: FlowLayer) -> str:
    for gate in ("forget", "update"):
        mean = layer.gate_means.get(gate)
        if mean is not None:
            return f" The {gate} gate is {mean:.2f} on average."
    return ""


def _far_share(layer: FlowLayer) -> float:
    """Return log10 of the gradient at the first step against the largest one, of h or of c."""
    profiles = [logs for logs in log_profiles(layer) if np.isfinite(logs).any()]
    return max(float(logs[-1] - logs.max()) for logs in profiles)


def _is_untold(layer: FlowLayer) -> bool:
    """Return whether a layer's profile ends for another reason, which is another finding."""
    broken = layer.first_non_finite is not None or layer.cut_at is not None
    return broken or not has_gradient(layer) or reads_one_step(layer)
