"""`gradflow saturate` as a table, CSV rows and a figure."""

from __future__ import annotations

from typing import Any

from gradflow.present import saturate_words as words
from gradflow.present.numbers import ABSENT
from gradflow.present.outputs import Outputs, Row
from gradflow.present.saturate_figure import saturate_figure
from gradflow.present.tables import Column, TextTable
from gradflow.records import SaturateResult, SaturateRow

__all__ = ["saturate_figure", "saturate_outputs", "saturate_rows", "saturate_table"]

_MOST_FINDINGS = 8
_FIRST = ("during", "tensor", "gate", "unit", "step", "operation", "parameter", "row", "value",
          "true_log10", "fits")  # fmt: skip


def saturate_outputs(result: SaturateResult, *, style: str = "screen") -> Outputs:
    """Return a saturation ready to be shown and stored; table, figure and CSV are "saturate"."""
    return Outputs(
        table=saturate_table(result),
        tables={"saturate": saturate_rows(result)},
        figures={"saturate": saturate_figure(result, style=style)},
    )


def saturate_table(result: SaturateResult) -> TextTable:
    """Return the table: a section per cell, a row per implementation and dtype.

    A column per magnitude says the gravest verdict of its trials, with how many of them have it;
    where all are finite, with the share of gate derivatives that are exactly zero.
    """
    magnitudes = words.magnitudes_of(result)
    columns = (
        Column("cell", numeric=False),
        Column("by", numeric=False),
        Column("dtype", numeric=False),
        *(Column(magnitude or "as given", numeric=False) for magnitude in magnitudes),
    )
    cells = list(dict.fromkeys(row.cell for row in result.rows))
    sections = tuple(_section(result, cell, magnitudes) for cell in cells)
    shares = any(row.zero_slope_fraction is not None for row in result.rows)
    meaning = "Percentages are the share of gate derivatives that are exactly zero."
    parts = "Fractions say in how many of the trials: 1/6 is one of six."
    counted = any(row.verdict in ("fault", "overflow") for row in result.rows)
    notes = (
        words.summary(result),
        *((meaning,) if shares else ()),
        *((parts,) if counted else ()),
        *_shown(words.findings(result)),
        *result.notes,
    )
    title = (
        "What stays finite when gates, inputs and states are huge "
        f"({words.conditions(result)}; every gate, the input and the state, both signs)"
    )
    return TextTable(title=title, columns=columns, sections=sections, notes=notes)


def saturate_rows(result: SaturateResult) -> list[Row]:
    """Return one CSV row per trial; `first_*` tell of the first tensor that is not finite."""
    return [_csv_row(row) for row in result.rows]


def _shown(findings: list[str]) -> list[str]:
    """Return the gravest findings, and a word on the rest."""
    left = len(findings) - _MOST_FINDINGS
    more = [f"... and {left:,} more kinds of failure: see the CSV or the JSON."] if left > 0 else []
    return findings[:_MOST_FINDINGS] + more


def _section(
    result: SaturateResult, cell: str, magnitudes: list[str | None]
) -> tuple[tuple[str, ...], ...]:
    rows = []
    for subject in words.subjects_of(result):
        for dtype in words.dtypes_of(result):
            if subject[0] == cell:
                tiles = [words.tile_of(result, subject, dtype, m) for m in magnitudes]
                texts = [ABSENT if tile is None else tile.text for tile in tiles]
                rows.append((*subject, dtype, *texts))
    return tuple(rows)


def _csv_row(row: SaturateRow) -> dict[str, Any]:
    document = row.to_json()
    first = document.pop("first_nonfinite") or {}
    reason = document.pop("reason")
    return {**document, **{f"first_{name}": first.get(name) for name in _FIRST}, "reason": reason}
