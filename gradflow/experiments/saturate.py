"""Do cells stay finite, forward and backward, when gates, inputs and states are huge?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from gradflow.config import SaturateSettings
from gradflow.engine.finiteness.find_fault import find_fault
from gradflow.engine.saturation.measure import Feed, measure
from gradflow.engine.saturation.places import load, ordinary_feed
from gradflow.engine.saturation.subjects import Subject
from gradflow.engine.threads import threads_for
from gradflow.errors import GradflowError
from gradflow.experiments.held_cells import require_device
from gradflow.experiments.saturate_checks import saturate_checks, saturate_notes
from gradflow.experiments.saturate_subjects import Entry, cell_notes, entries, one_line
from gradflow.experiments.saturate_trials import BEYOND, Trial, trials
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.saturate import SaturateResult, SaturateRow

_RAISED = (GradflowError, RuntimeError, TypeError, ValueError, NotImplementedError)

Progress = Callable[[str, int, int], None]


@torch.inference_mode(False)  # a notebook's own mode would take the gradients from autograd
def run_saturate(settings: SaturateSettings, *, progress: Progress | None = None) -> SaturateResult:
    """Put huge numbers into every gate, the input and the state, and report what is not finite.

    Args:
        settings: what to try.
        progress: called as `progress(what, trials done, trials in all)`.

    Returns:
        A row per cell, implementation, dtype, place, magnitude and sign, and the checks.

    Raises:
        UnknownNameError: a cell or a device that does not exist.
        CellLoadError: a user's cell that does not load, or does not step.
    """
    watch = Stopwatch()
    require_device(settings.device, torch.float32)
    rows: list[SaturateRow] = []
    width = settings.hidden + settings.input_size
    with threads_for(4 * settings.batch * settings.hidden * width):
        found = entries(settings)
        for number, entry in enumerate(found):
            if progress is not None:
                progress(f"{entry.name} ({entry.implementation})", number, len(found))
            rows += _rows(entry, settings)
    if progress is not None:
        progress("saturate", len(found), len(found))
    return SaturateResult(
        rows=tuple(rows),
        notes=(*cell_notes(found), *saturate_notes(rows)),
        checks=saturate_checks(rows),
        config=settings.to_json(),
        environment=provenance("saturate", settings, watch),
    )


def _rows(entry: Entry, settings: SaturateSettings) -> Iterator[SaturateRow]:
    subject = entry.subject
    if subject is None:
        yield _not_applicable(entry, None, entry.problem)
        return
    weights = copy.deepcopy(subject.module.state_dict())
    feed = ordinary_feed(subject, steps=settings.steps, batch=settings.batch, seed=settings.seed)
    for trial in trials(subject, settings):
        if trial.problem is not None:
            yield _not_applicable(entry, trial, trial.problem)
            continue
        yield _measured(entry, trial, subject, load(subject, trial.place, trial.value, feed))
        subject.module.load_state_dict(weights)


def _measured(entry: Entry, trial: Trial, subject: Subject, feed: Feed) -> SaturateRow:
    row = _not_applicable(entry, trial, None)
    try:
        measured = measure(subject, feed)
    except _RAISED as error:  # a user's cell that refuses the number
        return replace(row, verdict="fault", reason=f"it raised an error: {one_line(error)}")
    row = replace(
        row,
        verdict="ok",
        outputs_finite=measured.outputs_finite,
        state_gradients_finite=measured.state_gradients_finite,
        parameter_gradients_finite=measured.parameter_gradients_finite,
        gates_in_range=measured.gates_in_range,
        zero_slope_fraction=measured.zero_slope_fraction(trial.place.gate),
    )
    return row if measured.all_finite else _blamed(row, subject, feed)


def _blamed(row: SaturateRow, subject: Subject, feed: Feed) -> SaturateRow:
    """Return the row of a trial that was not finite, with who made it so."""
    try:
        finding = find_fault(subject, feed)
    except _RAISED as error:
        reason = f"not finite, and it cannot be watched: {one_line(error)}"
        return replace(row, verdict="fault", reason=reason)
    if finding is None:
        reason = "not finite once and finite when run again: its steps are random"
        return replace(row, verdict="fault", reason=reason)
    return replace(
        row, verdict=finding.verdict, first_nonfinite=finding.first, reason=finding.reason
    )


def _not_applicable(entry: Entry, trial: Trial | None, reason: str | None) -> SaturateRow:
    """Return the row of a trial that was not run; without a trial, that of the whole dtype."""
    return SaturateRow(
        cell=entry.name,
        implementation=entry.implementation,
        dtype=str(entry.dtype).removeprefix("torch."),
        magnitude=None if trial is None else trial.magnitude,
        value=None if trial is None else trial.value,
        sign=None if trial is None else trial.sign,
        place="any" if trial is None else trial.place.name,
        gate=None if trial is None else trial.place.gate,
        path="any" if trial is None else trial.place.path,
        verdict="not applicable",
        judged=entry.judged and (trial is None or trial.magnitude != BEYOND),
        reason=reason,
    )
