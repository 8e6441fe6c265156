"""Findings of a layer's run: what reaches which step, and how the gates and units stood."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.cells.stack import output_part
from gradflow.engine.state_gradients import StateGradients
from gradflow.engine.unrolled import CellTrace
from gradflow.experiments.inspect.layers import Measured, joined
from gradflow.experiments.inspect.weight_findings import make_finding
from gradflow.records.inspect import Finding, Severity

EXPLODING, EXPLODED = 3.0, 8.0  # log10 of the norm by lag
SATURATED_SHARE = 0.9
LARGE_INPUT = 100.0
DEAD_SHARE = 0.1
_MATTERS = -15.0  # log10: a gradient below this share of the largest one moves no weight
_UNDERFLOW_REACH = -500.0  # log10: below, even the lifted float64 pass may read 0


def layer_findings(layer: Measured) -> list[Finding]:
    """Return what one layer and direction shows, apart from what it is needed for."""
    checks = [_input_scale, _horizon, _exploding, _saturated, _units]
    broken = _not_finite(layer)
    checks += [] if broken else [_cut, _underflow]  # of NaN nobody knows whether it is zero
    return [*broken, *(finding for check in checks for finding in check(layer))]


def _horizon(layer: Measured) -> list[Finding]:
    record = layer.record
    if not record.lag:
        return []
    if record.horizon is None:
        whole = record.lag[-1] >= max(len(trace.states) for trace in layer.traces)
        whose = "the data's" if whole else "the measured"
        text = f"The horizon is not reached within {whose} {record.lag[-1]} steps."
        text += " Longer data would tell how far it is." if whole else ""
    else:
        text = f"The gradient falls to a thousandth within {record.horizon:.3g} steps."
    return [make_finding("GF100", "info", text, place=layer.found, value=record.horizon)]


def _exploding(layer: Measured) -> list[Finding]:
    pairs = [
        (log, lag)
        for log, lag in zip(layer.record.log10_norm, layer.record.lag, strict=True)
        if log is not None
    ]
    if not pairs or max(pairs)[0] <= EXPLODING:
        return []
    log, lag = max(pairs)
    severity: Severity = "error" if log > EXPLODED else "warning"
    text = f"A change of the state is 10^{log:.1f} times larger {lag} steps later."
    return [make_finding("GF102", severity, text, place=layer.found, value=log)]


def _saturated(layer: Measured) -> list[Finding]:
    findings = []
    for gate in layer.record.gates:
        share, mean = gate.saturated_fraction, gate.value_mean
        if share is None or mean is None or share < SATURATED_SHARE:
            continue
        # a keep gate that is open remembers, as it was meant to
        severity: Severity = "info" if gate.role == "keep" and mean > 0.5 else "warning"
        text = f"{100 * share:.0f} % of the {gate.name} gate's values are within 0.01 of 0 or 1."
        findings.append(
            make_finding("GF204", severity, text, place=layer.found, gate=gate.name, value=share)
        )
    return findings


def _units(layer: Measured) -> list[Finding]:
    record, findings = layer.record, []
    dead, open_units = len(record.dead_units), len(record.never_forgetting_units)
    if dead:
        share = dead / (record.projection or record.hidden_size)
        severity: Severity = "warning" if share > DEAD_SHARE else "info"
        text = f"{dead} units never move (the first is unit {record.dead_units[0]})."
        findings.append(make_finding("GF207", severity, text, place=layer.found, value=dead))
    if open_units:
        first = record.never_forgetting_units[0]
        text = f"{open_units} units keep more than 0.999 at every step (the first is unit {first})."
        findings.append(make_finding("GF208", "info", text, place=layer.found, value=open_units))
    return findings


def _input_scale(layer: Measured) -> list[Finding]:
    if layer.found.layer != 0 or not layer.finite:
        return []
    trace = layer.traces[0]
    scale = float(trace.inputs[trace.own.to(trace.inputs.device)].double().square().mean().sqrt())
    if scale <= LARGE_INPUT:
        return []
    text = f"The input has a root mean square of {scale:.3g}; about 1 is what a layer expects."
    return [make_finding("GF304", "warning", text, place=layer.found, value=scale)]


def _not_finite(layer: Measured) -> list[Finding]:
    """The last step with a gradient that is no number: the first one on the way back."""
    for trace in layer.traces:
        for t, state in enumerate(trace.states):
            for name, part in zip(layer.found.cell.parts, state, strict=True):
                if not bool(torch.isfinite(part).all()):
                    text = _not_finite_text(name, t, trace.inputs)
                    return [make_finding("GF303", "error", text, place=layer.found, value=t)]
    if layer.gradients is None:
        return []
    for index, name in enumerate(layer.found.cell.parts):
        total = joined(layer.gradients.wide, index)
        broken = (torch.isnan(total) | torch.isposinf(total)).nonzero().flatten().tolist()
        if broken:
            text = f"dL/d{name} is not finite; on the way back it begins at step {broken[-1]}."
            return [make_finding("GF303", "error", text, place=layer.found, value=broken[-1])]
    return []


def _not_finite_text(name: str, t: int, inputs: Tensor) -> str:
    if bool(torch.isfinite(inputs[t]).all()):
        return f"The state {name} is not finite from step {t} on."
    return f"What the layer reads at step {t} is not finite; nor is its state {name} from there on."


def reading_order(gradients: Sequence[StateGradients], traces: Sequence[CellTrace]) -> Tensor:
    """Return per sample log10 of dL/ds over all parts, (time, batch), first read step first.

    Of several calls the one after the other. Padding is nan; a reversed cell's steps are turned,
    each sample's first read step standing at its own end.
    """
    rows = []
    for each, trace in zip(gradients, traces, strict=True):
        largest = torch.stack(each.by_sample).amax(dim=0)
        rows.append(largest.flip(0) if trace.reverse else largest)
    return torch.cat(rows)


def _cut(layer: Measured) -> list[Finding]:
    """Exact zeros at the steps that are read first, beside steps with a gradient."""
    if layer.gradients is None or not layer.finite:
        return []
    sizes = {trace.inputs.shape[1] for trace in layer.traces}
    if len(sizes) != 1:
        return []
    logs = reading_order(layer.gradients.wide, layer.traces)
    overall = torch.where(torch.isnan(logs), -math.inf, logs).amax(dim=1)
    alive = torch.isfinite(overall).nonzero().flatten().tolist()
    if not alive:
        text = "No state of this layer has a gradient: the loss does not depend on it."
        return [make_finding("GF108", "warning", text, place=layer.found)]
    reverse = layer.traces[0].reverse
    if reverse:
        return _structural(layer, logs)
    first = alive[0]
    if first == 0 or float(overall[first]) < _UNDERFLOW_REACH + 300:
        return []
    if not _step_carries(layer, first):
        return []
    text = (
        f"dL/ds is exactly 0 before step {first} and 10^{float(overall[first]):.1f} there: the "
        "graph is cut between them. It is no underflow."
    )
    return [make_finding("GF103", "error", text, place=layer.found, value=first)]


def _structural(layer: Measured, logs: Tensor) -> list[Finding]:
    """A reversed cell whose gradient stands at each sample's last position alone."""
    counts = torch.isfinite(logs).sum(dim=0)
    steps = (~torch.isnan(logs)).sum(dim=0)
    told = counts > 0
    if not bool(told.any()) or int(steps.max()) < 2 or int(counts.max()) > 1:
        return []
    rows = logs[:, told]
    first_own = (~torch.isnan(rows)).int().argmax(dim=0)
    with_gradient = torch.isfinite(rows).int().argmax(dim=0)
    if not torch.equal(first_own, with_gradient):
        return []
    text = (
        "The reversed direction has a gradient at the last position alone: the loss reads the "
        "reversed half of output[-1], which has read one step."
    )
    return [make_finding("GF105", "warning", text, place=layer.found, value=1)]


def _step_carries(layer: Measured, first: int) -> bool:
    """Return whether the step's own Jacobian is not zero, so that only a cut explains the zero."""
    position = first
    for trace in layer.traces:
        if position < len(trace.states):
            break
        position -= len(trace.states)
    cell, before = layer.found.cell, trace.before
    row = tuple(part[position].detach().clone().requires_grad_() for part in before)
    with torch.enable_grad():
        after = cell.advance(cell.drive(trace.inputs[position : position + 1])[0], row)
        total = torch.stack([part.sum() for part in after]).sum()
        slopes = torch.autograd.grad(total, row, allow_unused=True)
    return any(slope is not None and bool(slope.any()) for slope in slopes)


def _underflow(layer: Measured) -> list[Finding]:
    """Zero in the model's own dtype, and a number in float64."""
    gradients = layer.gradients
    if gradients is None or gradients.own is None:
        return []
    part = output_part(layer.found.cell)
    if "c" in layer.found.cell.parts:
        part = layer.found.cell.parts.index("c")
    wide, own = joined(gradients.wide, part), joined(gradients.own, part)
    if wide.shape != own.shape:
        return []
    lost = (torch.isneginf(own) & torch.isfinite(wide)).nonzero().flatten().tolist()
    if not lost:
        return []
    largest = max(float(wide[t]) for t in lost)
    top = float(wide[torch.isfinite(wide)].max())
    severity: Severity = "warning" if largest - top > _MATTERS else "info"
    text = (
        f"In {layer.found.dtype} the gradient is 0 at {len(lost)} of {len(wide)} steps (the last "
        f"is step {lost[-1]}); the true one there is 10^{float(wide[lost[-1]]):.1f}. It is "
        "underflow, and no cut."
    )
    return [make_finding("GF104", severity, text, place=layer.found, value=lost[-1])]
