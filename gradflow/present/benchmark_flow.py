"""The gradient's flow in numbers: what of the loss the first and the last state feel."""

from __future__ import annotations

import math

from gradflow.present import benchmark_words as words
from gradflow.present.benchmark_gradient import MOMENTS, mean_profile
from gradflow.present.numbers import ABSENT, log10_text
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.base import FloatArray
from gradflow.records.benchmark import BenchmarkResult, BenchmarkRow


def flow_table(result: BenchmarkResult, comparison: str) -> TextTable:
    """Return log10 ||dL/dh_t|| at t = 1 and at the last step, at three moments of training.

    Means over seeds. The last column is the mean factor of a step back, before any training.
    """
    columns = (
        Column("T"),
        Column("cell", numeric=False),
        Column("initialization", numeric=False),
        Column("first:\nstart"),
        Column("\nmiddle"),
        Column("\nend"),
        Column("last:\nstart"),
        Column("\nmiddle"),
        Column("\nend"),
        Column("factor\na step"),
    )
    sections = tuple(
        tuple(
            _cells(result, row) for row in result.compared(comparison) if row.delay == facts.delay
        )
        for facts in result.tasks
    )
    return TextTable(
        title="Gradient flow, log10 ||dL/dh_t|| of the loss on the answers at the first and the "
        "last step, and the factor of a step back at the start. "
        f"{words.comparison_title(result, comparison)}",
        columns=columns,
        sections=tuple(section for section in sections if section),
        shared=1,
    )


def factor_a_step(profile: FloatArray) -> float | None:
    """Return what a step back multiplies the gradient by, on average; None without a number.

    >>> import numpy as np
    >>> round(factor_a_step(np.log10([0.125, 0.25, 0.5])), 6)
    0.5
    """
    fall = float(profile[0] - profile[-1])
    if len(profile) < 2 or not math.isfinite(fall):
        return None
    return float(10.0 ** (fall / (len(profile) - 1)))


def _cells(result: BenchmarkResult, row: BenchmarkRow) -> Cells:
    profiles = [mean_profile(result, row, moment) for moment in MOMENTS]
    factor = None if profiles[0] is None else factor_a_step(profiles[0])
    return (
        str(row.delay),
        words.short_cell(result, row.cell),
        words.init_name(row.cell, row.init),
        *(_end(profile, 0) for profile in profiles),
        *(_end(profile, -1) for profile in profiles),
        ABSENT if factor is None else f"{factor:.3g}",
    )


def _end(profile: FloatArray | None, place: int) -> str:
    """Return an end of a profile, never with an exponent of its own: it is one already.

    >>> import numpy as np
    >>> _end(np.array([-1234.5, -1.25]), 0), _end(np.array([-1234.5, -1.25]), 1)
    ('-1234', '-1.25')
    """
    if profile is None:
        return ABSENT
    value = float(profile[place])
    return f"{value:.0f}" if 1000.0 <= abs(value) < math.inf else log10_text(value, 3)
