"""A layer's profile as numbers, and findings made of it: what all judgements share."""

from __future__ import annotations

import math

import numpy as np

from gradflow.records.base import FloatArray
from gradflow.records.finding_codes import FINDING_KINDS
from gradflow.records.inspect import Severity
from gradflow.records.watch import FlowFinding, FlowLayer


def log_profile(layer: FlowLayer, state: str = "h") -> FloatArray:
    """Return log10 of dL/dh, of dL/dc or of what arrives, by distance; -inf where it is zero."""
    curves = {"h": layer.log10_dL_dh, "c": layer.log10_dL_dc, "arriving": layer.log10_arriving}
    curve = curves[state] or ()
    values = [-math.inf if value is None else value for value in curve]
    return np.array(values, dtype=np.float64)


def log_profiles(layer: FlowLayer) -> list[FloatArray]:
    """Return the profile of h, and that of c where the layer has one."""
    return [
        log_profile(layer, state) for state in ("h", "c")[: 1 + (layer.log10_dL_dc is not None)]
    ]


def has_gradient(layer: FlowLayer) -> bool:
    """Return whether any state of the layer has a gradient."""
    return any(bool(np.isfinite(logs).any()) for logs in log_profiles(layer))


def reads_one_step(layer: FlowLayer) -> bool:
    """Return whether a reversed direction has its gradient at the step that it reads first, alone.

    So it is where the loss reads the reversed half of the last output.
    """
    alive = np.logical_or.reduce([np.isfinite(logs) for logs in log_profiles(layer)])
    return layer.direction == "reverse" and len(alive) > 1 and bool(alive[-1]) and alive.sum() == 1


def flow_finding(
    code: str,
    severity: Severity,
    message: str,
    layer: FlowLayer,
    *,
    gate: str | None = None,
    value: float | None = None,
) -> FlowFinding:
    """Return a finding of a layer, with its kind's advice."""
    advice = FINDING_KINDS[code].advice
    return FlowFinding(code, severity, layer.title, layer.direction, gate, value, message, advice)
