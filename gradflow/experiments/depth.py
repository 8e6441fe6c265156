"""How much of each layer's state at each step is still felt at the top of a stack at its end?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gradflow.cells import Stack, StackRun
from gradflow.config import DepthSettings
from gradflow.engine.blocks import BlockName
from gradflow.engine.depth import DepthNorms, depth_norms
from gradflow.engine.masks import align_by_lag
from gradflow.engine.threads import threads_for
from gradflow.errors import UnknownNameError, nearest_name
from gradflow.experiments.depth_checks import check_by_autograd, depth_checks, depth_notes
from gradflow.experiments.depth_subjects import (
    DepthSubject,
    base_stack,
    batch_of,
    depth_subjects,
)
from gradflow.experiments.held_cells import require_device
from gradflow.experiments.rates import fit_rate
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.depth import DepthMap, DepthResult, DepthRow

Progress = Callable[[str, int, int], None]
LN10 = math.log(10.0)
MASK_WORDS = {"none": "", "step": ", fresh masks", "sequence": ", one mask"}


def run_depth(settings: DepthSettings, *, progress: Progress | None = None) -> DepthResult:
    """Measure ||d s_T^(L) / d s_t^(l)|| of every stack, with and without links and masks.

    Args:
        settings: what to measure.
        progress: called as `progress(what, cell steps done, cell steps in all)`.

    Returns:
        A map for each cell, link variant and kind of masks, by lag from each sample's own end; the
        checks compare with autograd, with torch's own layer and with other padding.

    Raises:
        UnknownNameError: a cell, state or device that does not exist, or nothing to read.
        CellLoadError, ShapeError: a user's cell that does not load, fit or take dropout; links
            that no layer can have.
        SettingError, GateValueError: an initialization that the cell cannot have.
    """
    watch = Stopwatch()
    require_device(settings.device, getattr(torch, settings.dtype))
    maps: list[DepthMap] = []
    checks: list[Check] = []
    notes: list[str] = []
    lengths: list[int] = []
    for name in settings.cell:
        stack, whole = base_stack(name, settings)
        _require_state_name(name, stack, settings)
        _require_direction(name, stack, settings)
        x, lengths = batch_of(stack, settings)
        with threads_for(stack.cell(0).hidden_size ** 3):
            for subject in depth_subjects(name, stack, settings):
                found = _measure(subject, x, lengths, settings, progress)
                maps.append(found)
                notes += depth_notes(found, settings)
            checks += depth_checks(name, stack, x, lengths, settings)
        notes += _stack_notes(name, stack, whole, settings)
    return DepthResult(
        maps=tuple(maps),
        lengths=tuple(lengths),
        notes=tuple(dict.fromkeys(notes)),
        checks=(*_map_checks(maps), *checks),
        config=settings.to_json(),
        environment=provenance("depth", settings, watch),
    )


def _measure(
    subject: DepthSubject,
    x: Tensor,
    lengths: list[int],
    settings: DepthSettings,
    progress: Progress | None,
) -> DepthMap:
    stack = subject.stack
    links = ", residual" if subject.residual else ""
    label = f"{subject.name}{links}{MASK_WORDS[subject.masks]}"

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(label, done, total)

    with torch.no_grad():
        run = stack.run(x, lengths=lengths, masks=subject.drawn)
    norms = depth_norms(
        stack, run, _block(settings), settings.norm, read=settings.read, progress=report
    )
    return _map_of(subject, run, norms, settings)


def _block(settings: DepthSettings) -> BlockName:
    part = settings.state
    return "joint" if part in (None, "joint") else (str(part), str(part))


def _map_of(
    subject: DepthSubject, run: StackRun, norms: DepthNorms, settings: DepthSettings
) -> DepthMap:
    stack = subject.stack
    names = ("forward", "reverse")[: stack.directions]
    aligned = align_by_lag(norms.log_norm, norms.lengths)
    lags = np.arange(len(aligned.count))
    rows = [_row(0, "input", norms.input_log_norm, norms.input_exact, norms.lengths)]
    for layer in range(stack.layers):
        for direction, name in enumerate(names):
            log_norm = norms.log_norm[layer, direction]
            exact = norms.exact[layer, direction]
            rows.append(_row(layer + 1, name, log_norm, exact, norms.lengths))
    return DepthMap(
        cell=subject.name,
        residual=subject.residual,
        masks=subject.masks,
        layers=stack.layers,
        directions=stack.directions,
        read=norms.read,
        block=settings.state or "joint",
        norm=norms.norm,
        lags=lags,
        count=aligned.count.cpu().numpy(),
        rows=tuple(row if stack.directions == 1 else _without_rate(row) for row in rows),
        method=norms.method,
        autograd=check_by_autograd(stack, run, norms),
    )


def _row(layer: int, direction: str, ln_norm: Tensor, exact: Tensor, lengths: Tensor) -> DepthRow:
    """Return one layer's norms by lag; the input's zeros in the padding are no lag of it."""
    logs = align_by_lag(ln_norm, lengths).values.cpu().numpy() / LN10
    known = align_by_lag(exact.to(torch.float64), lengths).values.cpu().numpy() == 1.0
    zero, finite = np.isneginf(logs), np.isfinite(logs)
    shown = np.where(finite, logs, np.nan)
    some = finite.any(axis=1)

    def over_samples(function: Callable[..., np.ndarray]) -> np.ndarray:
        values = np.full(len(logs), -math.inf)
        values[some] = function(shown[some], axis=1)
        return values

    mean = over_samples(np.nanmean)
    lags = np.arange(len(logs))
    rate = fit_rate(lags, mean * LN10) if len(lags) > 1 else None
    return DepthRow(
        layer=layer,
        direction=direction,
        log10_norm=mean,
        lowest=over_samples(np.nanmin),
        highest=over_samples(np.nanmax),
        zeros=zero.sum(axis=1),
        exact_zeros=(zero & known).sum(axis=1),
        rate=rate,
    )


def _without_rate(row: DepthRow) -> DepthRow:
    return DepthRow(**{**vars(row), "rate": None})


def _map_checks(maps: list[DepthMap]) -> list[Check]:
    """Return the checks over all maps: autograd, and that every number is one."""
    read = [(found, found.autograd) for found in maps if found.autograd is not None]
    errors = [check.max_relative_error for _, check in read if check.max_relative_error is not None]
    worst, bound = max(errors, default=0.0), read[0][1].tolerance if read else 0.0
    subjects = ", ".join(dict.fromkeys(check.subject for _, check in read))
    rows = [row for found in maps for row in found.rows]
    broken = sum(
        int(np.isnan(row.log10_norm).any() or np.isposinf(row.log10_norm).any()) for row in rows
    )
    zeros = sum(int(row.zeros.sum()) for row in rows)
    return [
        Check(
            "autograd agrees",
            worst <= bound or not errors,
            f"largest relative error {worst:.1e} (tolerance {bound:g}) over {len(errors)} of "
            f"{len(maps)} maps; differentiated: {subjects}",
        ),
        Check(
            "every number is finite or a known zero",
            broken == 0,
            f"not so in {broken} of {len(rows)} rows" if broken else
            f"{len(rows)} rows, {zeros} zeros, their reasons known",
        ),
    ]  # fmt: skip


def _require_state_name(name: str, stack: Stack, settings: DepthSettings) -> None:
    for cell in stack.all_cells():
        known = [*cell.parts, "joint"]
        if settings.state is not None and settings.state not in known:
            raise UnknownNameError(
                f"--state {settings.state!r} is no part of the state of {name}. "
                f"{nearest_name(settings.state, known)} Or measure {name} by itself."
            )


def _require_direction(name: str, stack: Stack, settings: DepthSettings) -> None:
    if stack.directions == 1 and settings.read.startswith("reverse"):
        raise UnknownNameError(
            f"--read {settings.read!r} needs layers that read both ways, and {name} reads forward "
            f"only. Use --bidirectional, or --read {settings.read.split()[-1]}."
        )


def _stack_notes(name: str, stack: Stack, whole: bool, settings: DepthSettings) -> list[str]:
    """Return what is the stack's own and not as asked for."""
    notes = [f"{name}: {note}" for cell in stack.cells for note in getattr(cell, "notes", ())]
    if whole:
        both = "both directions" if stack.directions == 2 else "one direction"
        notes.append(
            f"{name}: measured as its file makes it, with {stack.layers} layers in {both} and "
            "its own weights."
        )
    linked = [
        k for k in range(stack.layers) if sum(stack.output_sizes(k)) == stack.cell(k).input_size
    ]
    if settings.residual == "both" and not linked:
        notes.append(f"{name}: no layer is as wide as what it reads, so none can have a link.")
    elif settings.residual != "no" and linked == [stack.layers - 1] and "state" in settings.read:
        notes.append(
            f"{name}: the one residual link leads around the last layer, past the final state that "
            "is read, and changes nothing. Use --read output, or more --layers."
        )
    return notes
