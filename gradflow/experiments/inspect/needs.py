"""Vanishing, judged against a need: a lag that was asked for, or a loss on the last step.

A lag is a need that somebody stated. A loss that reads the last step alone states none: the early
steps may matter or not. Torch's default LSTM forgets within 18 steps, and where the data have 60
or 100 that is told as information; it is a warning where the data are out of proportion to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.experiments.inspect.flow_findings import reading_order
from gradflow.experiments.inspect.layers import Measured
from gradflow.experiments.inspect.weight_findings import make_finding
from gradflow.records.inspect import Finding, Severity

LOST = -6.0  # log10 of the gradient at the first step against the largest one
OUT_OF_PROPORTION = 10  # times the horizon: data of so many steps are hardly read at all


def need_findings(
    layers: Sequence[Measured], needs_lag: int | None, *, reads_last: bool
) -> list[Finding]:
    """Return whether one module's layers of one direction reach as far back as is needed.

    One layer that remembers is enough: the others read it at the last step.

    Args:
        layers: of one module and direction.
        needs_lag: how far the gradient must reach, None where nobody says.
        reads_last: whether a loss reads the last step alone.
    """
    if needs_lag is not None:
        return _against_lag(layers, needs_lag)
    return _against_loss(layers) if reads_last else []


def _against_lag(layers: Sequence[Measured], needs_lag: int) -> list[Finding]:
    known = [layer for layer in layers if layer.record.lag]
    if not known:
        return []
    open_ended = [layer for layer in known if layer.record.horizon is None]
    if open_ended:
        return _too_short(open_ended, needs_lag)
    best = max(known, key=lambda layer: layer.record.horizon or 0.0)
    horizon = best.record.horizon or 0.0
    if horizon >= needs_lag:
        return []
    text = (
        f"The horizon is {horizon:.3g} steps, against {needs_lag} needed: the gradient has "
        f"fallen to a thousandth by then.{_blame(best)}"
    )
    return [_vanishing(best, "error", text)]


def _too_short(layers: Sequence[Measured], needs_lag: int) -> list[Finding]:
    """Nobody knows how far a gradient reaches that was not seen to fall, beyond its data."""
    longest = max(layers, key=lambda layer: layer.record.lag[-1])
    steps = longest.record.lag[-1]
    if steps >= needs_lag:
        return []
    text = (
        f"The gradient reaches all of the {steps} steps that it was followed for, against "
        f"{needs_lag} needed; whether it reaches further only longer data can tell."
    )
    found = make_finding("GF109", "warning", text, place=longest.found, value=steps)
    return [found]


def _against_loss(layers: Sequence[Measured]) -> list[Finding]:
    tops, firsts = [], []
    for layer in layers:
        if layer.gradients is None or not layer.finite:
            return []
        logs = reading_order(layer.gradients.wide, layer.traces)
        overall = torch.where(torch.isnan(logs), -math.inf, logs).amax(dim=1)
        alive = torch.isfinite(overall).nonzero().flatten()
        if len(alive) == 0 or _is_cut(overall, alive):
            return []
        tops.append(float(overall[alive].max()))
        firsts.append(float(overall[0]))
    share = max(firsts) - max(tops)
    steps = max(len(trace.states) for layer in layers for trace in layer.traces)
    best = max(layers, key=lambda layer: layer.record.horizon or math.inf)
    horizon = best.record.horizon
    if share >= LOST or horizon is None:
        return []
    severity: Severity = "warning" if steps >= OUT_OF_PROPORTION * horizon else "info"
    text = (
        f"The loss reads the last step alone, and at the first of {steps} steps its gradient is "
        f"10^{share:.1f} of the largest one; the horizon is {horizon:.3g} steps, against {steps} "
        f"{'needed' if severity == 'warning' else 'in the data'}.{_blame(best)}"
    )
    if severity == "info":
        text += " No fault, unless the task needs what stood earlier: say so with a needed lag."
    return [_vanishing(best, severity, text)]


def _vanishing(layer: Measured, severity: Severity, text: str) -> Finding:
    gate, horizon = _keep_gate(layer), layer.record.horizon
    return make_finding("GF101", severity, text, place=layer.found, gate=gate, value=horizon)


def _is_cut(overall: Tensor, alive: Tensor) -> bool:
    """Return whether exact zeros precede a gradient of ordinary size: another finding's matter."""
    first = int(alive[0])
    return first > 0 and float(overall[first]) > -200.0


def _keep_gate(layer: Measured) -> str | None:
    gate = layer.found.cell.keep_gate
    return None if gate is None else gate.name


def _blame(layer: Measured) -> str:
    gates = [gate for gate in layer.record.gates if gate.role == "keep"]
    if not gates or gates[0].value_mean is None:
        return ""
    return f" The {gates[0].name} gate is {gates[0].value_mean:.2f} on average."
