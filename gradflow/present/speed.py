"""`gradflow speed` as a table, CSV rows and a figure."""

from __future__ import annotations

from collections.abc import Iterator

from gradflow.present.numbers import ABSENT, counted, number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.speed_figure import speed_figure
from gradflow.present.speed_words import bytes_text, case_text, finding, seconds_text
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.speed import SpeedCase, SpeedResult, SpeedRow

__all__ = ["speed_figure", "speed_outputs", "speed_rows", "speed_table"]


def speed_outputs(result: SpeedResult, *, style: str = "screen") -> Outputs:
    """Return timings ready to be shown and stored; table, figure and CSV are "speed"."""
    return Outputs(
        table=speed_table(result),
        tables={"speed": speed_rows(result), "ratios": ratio_rows(result)},
        figures={"speed": speed_figure(result, style=style)},
    )


def speed_table(result: SpeedResult) -> TextTable:
    """Return the table: a section per case, a row per method."""
    columns = (
        Column("case", numeric=False),
        Column("method", numeric=False),
        Column("seconds\n(median)"),
        Column("points"),
        Column("times\ngradflow"),
        Column("peak\nmemory"),
        Column("relative\ndifference"),
    )
    rounds = max((row.rounds for row in result.rows), default=0)
    return TextTable(
        title=f"How long the norms of ds_T/ds_0 take (Frobenius, joint state, "
        f"{counted(rounds, 'round')} in turns)",
        columns=columns,
        sections=tuple(tuple(_cells(result, case)) for case in result.cases),
        notes=(*finding(result), *result.notes),
    )


def speed_rows(result: SpeedResult) -> list[Row]:
    """Return one CSV row per case and method, with every digit."""
    return [row.to_json() for row in result.rows]


def ratio_rows(result: SpeedResult) -> list[Row]:
    """Return one CSV row per ratio."""
    return [ratio.to_json() for ratio in result.ratios]


def _cells(result: SpeedResult, case: SpeedCase) -> Iterator[Cells]:
    own = result.row(case, "gradflow")
    for row in (row for row in result.rows if row.case == case):
        yield (
            case_text(case),
            row.method,
            seconds_text(row.seconds),
            f"{row.points:,}" if row.points else ABSENT,
            ABSENT if own is None else number_text(row.seconds / own.seconds, 3),
            ABSENT if row.peak_bytes is None else bytes_text(row.peak_bytes),
            _difference(row),
        )


def _difference(row: SpeedRow) -> str:
    return number_text(row.max_relative_error, 2)
