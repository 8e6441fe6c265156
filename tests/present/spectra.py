"""Spectra in closed form: what the figure and the table of `spectrum` are tested on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradflow.records.spectrum import SpectrumInput, SpectrumResult


def spectrum_of(
    *exponents: float,
    error: float = 0.01,
    gone: int = 0,
    reason: str = "exact",
    dimension: float | None = 0.0,
) -> SpectrumResult:
    """Return a spectrum of these exponents, and of `gone` directions that nothing is left of."""
    values = np.array([*exponents, *[-np.inf] * gone])
    errors = np.array([*[error] * len(exponents), *[np.nan] * gone])
    return SpectrumResult(
        cell="lstm",
        gain=1.0,
        state_size=len(values),
        steps=2000,
        warmup=500,
        networks=1,
        trajectories=1,
        fed=SpectrumInput("zero", 1),
        exponents=values,
        standard_errors=errors,
        zero_reason=(*[None] * len(exponents), *[reason] * gone),
        by_row=values[None],
        kaplan_yorke_dimension=dimension,
    )


def long_spectrum(number: int = 128, *, runs: int = 1) -> SpectrumResult:
    """Return a chaotic spectrum that falls from 0.3 to -12, the mean of several runs."""
    values = 0.3 - 12.3 * np.linspace(0.0, 1.0, number) ** 2
    spread = 0.05 * np.linspace(-1.0, 1.0, runs)[:, None] if runs > 1 else np.zeros((1, 1))
    return replace(
        spectrum_of(*values, dimension=0.27 * number),
        cell="rnn",
        gain=3.0,
        networks=runs,
        by_row=values + spread,
    )
