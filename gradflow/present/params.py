"""`gradflow params` as tables, CSV rows and a figure."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present.numbers import ABSENT
from gradflow.present.outputs import Outputs, Row
from gradflow.present.params_figure import network_words, params_figure
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.params import Architecture, ParameterCount, ParamsResult, WidthMatch

__all__ = ["params_figure", "params_outputs", "params_rows", "params_table"]

_CONVENTIONS = {2: "two", 1: "one", 0: "none", None: "as built"}
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def params_outputs(result: ParamsResult, *, style: str = "screen") -> Outputs:
    """Return counts ready to be shown and stored.

    `tables` are "params" (a row per cell) and, where widths were matched, "matches"; the figure is
    "params".
    """
    tables: dict[str, Sequence[Row]] = {"params": params_rows(result)}
    if result.matches:
        tables["matches"] = match_rows(result)
    return Outputs(
        table=params_table(result),
        tables=tables,
        figures={"params": params_figure(result, style=style)},
    )


def params_table(result: ParamsResult) -> TextTable:
    """Return a row per cell, in both conventions; matched widths stand in a table below."""
    one_first = bool(result.config.get("one_bias", False))
    both = (Column("one bias\nper gate"), Column("two biases\nper gate"))
    return TextTable(
        title=f"Parameters: {network_words(result)}",
        columns=(
            Column("cell", numeric=False),
            *(both if one_first else both[::-1]),
            Column("as built"),
            Column("multiply-adds\nper step"),
            Column("kept for\nbackward"),
            Column("weights'\nmemory"),
        ),
        sections=(tuple(_count_cells(count, one_first=one_first) for count in result.counts),),
        notes=result.notes,
        more=(_match_table(result, one_first=one_first),) if result.matches else (),
    )


def params_rows(result: ParamsResult) -> list[Row]:
    """Return one CSV row per cell, with every number."""
    return [_count_row(count) for count in result.counts]


def match_rows(result: ParamsResult) -> list[Row]:
    """Return one CSV row per matched width."""
    return [
        {
            "cell": match.architecture.cell,
            "biases": match.biases,
            "hidden_size": match.architecture.hidden_size,
            "parameters": match.parameters,
            "target": match.target,
            "difference": match.difference,
            "relative_difference": match.relative_difference,
        }
        for match in result.matches
    ]


def bytes_text(count: int | None) -> str:
    """Return a number of bytes in the largest unit that it fills, 1 kB being 1000 B.

    >>> bytes_text(999), bytes_text(286720), bytes_text(None)
    ('999 B', '286.7 kB', '-')
    """
    if count is None:
        return ABSENT
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000.0, unit + 1
    return f"{count} B" if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def _count_cells(count: ParameterCount, *, one_first: bool) -> Cells:
    both = [ABSENT if n is None else f"{n}" for n in (count.one_bias, count.two_biases)]
    return (
        count.architecture.cell,
        *(both if one_first else both[::-1]),
        str(count.built),
        ABSENT if count.cost is None else str(count.cost.multiply_adds),
        bytes_text(count.activation_bytes),
        bytes_text(count.parameter_bytes),
    )


def _match_table(result: ParamsResult, *, one_first: bool) -> TextTable:
    conventions = (1, 2, 0, None) if one_first else (2, 1, 0, None)
    matches = sorted(result.matches, key=lambda match: conventions.index(match.biases))
    groups = [
        tuple(_match_cells(match) for match in matches if match.biases == convention)
        for convention in conventions
    ]
    return TextTable(
        title=f"Widths with the nearest total to {result.config.get('match', 'the target')}",
        columns=(
            Column("biases\nper gate", numeric=False),
            Column("target"),
            Column("cell", numeric=False),
            Column("hidden"),
            Column("parameters"),
            Column("difference"),
            Column("in percent"),
        ),
        sections=tuple(group for group in groups if group),
        shared=2,
    )


def _match_cells(match: WidthMatch) -> Cells:
    return (
        _CONVENTIONS[match.biases],
        str(match.target),
        match.architecture.cell,
        str(match.architecture.hidden_size),
        str(match.parameters),
        f"{match.difference:+d}" if match.difference else "0",
        f"{100 * match.relative_difference:+.2g}" if match.difference else "0",
    )


def _count_row(count: ParameterCount) -> Row:
    network: Architecture = count.architecture
    cost = count.cost
    return {
        "cell": network.cell,
        "input_size": network.input_size,
        "hidden_size": network.hidden_size,
        "layers": network.layers,
        "bidirectional": network.bidirectional,
        "projection": network.projection,
        "bias": network.bias,
        "output_size": network.output_size,
        "one_bias": count.one_bias,
        "two_biases": count.two_biases,
        "built": count.built,
        "head": count.head_weights + count.head_bias,
        "multiply_adds": None if cost is None else cost.multiply_adds,
        "head_multiply_adds": None if cost is None else cost.head_multiply_adds,
        "kept_values": None if cost is None else cost.kept_values,
        "activation_bytes": count.activation_bytes,
        "parameter_bytes": count.parameter_bytes,
    }
