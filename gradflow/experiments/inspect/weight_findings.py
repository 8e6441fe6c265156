"""Findings that a layer's weights alone show: biases, orthogonality, gate order, NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.cells import CellLike
from gradflow.cells.base import Cell
from gradflow.checkpoints.layers import Checkpoint, FoundLayer
from gradflow.checkpoints.layers.gate_orders import gate_orders_of, has_drawn_biases
from gradflow.records.finding_codes import FINDING_KINDS
from gradflow.records.inspect import Finding, Severity

RAISED, UNRAISED = 0.75, 0.25  # of a mean effective forget bias
_NEARLY_CONSTANT = 0.5
_ORTHOGONAL = 1e-3
_FEWEST_DRAWN = 8  # units, of which a distribution says anything
_LONGEST = 10.0  # ln of the longest dependency that anybody draws for, 22,000 steps
_UNLIKE = 1.5  # of the distance times sqrt(n), which one in fifty draws exceeds


def make_finding(
    code: str,
    severity: Severity,
    message: str,
    *,
    place: FoundLayer | None = None,
    gate: str | None = None,
    value: float | None = None,
) -> Finding:
    """Return a finding with its kind's advice."""
    layer = None if place is None else f"{place.name}, layer {place.layer}"
    direction = None if place is None else place.direction
    advice = FINDING_KINDS[code].advice
    return Finding(code, severity, layer, direction, gate, value, message, advice)


def weight_findings(found: Checkpoint) -> list[Finding]:
    """Return what the weights of a model's layers show, without running anything."""
    findings = [
        make_finding("GF302", "warning", str(unread), value=None) for unread in found.unread
    ]
    for layer in found.layers:
        for check in (_not_finite, _twice, _chrono, _stacked_orthogonal, _gate_order):
            findings += check(layer)
    for name in dict.fromkeys(layer.name for layer in found.layers):
        findings += _only_some([layer for layer in found.layers if layer.name == name])
    return findings


def _not_finite(layer: FoundLayer) -> list[Finding]:
    return [
        make_finding("GF301", "error", f"{each}.", place=layer, value=each.nans + each.infinities)
        for each in layer.nonfinite
    ]


def _twice(layer: FoundLayer) -> list[Finding]:
    """Both vectors alike over all units: they got the same value, and the same gradient since."""
    cell = layer.cell
    gate = cell.keep_gate
    if not isinstance(cell, Cell) or gate is None or cell.bias_ih is None or cell.bias_hh is None:
        return []
    one, other = (bias.detach()[cell.rows(gate.name)] for bias in (cell.bias_ih, cell.bias_hh))
    total = float((one + other).mean())
    # one unit says nothing; of random biases no two are alike
    if len(one) < 2 or total < 1.5 or float((one - other).abs().max()) > 1e-3:
        return []
    value = float(torch.sigmoid(one + other).mean())
    half = float(torch.sigmoid(one).mean())
    return [
        make_finding(
            "GF201",
            "warning",
            f"The {gate.name} bias is {total / 2:.3g} in bias_ih and in bias_hh alike; they add up "
            f"to {total:.3g}, a gate of {value:.4f} and not {half:.4f}.",
            place=layer,
            gate=gate.name,
            value=total,
        )
    ]


def _chrono(layer: FoundLayer) -> list[Finding]:
    if layer.kind != "lstm" or not isinstance(layer.cell, Cell):
        return []
    forget, write = (_effective(layer.cell, name) for name in ("forget", "input"))
    if forget is None or write is None or len(forget) < 2:
        return []
    gap = float((forget + write).abs().mean())
    if not _looks_drawn_by_chrono(forget) or gap < 0.5:
        return []
    return [
        make_finding(
            "GF203",
            "warning",
            f"Forget biases from {float(forget.min()):.2g} to {float(forget.max()):.2g} look like "
            f"chrono's, but input biases are not their opposite: |b_i + b_f| is {gap:.2g} on "
            "average.",
            place=layer,
            gate="input",
            value=gap,
        )
    ]


def _looks_drawn_by_chrono(forget: Tensor) -> bool:
    """Return whether e^b may be uniform from 1 on, by the distance of Kolmogorov and Smirnov.

    Biases that training has spread about their mean are not.
    """
    spread = float(forget.min()) > -0.1 and float(forget.mean()) > 1.5 and float(forget.std()) > 0.5
    if not spread or len(forget) < _FEWEST_DRAWN or float(forget.max()) > _LONGEST:
        return False
    sizes = (forget.exp() - 1.0).sort().values
    count = len(sizes)
    ranks = torch.arange(1, count + 1, dtype=sizes.dtype, device=sizes.device) / count
    distance = float((sizes / sizes[-1] - ranks).abs().max())
    return distance * math.sqrt(count) < _UNLIKE


def _stacked_orthogonal(layer: FoundLayer) -> list[Finding]:
    cell = layer.cell
    if not isinstance(cell, Cell) or len(cell.row_order) < 2 or cell.hidden_size < 2:
        return []
    weight = cell.weight_hh.detach().double()
    if not bool(torch.isfinite(weight).all()) or _unit_gap(weight) > _ORTHOGONAL:
        return []
    blocks = weight.chunk(len(cell.row_order))
    means = [float(torch.linalg.svdvals(block).square().mean()) for block in blocks]
    share = sum(means) / len(means)
    return [
        make_finding(
            "GF205",
            "warning",
            f"The stacked recurrent matrix is orthogonal, the {len(blocks)} gates' own blocks are "
            f"not: their squared singular values are {share:.3g} on average, where 1 was meant.",
            place=layer,
            value=share,
        )
    ]


def _unit_gap(weight: Tensor) -> float:
    """Return the largest entry of W^T W - I."""
    unit = torch.eye(weight.shape[1], dtype=weight.dtype, device=weight.device)
    return float((weight.mT @ weight - unit).abs().max())


def _gate_order(layer: FoundLayer) -> list[Finding]:
    scores = gate_orders_of(layer.cell)
    if scores is None or not scores.is_suspect:
        return []
    where = scores.misplaced
    lies = "" if where is None else f" The {where[0]} gate seems to be in block {where[1] + 1}."
    return [
        make_finding(
            "GF206",
            "warning",
            f"By its biases the order of gates is {scores.likeliest} rather than torch's (torch's "
            f"has probability {scores.torch_probability:.2g}).{lies}",
            place=layer,
            gate=None if where is None else where[0],
            value=scores.torch_probability,
        )
    ]


def _only_some(layers: Sequence[FoundLayer]) -> list[Finding]:
    """Raised forget biases in some places of a module and none in others."""
    if layers[0].kind != "lstm":
        return []
    means: dict[int, float] = {}
    for index, layer in enumerate(layers):
        bias = _effective(layer.cell, "forget")
        if bias is None or not bool(torch.isfinite(bias).all()):
            return []
        spread = float(bias.std()) if len(bias) > 1 else 0.0
        if spread < _NEARLY_CONSTANT:
            means[index] = float(bias.mean())
    raised = [i for i, mean in means.items() if mean >= RAISED and not _is_drawn(layers[i])]
    left = [index for index, mean in means.items() if mean <= UNRAISED]
    if not raised:
        return []
    example = layers[raised[0]]
    return [
        make_finding(
            "GF202",
            "warning",
            f"The forget bias is {means[index]:.2g} here and {means[raised[0]]:.2g} in layer "
            f"{example.layer} {example.direction}.",
            place=layers[index],
            gate="forget",
            value=means[index],
        )
        for index in left
    ]


def _is_drawn(layer: FoundLayer) -> bool:
    """Return whether nobody set the biases: of few units, torch's own may have any mean."""
    return isinstance(layer.cell, Cell) and has_drawn_biases(layer.cell)


def _effective(cell: CellLike, name: str) -> Tensor | None:
    gate = next((gate for gate in cell.gates if gate.name == name), None)
    if gate is None or not isinstance(cell, Cell):
        return None
    bias = gate.effective_bias(cell)
    return None if bias is None else bias.detach().double()
