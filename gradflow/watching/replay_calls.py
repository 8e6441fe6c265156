"""Captured calls of a layer run again by its twin: those of equal length as rows of one batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from gradflow.watching.call_flow import CallFlow
from gradflow.watching.capture.call import OUTPUT, Call
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.dropout import dropout_masks
from gradflow.watching.twin.broken import is_sound
from gradflow.watching.twin.layer import CellFlow, LayerForm, LayerRun, replay
from gradflow.watching.twin.norms import log10_norms
from gradflow.watching.twin.weights import Tensors, is_relu, kind_of, own_weights, weights_by_cell

# Numbers that a twin may keep at once, about 256 MB: rows are run in shares of it.
_ROOM = 2**25
# One row cannot be shared out: beyond this, about 2 GB, it is left out.
_MOST_ROOM = 2**28
_NUMBERS_PER_UNIT = 16  # of a step of one cell: gates before and after, states, slopes, gradients


def form_of(watched: WatchedModule, tensors: Tensors) -> LayerForm:
    """Return what a twin needs of torch's layer or cell, with the weights of a snapshot."""
    module = watched.torchs_own
    assert module is not None
    weights = weights_by_cell(module, tensors)
    return LayerForm(kind_of(module), weights, watched.directions, is_relu(module))


def is_too_long(watched: WatchedModule, call: Call) -> bool:
    """Return whether a call has so many steps that a twin of one row would not fit into memory."""
    own = watched.torchs_own
    if own is None:
        return False
    rows = sum(part.shape[0] for name, part in own_weights(own).items() if "weight_hh" in name)
    return call.steps * rows * _NUMBERS_PER_UNIT // 4 > _MOST_ROOM


def replay_calls(
    watched: WatchedModule, calls: Sequence[Call], tensors: Tensors
) -> list[list[CallFlow]]:
    """Replay calls of torch's own layer or cell; return the flow of each cell for each call.

    Args:
        watched: the module.
        calls: to each of which something arrived.
        tensors: a snapshot of the weights that they ran with.
    """
    form = form_of(watched, tensors)
    found: dict[int, list[CallFlow]] = {}
    for steps in {call.steps for call in calls}:
        places = [index for index, call in enumerate(calls) if call.steps == steps]
        group = [calls[index] for index in places]
        found |= zip(places, _replayed_together(watched, form, group), strict=True)
    return [found[index] for index in range(len(calls))]


def _replayed_together(
    watched: WatchedModule, form: LayerForm, calls: Sequence[Call]
) -> list[list[CallFlow]]:
    runs = [_run_of(watched, form, call) for call in calls]
    flows = _in_shares(form, _side_by_side(form, runs))
    if len(runs) > 1 and not all(is_sound(flow.final, flow.logs) for flow in flows):
        # to name the place of what is not finite, each by itself
        return [_replayed_together(watched, form, [call])[0] for call in calls]
    answers, first = [], 0
    for call, run in zip(calls, runs, strict=True):
        last = first + run.x.shape[1]
        rows = [_rows_of(flow, first, last) for flow in flows]
        answers.append([_call_flow(form, cell, call, run, flow) for cell, flow in enumerate(rows)])
        first = last
    return answers


def _run_of(watched: WatchedModule, form: LayerForm, call: Call) -> LayerRun:
    layout, device = call.layout, form.weights[0].input.device

    def wide(values: Tensor) -> Tensor:
        return values.to(device=device, dtype=torch.float64)

    x = wide(layout.sequence(call.x))
    final = [wide(layout.state(part)) for part in call.final]
    start = tuple(wide(layout.state(part)) for part in call.start)
    came = {slot: gradient for slot, gradient in call.arrived.items() if slot != OUTPUT}
    lengths, output = layout.lengths, call.arrived.get(OUTPUT)
    return LayerRun(
        x=x,
        start=start or tuple(map(torch.zeros_like, final)),
        lengths=None if lengths is None else lengths.to(device),
        masks=dropout_masks(watched.module, call, x, shown=form.directions * final[0].shape[-1]),
        output=None if output is None else wide(layout.sequence(output)),
        final=tuple(
            wide(layout.state(came[index])) if index in came else None
            for index in range(len(final))
        ),
        c_holds_h=call.c_holds_h,
    )


def _side_by_side(form: LayerForm, runs: Sequence[LayerRun]) -> LayerRun:
    """Return runs of equally many steps as one; what one lacks and another has is filled in."""
    if len(runs) == 1:
        return runs[0]
    width = form.directions * runs[0].start[0].shape[-1]
    ones = [run.x.new_ones(*run.x.shape[:2], width) for run in runs]
    zeros = [torch.zeros_like(each) for each in ones]
    lengths = None
    if any(run.lengths is not None for run in runs):
        lengths = torch.cat([_own_lengths(run) for run in runs])
    return LayerRun(
        x=torch.cat([run.x for run in runs], dim=1),
        start=tuple(torch.cat(p, dim=1) for p in zip(*(run.start for run in runs), strict=True)),
        lengths=lengths,
        masks=tuple(_filled([r.masks[level] for r in runs], ones) for level in range(form.levels)),
        output=_filled([run.output for run in runs], zeros),
        final=tuple(
            _filled([r.final[k] for r in runs], [torch.zeros_like(r.start[k]) for r in runs])
            for k in range(len(form.parts))
        ),
        c_holds_h=runs[0].c_holds_h,
    )


def _filled(given: Sequence[Tensor | None], instead: Sequence[Tensor]) -> Tensor | None:
    """Return tensors beside each other, with a substitute where one is None; None where all are."""
    if all(each is None for each in given):
        return None
    pairs = zip(given, instead, strict=True)
    return torch.cat([other if each is None else each for each, other in pairs], dim=1)


def _own_lengths(run: LayerRun) -> Tensor:
    if run.lengths is not None:
        return run.lengths
    return torch.full((run.x.shape[1],), len(run.x), device=run.x.device)


def _in_shares(form: LayerForm, run: LayerRun) -> list[CellFlow]:
    """Replay as many rows at once as fit into the room."""
    units = sum(weights.recurrent.shape[0] for weights in form.weights)
    share = max(1, _ROOM // max(1, len(run.x) * units * _NUMBERS_PER_UNIT // 4))
    rows = run.x.shape[1]
    found = [replay(form, run.rows(first, first + share)) for first in range(0, rows, share)]
    return [_together(flows) for flows in zip(*found, strict=True)]


def _together(flows: Sequence[CellFlow]) -> CellFlow:
    first = flows[0]
    if len(flows) == 1:
        return first
    return CellFlow(
        logs=tuple(torch.cat(p, dim=1) for p in zip(*(f.logs for f in flows), strict=True)),
        start=tuple(torch.cat(p) for p in zip(*(f.start for f in flows), strict=True)),
        final=tuple(torch.cat(p) for p in zip(*(f.final for f in flows), strict=True)),
        reached=tuple(
            None if part is None else torch.cat([f.reached[k] for f in flows])  # type: ignore[misc]
            for k, part in enumerate(first.reached)
        ),
        gates={name: torch.cat([f.gates[name] for f in flows]) for name in first.gates},
        broken=next((flow.broken for flow in flows if flow.broken is not None), None),
    )


def _rows_of(flow: CellFlow, first: int, last: int) -> CellFlow:
    return CellFlow(
        logs=tuple(part[:, first:last] for part in flow.logs),
        start=tuple(part[first:last] for part in flow.start),
        final=tuple(part[first:last] for part in flow.final),
        reached=tuple(None if part is None else part[first:last] for part in flow.reached),
        gates={name: rows[first:last] for name, rows in flow.gates.items()},
        broken=flow.broken,
    )


def _call_flow(form: LayerForm, cell: int, call: Call, run: LayerRun, flow: CellFlow) -> CallFlow:
    fused = tuple(call.layout.state(part)[cell] for part in call.final)
    came = _came(form, cell, run)
    return CallFlow(
        logs=flow.logs,
        lengths=None if run.lengths is None else run.lengths.cpu(),
        entered=~torch.isneginf(came),
        came=came,
        final=flow.reached,
        size=_size(part[cell] for part in run.final if part is not None),
        start=flow.start,
        gates=flow.gates,
        broken=flow.broken,
        gap=max(_gap(*pair) for pair in zip(flow.final, fused, strict=True)),
    )


def _came(form: LayerForm, cell: int, run: LayerRun) -> Tensor:
    """Return log10 of what came in by the output, into the cell's half, or above a lower one.

    (time, rows) in the order in which the cell reads; -inf where nothing did.
    """
    steps, rows = run.x.shape[:2]
    if run.output is None:
        return torch.full((steps, rows), -math.inf, dtype=torch.float64)
    level, direction = divmod(cell, form.directions)
    top = level == form.levels - 1
    share = run.output.chunk(form.directions, dim=-1)[direction] if top else run.output
    return log10_norms(run.turned(share) if direction else share)


def _size(parts: Iterable[Tensor]) -> float:
    return max((float(torch.linalg.vector_norm(part)) for part in parts), default=0.0)


def _gap(twin: Tensor, fused: Tensor) -> float:
    """Return the largest difference relative to the largest number (at least 1)."""
    wide = fused.to(twin)
    if not wide.numel() or not bool(torch.isfinite(wide).all()):
        return 0.0
    return float((twin - wide).abs().max()) / max(1.0, float(wide.abs().max()))
