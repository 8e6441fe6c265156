"""What a watched training says in words: profiles in a line, horizons, verdicts, findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from gradflow.present.numbers import ABSENT
from gradflow.records.inspect import SEVERITIES, Curve
from gradflow.records.watch import OF_MODULES, FlowFinding, FlowLayer, WatchRun

DEEPEST = -6.0  # log10: the lowest block of a sparkline; below it the first step learns nothing
_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "._-~:=+#"
_VERDICTS = {
    "GF101": "vanishes",
    "GF102": "explodes",
    "GF103": "cut",
    "GF105": "reads one step",
    "GF108": "no gradient",
    "GF204": "saturated",
    "GF301": "weights not finite",
    "GF303": "not finite",
}


def sparkline(curve: Curve, width: int, *, plain: bool = False) -> str:
    """Return a profile as `width` blocks, the first step left and the last one right.

    The highest block is the largest gradient, the lowest 10^-6 of it or less; a blank is an exact
    zero. Of the steps that share a block the largest counts.

    >>> sparkline((0.0, -3.0, -6.0, None), 4, plain=True)
    ' .:#'
    """
    logs = [-math.inf if value is None else value for value in reversed(curve)]
    count = min(width, len(logs))
    edges = [round(index * len(logs) / count) for index in range(count + 1)] if count else []
    tops = [max(logs[low:high]) for low, high in pairwise(edges)]
    largest = max(tops, default=-math.inf)
    return "".join(_block(top - largest, plain=plain) for top in tops) if tops else ""


def _block(log: float, *, plain: bool) -> str:
    if not math.isfinite(log):
        return " "
    blocks = _PLAIN if plain else _BLOCKS
    share = max(0.0, 1.0 - log / DEEPEST)
    return blocks[round(share * (len(blocks) - 1))]


def steps_text(steps: float) -> str:
    """Return a number of steps: whole from 10 on, with two digits below.

    >>> steps_text(3.141), steps_text(1234.5)
    ('3.1', '1,234')
    """
    return f"{steps:,.0f}" if steps >= 9.95 else f"{steps:.2g}"


def horizon_text(layer: FlowLayer) -> str:
    """Return a horizon in steps; that it lies beyond the data; or that the graph is cut before."""
    if layer.horizon is not None:
        return steps_text(layer.horizon)
    if layer.cut_at is not None:
        return f"cut at {layer.cut_at}"
    told = layer.first_non_finite is None and any(value is not None for value in layer.log10_dL_dh)
    return f">{layer.steps - 1:,}" if told else ABSENT


def half_life_text(layer: FlowLayer) -> str:
    """Return a half-life in steps."""
    return ABSENT if layer.half_life is None else steps_text(layer.half_life)


def far_text(layer: FlowLayer) -> str:
    """Return what is left of the gradient at the first step, as a power of ten of the largest.

    Of h or of c, whichever is felt longer.
    """
    if layer.first_non_finite is not None:
        return ABSENT
    shares = [_far_share(curve) for curve in (layer.log10_dL_dh, layer.log10_dL_dc or ())]
    known = [share for share in shares if share is not None]
    if not known:
        return ABSENT
    left = f"10^{max(known):.1f}" if math.isfinite(max(known)) else "0"
    return "1" if left in ("10^0.0", "10^-0.0") else left


def _far_share(curve: Curve) -> float | None:
    known = [value for value in curve if value is not None]
    if not known:
        return None
    return -math.inf if curve[-1] is None else curve[-1] - max(known)


def curve_of(layer: FlowLayer, state: str) -> Curve | None:
    """Return the profile of the hidden state h or of the cell state c."""
    return layer.log10_dL_dc if state == "c" else layer.log10_dL_dh


def keep_gate(layer: FlowLayer) -> str | None:
    """Return the name of the gate that keeps the state, None where there is none."""
    return next((gate for gate in ("forget", "update") if gate in layer.gate_means), None)


def keep_text(layer: FlowLayer) -> str:
    """Return the keep gate's mean."""
    gate = keep_gate(layer)
    mean = None if gate is None else layer.gate_means[gate]
    return ABSENT if mean is None else f"{mean:.2f}"


def verdict(layer: FlowLayer, findings: Sequence[FlowFinding]) -> str:
    """Return the gravest finding of a layer in a word or two, "fine" where nothing is wrong.

    Vanishing is told at a module's layer that remembers longest, and a cut at its first layer; the
    others then say the same.
    """
    worst = gravest(layer, findings)
    if worst is None:
        return "fine"
    word = _VERDICTS.get(worst.code, worst.code)
    gate = f"{worst.gate} " if worst.gate and worst.code == "GF204" else ""
    return f"{gate}{word}"


def gravest(layer: FlowLayer, findings: Sequence[FlowFinding]) -> FlowFinding | None:
    """Return the gravest finding that concerns a layer, None where there is no warning."""
    here = [
        finding
        for finding in findings
        if finding.severity != "info"
        and finding.direction == layer.direction
        and (finding.layer == layer.title or _is_of_module(finding, layer))
    ]
    return max(here, key=lambda finding: SEVERITIES.index(finding.severity), default=None)


def _is_of_module(finding: FlowFinding, layer: FlowLayer) -> bool:
    name = (finding.layer or "").rpartition("layer ")[0].removesuffix(", ")
    return finding.code in OF_MODULES and name == layer.name


def place_text(layer: FlowLayer) -> str:
    """Return a layer with its direction where that is not forward."""
    way = "" if layer.direction == "forward" else f", {layer.direction}"
    return f"{layer.label}{way}"


def finding_text(finding: FlowFinding) -> str:
    """Return a finding as one line: when, code, severity, place, message."""
    places = [finding.layer, finding.direction if finding.direction != "forward" else None]
    place = ", ".join(each for each in places if each)
    where = f" [{place}]" if place else ""
    head = f"update {finding.update:,}: {finding.code} {finding.severity}{where}"
    return f"{head}: {finding.message}"


def title(run: WatchRun) -> str:
    """Return the title of table and figure."""
    if not run.samples:
        return "Gradient flow while training: no sample yet"
    first, last = run.samples[0].update, run.samples[-1].update
    count = f"{len(run.samples):,} samples" if len(run.samples) > 1 else "1 sample"
    span = f"update {first:,}" if first == last else f"updates {first:,} to {last:,}"
    return f"Gradient flow while training: {count}, {span}"


def subtitle(run: WatchRun) -> str:
    """Return how much of the findings is grave."""
    grave = [finding for finding in run.findings if finding.severity != "info"]
    if not grave:
        return "No warning was found: gradient flow is fine."
    codes = ", ".join(dict.fromkeys(finding.code for finding in grave))
    return f"Found: {codes}, first at update {grave[0].update:,}."
