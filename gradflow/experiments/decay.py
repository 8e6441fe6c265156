"""How fast does ds_T/ds_0 fade when the keep gate is held? Measured beside f^T and z^T."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from gradflow.cells.base import Cell
from gradflow.cells.ensemble import stack_cells
from gradflow.cells.shapes import State
from gradflow.config import DecaySettings
from gradflow.engine.autograd_check import autograd_log_norms, independent_twin, readable_steps
from gradflow.engine.blocks import BlockName
from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.trajectory import zero_input
from gradflow.errors import UnknownNameError, nearest_name
from gradflow.experiments.decay_checks import decay_checks, decay_notes
from gradflow.experiments.decay_paths import measure_paths, path_checks
from gradflow.experiments.held_cells import HeldCell, held_cells, require_device, start_state
from gradflow.experiments.rates import fit_rate, half_life, report_points
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.decay import AutogradCheck, DecayCurve, DecayResult
from gradflow.records.paths import CellPaths

Progress = Callable[[str, int, int], None]
LN10 = math.log(10.0)

# Plain autograd keeps no scale and computes slopes as 1 - tanh^2: over 100 steps its own round-off
# stays within these.
AUTOGRAD_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-3}


def run_decay(settings: DecaySettings, *, progress: Progress | None = None) -> DecayResult:
    """Measure ||ds_T/ds_0|| over T for every cell, gate value, candidate gain and path.

    Args:
        settings: what to measure.
        progress: called as `progress(what, steps done, steps in all)`.

    Returns:
        The curves (the `full` path first, then the `direct` one) and the checks.

    Raises:
        UnknownNameError: a cell, state or device that does not exist.
        CellLoadError: a user's cell that does not load or does not step.
    """
    watch = Stopwatch()
    require_device(settings.device, getattr(torch, settings.dtype))
    subjects = {name: list(held_cells(name, settings)) for name in settings.cell}
    for name, cells in subjects.items():
        _require_state_name(name, cells[0], settings)
    curves: list[DecayCurve] = []
    for name, cells in subjects.items():
        for _, group in groupby(cells, key=lambda held: held.candidate_gain):
            curves += _measure(name, list(group), settings, progress)
    paths = tuple(_measure_paths(subjects, settings, progress)) if settings.paths else ()
    return DecayResult(
        curves=tuple(curves),
        notes=(*_cell_notes(subjects), *decay_notes(curves)),
        paths=paths,
        checks=(*decay_checks(curves), *(path_checks(paths) if paths else ())),
        config=settings.to_json(),
        environment=provenance("decay", settings, watch),
    )


def _cell_notes(subjects: dict[str, list[HeldCell]]) -> tuple[str, ...]:
    """Return what a user's cells have to say of themselves, such as dropout that is now off."""
    return tuple(
        f"{name}: {note}"
        for name, cells in subjects.items()
        for note in getattr(cells[0].cell, "notes", ())
    )


def _require_state_name(name: str, held: HeldCell, settings: DecaySettings) -> None:
    known = [*held.cell.parts, "joint"]
    if settings.state is not None and settings.state not in known:
        raise UnknownNameError(
            f"--state {settings.state!r} is no part of the state of {name}. "
            f"{nearest_name(settings.state, known)} Or measure {name} by itself."
        )


def _measure(
    name: str, group: list[HeldCell], settings: DecaySettings, progress: Progress | None
) -> Iterable[DecayCurve]:
    """Measure curves of one cell and one gain: as one batched run where they can be stacked."""
    gain = group[0].candidate_gain
    label = name if gain is None else f"{name}, candidate gain {gain:g}"

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(label, done, total)

    at = report_points(settings.steps, settings.points)
    state = start_state(group[0].cell, settings)
    batches = [group] if group[0].can_be_stacked else [[held] for held in group]
    for batch in batches:
        cells = [held.cell for held in batch if isinstance(held.cell, Cell)]
        cell = stack_cells(cells) if len(batch) > 1 else batch[0].cell
        rows = tuple(part.expand(len(batch), -1) for part in state)
        norms = jacobian_norms(
            cell,
            zero_input(cell, len(batch), settings.steps),
            rows,
            _block(batch[0], settings),
            settings.norm,
            at=at,
            progress=report,
        )
        for row, held in enumerate(batch):
            yield _full_curve(held, norms, row, settings, state)
            if norms.direct_log_norm is not None:
                yield _curve(held, norms, row, settings, norms.direct_log_norm, path="direct")


def _measure_paths(
    subjects: dict[str, list[HeldCell]], settings: DecaySettings, progress: Progress | None
) -> Iterable[CellPaths]:
    """Measure the paths of every curve."""
    for name, cells in subjects.items():

        def report(done: int, total: int, what: str = f"{name}, paths") -> None:
            if progress is not None:
                progress(what, done, total)

        for _, group in groupby(cells, key=lambda held: held.candidate_gain):
            held = list(group)
            yield from measure_paths(held, _block(held[0], settings), settings, report)


def _block(held: HeldCell, settings: DecaySettings) -> BlockName:
    part = settings.state or held.cell.kept_part
    return "joint" if part == "joint" else (part, part)


def _full_curve(
    held: HeldCell, norms: JacobianNorms, row: int, settings: DecaySettings, state: State
) -> DecayCurve:
    check = _check_by_autograd(held, norms, row, state)
    return _curve(held, norms, row, settings, norms.log_norm, path="full", autograd=check)


def _curve(
    held: HeldCell,
    norms: JacobianNorms,
    row: int,
    settings: DecaySettings,
    log_norms: Tensor,
    *,
    path: str,
    autograd: AutogradCheck | None = None,
) -> DecayCurve:
    steps = norms.steps.numpy()
    ln_norm = log_norms[:, row].cpu().numpy()
    rate = fit_rate(steps, ln_norm)
    zeros = steps[np.isneginf(ln_norm)]
    trend_rate = None if held.gate_value is None else math.log(held.gate_value)
    # keep gates lead from the kept part to itself alone, and no sigmoid is ever truly shut
    kept = norms.block == "joint" or norms.block[0] == held.cell.kept_part
    reason = norms.zero_reason[row] if path == "full" else "underflow" if kept else "exact"
    return DecayCurve(
        cell=held.name,
        gate_name=held.gate_name,
        gate_value=held.gate_value,
        gate_min=None if norms.keep_min is None else norms.keep_min[row].item(),
        gate_max=None if norms.keep_max is None else norms.keep_max[row].item(),
        candidate_gain=held.candidate_gain,
        state=settings.state or held.cell.kept_part,
        path=path,
        norm=norms.norm,
        steps=steps,
        log10_norm=ln_norm / LN10,
        trend_log10=None if trend_rate is None else steps * trend_rate / LN10,
        rate=rate,
        trend_rate=trend_rate,
        half_life=half_life(rate),
        first_zero_step=int(zeros[0]) if len(zeros) else None,
        zero_reason=reason if len(zeros) else None,
        method=norms.method,
        autograd=autograd,
    )


def _check_by_autograd(
    held: HeldCell, norms: JacobianNorms, row: int, state: State
) -> AutogradCheck:
    cell = held.cell
    module, subject = independent_twin(cell)
    measured = norms.log_norm[:, row].cpu()
    dtype = state[0].dtype
    steps = readable_steps(norms.steps, measured, dtype, exact=norms.zero_reason[row] == "exact")
    error = None
    if steps:
        twin = autograd_log_norms(
            module,
            zero_input(cell, 1, steps[-1]),
            state,
            parts=cell.parts,
            block=norms.block,
            norm=norms.norm,
            steps=steps,
        ).cpu()
        ours = measured[torch.isin(norms.steps, torch.tensor(steps))]
        both_zero = torch.isneginf(ours) & torch.isneginf(twin)
        error = torch.where(both_zero, 0.0, torch.expm1(ours - twin).abs()).max().item()
    return AutogradCheck(tuple(steps), error, AUTOGRAD_TOLERANCE[dtype], subject)
