"""What a measured spectrum must show, as checks; and what a reader should know of it, as notes."""

from __future__ import annotations

import math

import torch

from gradflow.engine.lyapunov import LyapunovSpectrum
from gradflow.engine.lyapunov.log_determinant import mean_log_determinant
from gradflow.experiments.spectrum_subjects import SpectrumSubject
from gradflow.records.base import Check

# A sum has many rounding errors; those that a badly conditioned step enlarges are added to it.
SUM_TOLERANCE = 1e-6
LARGEST_CHECKED = 300  # numbers in a state: determinants of larger steps cost more than the run


def spectrum_checks(subject: SpectrumSubject, measured: LyapunovSpectrum) -> tuple[Check, ...]:
    """Return the checks: that every number is one, and that the sum is the mean log determinant."""
    checks = [_known_check(measured)]
    whole = len(measured.exponents) == measured.state_size
    if whole and math.isfinite(measured.sum) and measured.state_size <= LARGEST_CHECKED:
        checks.append(_sum_check(subject, measured))
    return tuple(checks)


def spectrum_notes(measured: LyapunovSpectrum) -> tuple[str, ...]:
    """Return why exponents are -inf, and what the sum leaves out."""
    notes = []
    for reason, words in _REASONS.items():
        number = measured.zero_reason.count(reason)
        if number:
            share = f"{number} of {len(measured.exponents)} exponents"
            notes.append(f"{share} {'is' if number == 1 else 'are'} minus infinity: {words}")
    if len(measured.exponents) < measured.state_size:
        notes.append(
            f"{len(measured.exponents)} of {measured.state_size} exponents were measured; the sum "
            "is of these."
        )
    return tuple(notes)


_REASONS = {
    "exact": "the cell is built so that nothing of these directions is left. "
    "That is its structure, no failure.",
    "underflow": "these directions shrink within a step by more than the dtype can tell beside "
    "the others, though a path exists.",
}


def _known_check(measured: LyapunovSpectrum) -> Check:
    gone = torch.isneginf(measured.exponents)
    explained = torch.tensor([reason is not None for reason in measured.zero_reason])
    passed = bool((torch.isfinite(measured.exponents) | (gone & explained)).all())
    number = len(measured.exponents)
    return Check(
        name="every exponent is finite or a known zero",
        passed=passed,
        detail=f"{number - int(gone.sum())} finite, {int(gone.sum())} with a known reason",
    )


def _sum_check(subject: SpectrumSubject, measured: LyapunovSpectrum) -> Check:
    taken = subject.x[: measured.warmup + measured.steps]  # all of it, but for an interrupted run
    determinant, rounding = mean_log_determinant(
        subject.cell, taken, subject.state, warmup=measured.warmup
    )
    off = abs(measured.sum - determinant)
    return Check(
        name="the sum is the mean log determinant",
        passed=off <= SUM_TOLERANCE * max(1.0, abs(determinant)) + rounding,
        detail=f"sum {measured.sum:.9g}, mean of ln|det J_t| by LU {determinant:.9g}: "
        f"{off:.1e} apart, rounding may be {rounding:.1e}",
    )
