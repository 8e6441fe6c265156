"""Gradient flow of a user's own model: does it reach the early steps, and is anything broken?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from gradflow.checkpoints.layers import FoundLayer, load_checkpoint
from gradflow.engine.lag_windows import BUDGET
from gradflow.errors import CellLoadError
from gradflow.experiments.inspect.alone import data_of_layers, layout_note, run_alone
from gradflow.experiments.inspect.axes import axis_findings, find_axes
from gradflow.experiments.inspect.batch import Batch, Layout, read_batch
from gradflow.experiments.inspect.devices import computing_on, moved
from gradflow.experiments.inspect.flow_findings import layer_findings
from gradflow.experiments.inspect.gradients import RanModule, Subject, with_gradients
from gradflow.experiments.inspect.layers import Measured, measure_layer
from gradflow.experiments.inspect.losses import Loss, loss_of
from gradflow.experiments.inspect.needs import need_findings
from gradflow.experiments.inspect.report import (
    FindingKey,
    input_facts,
    inspect_result,
    plain_steps,
)
from gradflow.experiments.inspect.twin_findings import twin_findings
from gradflow.experiments.inspect.twin_run import (
    TwinRun,
    default_dtype,
    found_in,
    run_twin,
    unwrapped,
)
from gradflow.experiments.inspect.weight_findings import weight_findings
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.inspect import Finding, InspectResult
from gradflow.settings.inspect import InspectSettings

Progress = Callable[[str, int, int], None]


def inspect(
    model: nn.Module | str | Path,
    batch: object = None,
    lengths: object = None,
    loss: Loss | None = None,
    needs_lag: int | None = None,
    *,
    layout: Layout | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> InspectResult:
    """Measure gradient flow through a model's recurrent layers, and say what is wrong with it.

    A copy is run in float64 with its fused layers unrolled step by step, so that the gradient of
    the loss at every state is the true one, through time. Your model is not touched.

    Args:
        model: any module with recurrent layers or cells inside; or a file of weights.
        batch: inputs as the model takes them; (inputs, targets) or (inputs, targets, lengths); a
            mapping with such keys. None runs each layer on zero and unit random input.
        lengths: how many steps are each sample's own.
        loss: "mse", "cross_entropy", or a function of the model's answer (and the targets, where
            there are any) that returns one number. By the targets' dtype where None.
        needs_lag: how far back the gradient must reach; vanishing is a finding only against it,
            or against a loss that reads the last step alone.
        layout: "batch_first" or "time_first", which axis of the inputs comes first; where None it
            is told by lengths, targets or the answer, else not known.
        device: where to compute, whichever device the model is on.
        progress: called as `progress(what, done, in all)`.

    Returns:
        Layers, findings and a verdict; `result.healthy` is True without warning or error.

    Raises:
        GradflowError: no recurrent layer, a model that fails on the batch, a loss that does not
            fit.

    >>> result = inspect(nn.LSTM(3, 8))
    >>> result.verdict[0]
    'Gradient flow: no warning. Verdict: gradient flow is fine; look elsewhere.'
    """
    settings = InspectSettings(
        file=str(model) if isinstance(model, str | Path) else None,
        model=None if isinstance(model, str | Path) else type(model).__name__,
        loss=loss if isinstance(loss, str) else None,
        needs_lag=needs_lag,
        layout=layout,
        device=device,
    )
    with computing_on(device):
        given = None if batch is None else read_batch(batch, lengths)
        if isinstance(model, str | Path):
            subject = Subject(load_checkpoint(model), None, given, source=str(model))
        else:
            subject = subject_of(model, given, loss)
        return inspect_subject(subject, settings, progress)


def subject_of(
    model: nn.Module, batch: Batch | None, loss: Loss | None = None, source: str = "the model"
) -> Subject:
    """Return a module as a subject.

    Raises:
        CellLoadError: it has no recurrent layer that can be measured.
    """
    if not isinstance(model, nn.Module):
        raise CellLoadError(f"a model is a torch.nn.Module; got a {type(model).__name__}.")
    plain = unwrapped(model)
    found = found_in(plain)
    if not found.layers:
        listing = "".join(f"\n{each}" for each in found.unread[:4])
        raise CellLoadError(
            f"there is no recurrent layer or cell in the {type(plain).__name__}; found are nn.RNN, "
            f"nn.LSTM, nn.GRU, their cells, and cells of your own, called cell(x, h).{listing}"
        )
    return Subject(found, plain, batch, loss, source)


def inspect_subject(
    subject: Subject,
    settings: InspectSettings,
    progress: Progress | None = None,
    known: frozenset[FindingKey] = frozenset(),
) -> InspectResult:
    """Run a subject, measure each layer and direction, and gather the findings.

    Args:
        subject: what is inspected.
        settings: how it is judged.
        progress: called as `progress(what, done, in all)`.
        known: findings that are left out, from an older result.
    """
    watch = Stopwatch()
    subject = _prepared(subject, settings)
    findings = weight_findings(subject.found)
    model_findings: list[Finding] = []
    loss: Tensor | None = None
    if subject.model is not None and subject.batch is not None:
        if progress is not None:
            progress("running the model step by step in float64", 0, len(subject.found.layers))
        twin = run_twin(
            subject.model,
            subject.found,
            subject.batch,
            dtype=torch.float64,
            device=settings.device,
            layout=settings.layout,
        )
        wide = subject.batch.cast(torch.float64, settings.device)
        loss = loss_of(twin.answer, wide, subject.loss or settings.loss)
        ran = with_gradients(subject, settings, twin, loss)
        model_findings = _axes(settings, twin, wide, subject.loss or settings.loss)
    else:
        data = data_of_layers(subject.batch, settings.layout)
        ran = run_alone(subject.found, steps=plain_steps(settings), seed=settings.seed, data=data)
    budget = BUDGET if subject.batch is not None else BUDGET / 3  # fewer do where it is nobody's
    measured = _measure(ran, progress, budget)
    for each in ran:
        own = [m for m in measured if any(m.found is found for found in each.watched.layers)]
        findings += _of_module(own, each, settings)
    result = inspect_result(
        [layer.record for layer in measured],
        [*model_findings, *findings],
        settings=settings,
        input_facts=input_facts(subject.batch, settings, loss),
        model=subject.model,
        found=subject.found,
        extra_notes=layout_note(subject.model, subject.batch, settings.layout),
        known=known,
    )
    environment = provenance("inspect", settings, watch)
    return replace(result, config=settings.to_json(), environment=environment)


def _prepared(subject: Subject, settings: InspectSettings) -> Subject:
    """Return the subject with its cells on the device, and its batch with the axis of samples."""
    found, batch = moved(subject.found, settings.device), subject.batch
    if batch is not None:
        batch = replace(batch, batch_axis=_batch_axis(subject.model, settings))
    return replace(subject, found=found, batch=batch)


def _batch_axis(model: nn.Module | None, settings: InspectSettings) -> int:
    """Return the axis of samples: as said, else as the first recurrent layer takes it."""
    if settings.layout is not None:
        return 0 if settings.layout == "batch_first" else 1
    layers = [] if model is None else [m for m in model.modules() if isinstance(m, nn.RNNBase)]
    return 1 if layers and not layers[0].batch_first else 0


def _axes(
    settings: InspectSettings, twin: TwinRun, wide: Batch, loss: Loss | None
) -> list[Finding]:
    x = wide.inputs
    if not isinstance(x, Tensor) or x.dim() < 2:
        return []
    usual = _batch_axis(twin.model, settings)
    axes = find_axes(x, wide, twin.answer, settings.layout, usual)
    before = [(each, len(each.calls), list(each.calls)) for each in twin.watched]
    try:
        with default_dtype(torch.float64):
            return axis_findings(twin.model, wide, axes, loss)
    finally:  # the runs that were made for it are not the user's
        for each, count, calls in before:
            each.calls[:] = calls[:count]
            del each.outputs[count:]


def _measure(ran: Sequence[RanModule], progress: Progress | None, budget: float) -> list[Measured]:
    measured: list[Measured] = []
    total = sum(len(each.watched.layers) for each in ran)
    for each in ran:
        for index, found in enumerate(each.watched.layers):
            measured.append(
                measure_layer(
                    found,
                    each.watched.traces_of(index),
                    each.gradients[index],
                    fused_gap=each.watched.fused_gap,
                    budget=budget / total,
                    progress=_progress_of(found, progress),
                )
            )
    return measured


def _progress_of(found: FoundLayer, progress: Progress | None) -> Callable[[int, int], None] | None:
    """Return what tells the steps of one layer."""
    if progress is None:
        return None
    what = f"{found.name}, layer {found.layer} ({found.direction}), by lag"
    return lambda done, of: progress(what, done, of)


def _of_module(
    layers: Sequence[Measured], ran: RanModule, settings: InspectSettings
) -> list[Finding]:
    findings = [finding for layer in layers for finding in layer_findings(layer)]
    if layers:
        findings += twin_findings(layers[-1], ran)
    for direction in dict.fromkeys(layer.found.direction for layer in layers):
        same = [layer for layer in layers if layer.found.direction == direction]
        findings += need_findings(same, settings.needs_lag, reads_last=ran.reads_last)
    return findings
