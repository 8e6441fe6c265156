"""The result of an inspection from its parts: filtered findings, a verdict, checks, facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.checkpoints.layers import Checkpoint
from gradflow.experiments.inspect.batch import Batch
from gradflow.experiments.inspect.losses import guessed_loss
from gradflow.experiments.inspect.twin_run import Watched
from gradflow.records.base import Check
from gradflow.records.inspect import SEVERITIES, Finding, InspectedLayer, InspectResult
from gradflow.settings.inspect import InspectSettings

FindingKey = tuple[str, str | None, str | None, str | None, str]
FINE = "gradient flow is fine; look elsewhere"


def inspect_result(
    layers: Sequence[InspectedLayer],
    findings: Sequence[Finding],
    *,
    settings: InspectSettings,
    input_facts: dict[str, Any],
    model: nn.Module | None,
    found: Checkpoint,
    extra_notes: tuple[str, ...] = (),
    known: frozenset[FindingKey] = frozenset(),
) -> InspectResult:
    """Return the result: findings that are selected and not known, the gravest first."""
    selected = [finding for finding in findings if is_selected(finding.code, settings)]
    grave = [f for f in findings if f.severity != "info"]
    unasked = len(grave) - sum(f.severity != "info" for f in selected)
    chosen = [f for f in selected if f.severity == "info" or key_of(f) not in known]
    if not input_facts["given"]:  # of an input that is nobody's, still units are no fault
        chosen = [replace(f, severity="info") if f.code == "GF207" else f for f in chosen]
    ordered = sorted(chosen, key=lambda f: -SEVERITIES.index(f.severity))
    left = len(selected) - len(chosen)
    notes = [f"Left out: {_counted(left)} of the baseline."] if left else []
    notes += [f"Left out: {_counted(unasked)} of codes that were not asked for."] if unasked else []
    notes += [*found.notes, *extra_notes, *_notes(model), *_not_called(layers, found)]
    return InspectResult(
        layers=tuple(layers),
        findings=tuple(ordered),
        verdict=(
            _first_line(ordered, left, unasked),
            _memory_line(layers, settings, ordered),
            _input_line(input_facts),
        ),
        input=input_facts,
        notes=tuple(notes),
        checks=_checks(ordered, settings),
    )


def key_of(finding: Finding) -> FindingKey:
    """Return what makes a finding the same one as in an older result, no graver than there."""
    return (finding.code, finding.layer, finding.direction, finding.gate, finding.severity)


def known_keys(findings: Sequence[Finding]) -> frozenset[FindingKey]:
    """Return the keys of an older result's warnings and errors; an error was also a warning."""
    keys = {key_of(f) for f in findings if f.severity != "info"}
    keys |= {key_of(replace(f, severity="warning")) for f in findings if f.severity == "error"}
    return frozenset(keys)


def is_selected(code: str, settings: InspectSettings) -> bool:
    """Return whether a code is asked for, by itself or by its beginning, and not ignored."""
    ignored = tuple(each.upper() for each in settings.ignore or ())
    return code.startswith(tuple(each.upper() for each in settings.select)) and not (
        code.startswith(ignored)
    )


def plain_steps(settings: InspectSettings) -> int:
    """Return how many steps layers are run without data: more than the lag that is needed."""
    return max(settings.steps, (settings.needs_lag or 0) + 1)


def input_facts(
    batch: Batch | None, settings: InspectSettings, loss: Tensor | None
) -> dict[str, Any]:
    """Return what the model was run on, in plain JSON: shape, scale, loss."""
    if batch is None:
        text = f"one sample of zeros, three of unit random numbers, {plain_steps(settings)} steps"
        return {"source": text, "given": False, "loss": None}
    x = batch.inputs
    facts: dict[str, Any] = {"source": settings.data or "the given batch", "given": True}
    if isinstance(x, Tensor):
        facts["shape"] = list(x.shape)
        facts["dtype"] = str(x.dtype).removeprefix("torch.")
        if x.dtype.is_floating_point and bool(torch.isfinite(x).all()) and x.numel():
            wide = x.double()
            facts["mean"], facts["largest"] = float(wide.mean()), float(wide.abs().max())
            facts["root_mean_square"] = float(wide.square().mean().sqrt())
    facts["lengths"] = None if batch.lengths is None else batch.lengths.tolist()
    guessed = None if batch.targets is None else guessed_loss(batch.targets)
    facts["loss"] = None if loss is None else settings.loss or guessed or "own"
    return facts


def reads_last_only(loss: Tensor, watched: Watched) -> bool:
    """Return whether a loss reads a module's last own step alone, its output or its last state."""
    if len(watched.calls) != 1 or len(watched.outputs) != 1 or not watched.outputs[0].requires_grad:
        return False
    (output,) = watched.outputs
    gradient: Tensor | None = torch.autograd.grad(
        loss, output, retain_graph=True, allow_unused=True
    )[0]
    if gradient is None:
        return True
    own = watched.calls[0][0].own
    steps = own.sum(dim=0)
    norms = gradient.detach().double().flatten(2).abs().amax(dim=2).cpu()
    early = torch.arange(len(norms), device="cpu").unsqueeze(1) < steps - 1
    return not bool((norms[early] > 0).any())


def _not_called(layers: Sequence[InspectedLayer], found: Checkpoint) -> list[str]:
    told = {layer.name for layer in layers}
    names = dict.fromkeys(layer.name for layer in found.layers if layer.name not in told)
    return [f"{name} was not called on this batch, so nothing is said of it." for name in names]


def _notes(model: nn.Module | None) -> list[str]:
    if model is None:
        return []
    rates = [
        getattr(m, "p", 0.0)
        for m in model.modules()
        if isinstance(m, nn.modules.dropout._DropoutNd)
    ]
    rates += [m.dropout for m in model.modules() if isinstance(m, nn.RNNBase)]
    return ["Dropout is off while this is measured."] if any(rate > 0 for rate in rates) else []


def _first_line(findings: Sequence[Finding], left: int, unasked: int) -> str:
    grave = [finding for finding in findings if finding.severity != "info"]
    if not grave and left:
        return f"Gradient flow: nothing new; {_counted(left)} of the baseline left out."
    if not grave and unasked:
        return f"Gradient flow: nothing of the codes asked for; {_counted(unasked)} of others."
    if not grave:
        return f"Gradient flow: no warning. Verdict: {FINE}."
    first = grave[0]
    place = "" if first.layer is None else f" in {first.layer} ({first.direction})"
    more = f" (and {len(grave) - 1} more)" if len(grave) > 1 else ""
    return f"{first.code}{place}: {first.message} Try: {first.advice}{more}"


def _memory_line(
    layers: Sequence[InspectedLayer], settings: InspectSettings, findings: Sequence[Finding]
) -> str:
    measured = [layer for layer in layers if layer.lag]
    if not measured:
        return "No layer could be measured by lag."
    layer = max(measured, key=_longest_known)
    if layer.horizon is None:
        text = f"not reached within {layer.lag[-1]} steps"
    else:
        text = f"{layer.horizon:.3g} steps"
        if any((f.code, f.severity) == ("GF101", "info") for f in findings):
            text += f" of {layer.lag[-1]}; if the task needs more, say --needs-lag N"
    need = f", {settings.needs_lag} needed" if settings.needs_lag is not None else ""
    half = "it does not fall" if layer.half_life is None else f"half-life {layer.half_life:.3g}"
    return f"Memory horizon: {text}{need} ({layer.title}, {layer.direction}; {half})."


def _longest_known(layer: InspectedLayer) -> tuple[float, bool]:
    """Return how far a layer is known to reach, and whether it may reach further."""
    if layer.horizon is None:
        return float(layer.lag[-1]), True
    return layer.horizon, False


def _counted(count: int) -> str:
    return "1 finding" if count == 1 else f"{count} findings"


def _input_line(facts: dict[str, Any]) -> str:
    if not facts["given"]:
        return f"This speaks of {facts['source']}, and not of your data: give it with --data."
    loss = facts["loss"]
    with_loss = "without a loss" if loss is None else f"with the loss {loss}"
    scale = facts.get("root_mean_square")
    said = "" if scale is None else f", root mean square {scale:.3g}"
    return f"Measured on {facts['source']} {facts.get('shape', '')}{said}, {with_loss}."


def _checks(findings: Sequence[Finding], settings: InspectSettings) -> tuple[Check, ...]:
    if settings.fail_on == "never":
        return ()
    least = SEVERITIES.index(settings.fail_on)
    grave = [f for f in findings if SEVERITIES.index(f.severity) >= least]
    name = f"no finding of severity {settings.fail_on} or above"
    detail = "; ".join(f"{f.code} {f.message}" for f in grave[:3]) or "none"
    return (Check(name, not grave, detail),)
