"""`gradflow parity` as tables, CSV rows and a figure."""

from __future__ import annotations

from itertools import groupby

from gradflow.present.numbers import ABSENT, number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.parity_figure import parity_figure
from gradflow.present.parity_words import (
    conditions,
    group_words,
    headline,
    quantity_words,
    short_name,
    side_words,
)
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.parity import Comparison, ParityResult

__all__ = ["parity_figure", "parity_outputs", "parity_rows", "parity_table"]


def parity_outputs(result: ParityResult, *, style: str = "screen") -> Outputs:
    """Return a parity ready to be shown and stored.

    `tables` are "parity" (a row per compared quantity), "mapping" (a row per block of weights) and,
    where states differ, "variants" (the nearest known ones); the figure is "parity".
    """
    tables: dict[str, list[Row]] = {"parity": parity_rows(result)}
    if result.mapping:
        tables["mapping"] = [
            {"gate": block.gate, "reads": block.reads, "a": block.a, "b": block.b}
            for block in result.mapping
        ]
    if result.nearest:
        tables["variants"] = [
            {"variant": one.name, "error": one.error, "sentence": one.sentence}
            for one in (*result.variants, *result.nearest)
        ]
    return Outputs(
        table=parity_table(result),
        tables=tables,
        figures={"parity": parity_figure(result, style=style)},
    )


def parity_table(result: ParityResult) -> TextTable:
    """Return what was compared, the weights' places below, and the answer in words."""
    groups = [
        list(group) for _, group in groupby(result.comparisons, key=lambda c: group_words(c.group))
    ]
    more = tuple(table for table in (_mapping_table(result), _nearest_table(result)) if table)
    return TextTable(
        title=f"{headline(result)}: A is {short_name(result.a)}, B is {short_name(result.b)}",
        columns=(
            Column("compared", numeric=False),
            Column("of", numeric=False),
            Column("largest\nerror"),
            Column("allowed"),
            Column("first\nstep"),
            Column("first\ngate", numeric=False),
            Column("verdict", numeric=False),
        ),
        sections=tuple(tuple(_cells(comparison) for comparison in group) for group in groups),
        notes=(result.verdict, *result.notes, _conditions(result)),
        shared=1,
        more=more,
    )


def parity_rows(result: ParityResult) -> list[Row]:
    """Return one CSV row per compared quantity, with every digit."""
    return [
        {
            "group": comparison.group,
            "quantity": comparison.quantity,
            "passed": comparison.passed,
            "error": comparison.error,
            "tolerance": comparison.tolerance,
            "scale": comparison.scale,
            "first_step": comparison.first_step,
            "gate": comparison.gate,
        }
        for comparison in result.comparisons
    ]


def _conditions(result: ParityResult) -> str:
    sides = f"{side_words(result.a, 'A')}, {side_words(result.b, 'B')}"
    return f"Compared in float64: {conditions(result)}. {sides}."


def _cells(comparison: Comparison) -> Cells:
    error = "not a number" if comparison.error is None else number_text(comparison.error, 3)
    return (
        group_words(comparison.group),
        quantity_words(comparison),
        error,
        number_text(comparison.tolerance * comparison.scale, 3),
        ABSENT if comparison.first_step is None else str(comparison.first_step),
        comparison.gate or ABSENT,
        "equal" if comparison.passed else "DIFFERS",
    )


def _mapping_table(result: ParityResult) -> TextTable | None:
    if not result.mapping:
        return None
    groups = [list(group) for _, group in groupby(result.mapping, key=lambda block: block.gate)]
    return TextTable(
        title="Where each gate's weights stand",
        columns=(
            Column("gate", numeric=False),
            Column("reads", numeric=False),
            Column("in A", numeric=False),
            Column("in B", numeric=False),
        ),
        sections=tuple(
            tuple((b.gate, b.reads, b.a or ABSENT, b.b or ABSENT) for b in group)
            for group in groups
        ),
        shared=1,
    )


def _nearest_table(result: ParityResult) -> TextTable | None:
    if not result.nearest:
        return None
    subject = result.a if result.subject == "a" else result.b
    return TextTable(
        title=f"The known variants nearest to {short_name(subject)}",
        columns=(Column("variant", numeric=False), Column("largest\nerror")),
        sections=(tuple((one.name, number_text(one.error, 6)) for one in result.nearest),),
    )
