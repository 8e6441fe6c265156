"""Vanishing, judged against a need: a lag that was asked for, or a loss on the last step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.experiments.inspect.flow_findings import reading_order
from gradflow.experiments.inspect.layers import Measured
from gradflow.experiments.inspect.weight_findings import make_finding
from gradflow.records.inspect import Finding

LOST = -6.0  # log10 of the gradient at the first step against the largest one


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
    if not known or any(layer.record.horizon is None for layer in known):
        return []
    best = max(known, key=lambda layer: layer.record.horizon or 0.0)
    horizon = best.record.horizon or 0.0
    if horizon >= needs_lag:
        return []
    return [
        make_finding(
            "GF101",
            "error",
            f"The horizon is {horizon:.3g} steps, against {needs_lag} needed: the gradient has "
            f"fallen to a thousandth by then.{_blame(best)}",
            place=best.found,
            gate=_keep_gate(best),
            value=horizon,
        )
    ]


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
    if share >= LOST or best.record.horizon is None:
        return []
    return [
        make_finding(
            "GF101",
            "warning",
            f"The loss reads the last step alone, and at the first of {steps} steps its gradient "
            f"is 10^{share:.1f} of the largest one; the horizon is {best.record.horizon:.3g} "
            f"steps, against {steps} needed.{_blame(best)}",
            place=best.found,
            gate=_keep_gate(best),
            value=best.record.horizon,
        )
    ]


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
