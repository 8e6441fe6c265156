"""What does each direction of the state shrink or grow by per step? The Lyapunov exponents."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gradflow.config import SpectrumSettings
from gradflow.engine.lyapunov import LyapunovSpectrum, lyapunov_spectrum
from gradflow.errors import Interrupted
from gradflow.experiments.held_cells import require_device
from gradflow.experiments.spectrum_checks import spectrum_checks, spectrum_notes
from gradflow.experiments.spectrum_subjects import SpectrumSubject, spectrum_subject
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.spectrum import SpectrumInput, SpectrumResult

Progress = Callable[[str, int, int], None]


def run_spectrum(settings: SpectrumSettings, *, progress: Progress | None = None) -> SpectrumResult:
    """Measure the Lyapunov exponents of a cell along its own run.

    Args:
        settings: what to measure.
        progress: called as `progress(what, steps done, steps in all)`.

    Returns:
        The exponents in nats per step, the largest first, and the checks.

    Raises:
        UnknownNameError, CellLoadError, CheckpointError: a cell or device that does not exist, or
            does not load.
        SeriesError, ShapeError, SettingError: data or numbers that do not fit.
        DivergenceError: the state did not stay finite.
        Interrupted: stopped from the keyboard; its `partial` is the result up to then.
    """
    watch = Stopwatch()
    require_device(settings.device, torch.float64)
    subject = spectrum_subject(settings)

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(subject.name, done, total)

    try:
        measured = lyapunov_spectrum(
            subject.cell,
            subject.state,
            subject.x,
            settings.count,
            settings.warmup,
            progress=report,
        )
    except Interrupted as stop:
        if isinstance(stop.partial, LyapunovSpectrum):
            so_far = _result(settings, subject, stop.partial, watch, interrupted=str(stop))
            raise Interrupted(str(stop), partial=so_far) from None
        raise
    return _result(settings, subject, measured, watch)


def _result(
    settings: SpectrumSettings,
    subject: SpectrumSubject,
    measured: LyapunovSpectrum,
    watch: Stopwatch,
    *,
    interrupted: str | None = None,
) -> SpectrumResult:
    stopped = {} if interrupted is None else {"interrupted": interrupted}
    series = subject.series
    return SpectrumResult(
        cell=subject.name,
        gain=subject.gain,
        state_size=measured.state_size,
        steps=measured.steps,
        warmup=measured.warmup,
        networks=settings.networks,
        trajectories=subject.rows // settings.networks,
        fed=SpectrumInput(
            kind=settings.input if series is None else "data",
            width=subject.x.shape[-1],
            file=None if series is None else series.file,
            sha256=None if series is None else series.sha256,
        ),
        exponents=measured.exponents.numpy(),
        standard_errors=measured.standard_errors.numpy(),
        zero_reason=measured.zero_reason,
        by_row=measured.by_row.numpy(),
        kaplan_yorke_dimension=measured.kaplan_yorke_dimension,
        method=measured.method,
        notes=(*_cell_notes(settings, subject), *spectrum_notes(measured)),
        checks=spectrum_checks(subject, measured),
        config=settings.to_json(),
        environment={**provenance("spectrum", settings, watch), **stopped},
    )


def _cell_notes(settings: SpectrumSettings, subject: SpectrumSubject) -> tuple[str, ...]:
    """Return what the cell has to say of itself, and that a gain was not for it."""
    notes = [f"{subject.name}: {note}" for note in subject.notes]
    if subject.gain is None and settings.gain != SpectrumSettings().gain:
        notes.append(
            f"{subject.name}: measured with the weights that it comes with; --gain draws those of "
            "built-in cells alone."
        )
    return tuple(notes)
