"""`gradflow spectrum` as a table, CSV rows and a figure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from gradflow.present import spectrum_words as words
from gradflow.present.numbers import ABSENT, number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.spectrum_figure import spectrum_figure
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.spectrum import SpectrumResult

__all__ = ["spectrum_figure", "spectrum_outputs", "spectrum_rows", "spectrum_table"]

_FIRST, _LAST = 12, 4  # exponents that a long table shows of both ends


def spectrum_outputs(result: SpectrumResult, *, style: str = "screen") -> Outputs:
    """Return a spectrum ready to be shown and stored; table, figure and CSV are "spectrum"."""
    return Outputs(
        table=spectrum_table(result),
        tables={"spectrum": spectrum_rows(result)},
        figures={"spectrum": spectrum_figure(result, style=style)},
    )


def spectrum_table(result: SpectrumResult) -> TextTable:
    """Return the table: a row per exponent, the middle of a long spectrum and its zeros as one."""
    columns = (
        Column("number"),
        Column("exponent\n(nats/step)"),
        Column("standard\nerror"),
        Column("factor\nper step"),
        Column("pace\n(steps)"),
    )
    notes = (words.leading(result), words.totals(result), *result.notes)
    title = f"{words.title(result)} ({words.conditions(result)})"
    return TextTable(title=title, columns=columns, sections=(_cells(result),), notes=notes)


def spectrum_rows(result: SpectrumResult) -> list[Row]:
    """Return one CSV row per exponent, with every digit; one of -inf is empty, with its reason."""
    return [
        {
            "number": index + 1,
            "exponent": None if np.isneginf(exponent) else float(exponent),
            "standard_error": None if np.isnan(error) else float(error),
            "zero_reason": reason,
        }
        for index, (exponent, error, reason) in enumerate(
            zip(result.exponents, result.standard_errors, result.zero_reason, strict=True)
        )
    ]


def _cells(result: SpectrumResult) -> tuple[Cells, ...]:
    finite = result.count - result.vanished
    shown = list(range(finite))
    if finite > _FIRST + _LAST + 1:
        shown = [*range(_FIRST), -1, *range(finite - _LAST, finite)]
    rows = [_row(result, index) if index >= 0 else ("...",) * 5 for index in shown]
    return (*rows, *_vanished(result))


def _vanished(result: SpectrumResult) -> Iterator[Cells]:
    """Yield a row for each run of directions that nothing is left of for one reason."""
    numbered = enumerate(result.zero_reason, start=1)
    for reason, group in groupby(numbered, key=lambda pair: pair[1]):
        numbers = [number for number, _ in group]
        if reason is not None:
            ends = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}..{numbers[-1]}"
            pace = "gone at once" if reason == "exact" else "too fast to tell"
            yield (ends, "-inf", ABSENT, "0", pace)


def _row(result: SpectrumResult, index: int) -> Cells:
    exponent = float(result.exponents[index])
    return (
        str(index + 1),
        number_text(exponent),
        words.error_text(float(result.standard_errors[index])),
        words.factor(exponent),
        words.pace(exponent),
    )
