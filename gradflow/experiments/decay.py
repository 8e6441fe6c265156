"""How fast does ds_T/ds_0 fade when the keep gate is held? Measured beside f^T and z^T."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import torch

from gradflow.cells.base import Cell
from gradflow.cells.ensemble import stack_cells
from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.config import DecaySettings
from gradflow.engine.blocks import BlockName
from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.krylov_measurement import FEW_POINTS, suits_vectors
from gradflow.engine.threads import threads_for
from gradflow.engine.trajectory import zero_input
from gradflow.errors import Interrupted, UnknownNameError, nearest_name
from gradflow.experiments.decay_checks import decay_checks, decay_notes
from gradflow.experiments.decay_curves import curve_of, full_curve
from gradflow.experiments.decay_paths import measure_paths, path_checks
from gradflow.experiments.exact_rates import (
    exact_lines,
    exact_rate_check,
    with_exact_rate,
    zero_state_rates,
)
from gradflow.experiments.held_cells import (
    HeldCell,
    gains_left_out,
    held_cells,
    require_device,
    start_state,
)
from gradflow.experiments.rates import report_points
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.decay import DecayCurve, DecayResult
from gradflow.records.paths import CellPaths

Progress = Callable[[str, int, int], None]
Subjects = dict[str, list[HeldCell]]


@torch.inference_mode(False)  # a notebook's own mode would take the gradients from autograd
def run_decay(settings: DecaySettings, *, progress: Progress | None = None) -> DecayResult:
    """Measure ||ds_T/ds_0|| over T for every cell, gate value, candidate gain and path.

    Args:
        settings: what to measure.
        progress: called as `progress(what, steps done, steps in all)`.

    Returns:
        The curves (the `full` path first, then the `direct` one) and the checks.

    Raises:
        UnknownNameError: a cell, state or device that does not exist, or a method that does not
            apply.
        CellLoadError: a user's cell that does not load or does not step.
        Interrupted: stopped from the keyboard; its `partial` is the result up to then.
    """
    watch = Stopwatch()
    require_device(settings.device, getattr(torch, settings.dtype))
    subjects = {name: list(held_cells(name, settings)) for name in settings.cell}
    for name, cells in subjects.items():
        _require_state_name(name, cells[0], settings)
    curves: list[DecayCurve] = []
    paths: list[CellPaths] = []
    with threads_for(2 * settings.hidden**3 * len(settings.gate)):
        rates = {name: zero_state_rates(cells, settings) for name, cells in subjects.items()}
        stopped = _fill(curves, paths, subjects, settings, progress)
        curves = [with_exact_rate(curve, rates[curve.cell]) for curve in curves]
        result = DecayResult(
            curves=tuple(curves),
            notes=(*_cell_notes(subjects, settings), *decay_notes(curves)),
            paths=tuple(paths),
            exact_lines=tuple(
                line for name in subjects for line in exact_lines(name, rates[name], settings)
            ),
            checks=_checks(curves, paths, settings),
            config=settings.to_json(),
            environment={**provenance("decay", settings, watch), **stopped},
        )
    if stopped:
        raise Interrupted(stopped["interrupted"], partial=result if curves else None)
    return result


def _fill(
    curves: list[DecayCurve],
    paths: list[CellPaths],
    subjects: Subjects,
    settings: DecaySettings,
    progress: Progress | None,
) -> dict[str, str]:
    """Measure into the lists, one by one, so that an interruption leaves what came before it.

    Returns:
        Nothing, or {"interrupted": how far it came}.
    """
    try:
        for curve in _measure_all(subjects, settings, progress):
            curves.append(curve)  # noqa: PERF402
        if settings.paths:
            for cell_paths in _measure_paths(subjects, settings, progress):
                paths.append(cell_paths)  # noqa: PERF402
    except (KeyboardInterrupt, Interrupted) as stop:
        return {"interrupted": str(stop) or f"{len(curves)} curves are complete."}
    return {}


def _checks(
    curves: list[DecayCurve], paths: list[CellPaths], settings: DecaySettings
) -> tuple[Check, ...]:
    exact = exact_rate_check(curves, settings)
    return (
        *decay_checks(curves),
        *([] if exact is None else [exact]),
        *path_checks(paths, settings.dtype),
    )


def _cell_notes(subjects: Subjects, settings: DecaySettings) -> tuple[str, ...]:
    """Return what a user's cells have to say of themselves, such as dropout that is now off."""
    notes = []
    for name, cells in subjects.items():
        cell = cells[0].cell
        notes += [f"{name}: {note}" for note in getattr(cell, "notes", ())]
        gains = ", ".join(f"{gain:g}" for gain in gains_left_out(cell, settings))
        if gains:
            notes.append(
                f"{name}: candidate gain {gains} is left out, because the cell does not say which "
                "weights are its candidate's; declare a gate of role 'candidate' for that half."
            )
    return tuple(notes)


def _require_state_name(name: str, held: HeldCell, settings: DecaySettings) -> None:
    known = [*held.cell.parts, "joint"]
    if settings.state is not None and settings.state not in known:
        raise UnknownNameError(
            f"--state {settings.state!r} is no part of the state of {name}. "
            f"{nearest_name(settings.state, known)} Or measure {name} by itself."
        )


def _measure_all(
    subjects: Subjects, settings: DecaySettings, progress: Progress | None
) -> Iterator[DecayCurve]:
    """Yield the curves of each cell and gain: as one batched run where they can be stacked."""
    for name, cells in subjects.items():
        for gain, members in groupby(cells, key=lambda held: held.candidate_gain):
            group = list(members)
            label = name if gain is None else f"{name}, candidate gain {gain:g}"
            batches = [group] if group[0].can_be_stacked else [[held] for held in group]
            for batch in batches:
                yield from _measure(label, batch, settings, progress)


def _measure(
    label: str, batch: list[HeldCell], settings: DecaySettings, progress: Progress | None
) -> Iterator[DecayCurve]:
    """Yield the curves of one batched run; those that an interruption left, before it goes on."""
    cells = [held.cell for held in batch if isinstance(held.cell, Cell)]
    cell = stack_cells(cells) if len(batch) > 1 else batch[0].cell
    state = start_state(batch[0].cell, settings)
    rows = tuple(part.expand(len(batch), -1) for part in state)

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(label, done, total)

    stop = None
    try:
        norms = jacobian_norms(
            cell,
            zero_input(cell, len(batch), settings.steps),
            rows,
            _block(batch[0], settings),
            settings.norm,
            at=_points(cell, rows, settings),
            method=settings.method,
            progress=report,
        )
    except Interrupted as stopped:
        if not isinstance(stopped.partial, JacobianNorms) or not len(stopped.partial.steps):
            raise
        norms, stop = stopped.partial, Interrupted(f"{label}: {stopped}")
    for row, held in enumerate(batch):
        yield full_curve(held, norms, row, settings, state)
        if norms.direct_log_norm is not None:
            yield curve_of(held, norms, row, settings, norms.direct_log_norm, path="direct")
    if stop is not None:
        raise stop


def _points(cell: CellLike, state: State, settings: DecaySettings) -> list[int]:
    """Return the steps to report; a few where each of them is a computation of its own."""
    chosen = settings.points
    if chosen is None and suits_vectors(cell, state, settings.norm, settings.method):
        chosen = FEW_POINTS
    return report_points(settings.steps, chosen)


def _measure_paths(
    subjects: Subjects, settings: DecaySettings, progress: Progress | None
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
