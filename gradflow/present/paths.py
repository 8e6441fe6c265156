"""Where gradients travel, as a table and as CSV rows: is f^T (z^T) the right model here?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gradflow.present import paths_words as words
from gradflow.present.numbers import ABSENT, log10_text, number_text, signed_text
from gradflow.present.outputs import Row
from gradflow.present.paths_figure import paths_figure
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.paths import CellPaths

__all__ = ["paths_figure", "paths_rows", "paths_table"]


def paths_table(all_paths: Sequence[CellPaths]) -> TextTable:
    """Return the table: a row per cell, with the verdict on the product of its keep gates.

    The departure is the full path's rate less the direct path's, in nats per step; `carried by` is
    the gate without whose dependence on the state the rate changes most, and by how much.
    """
    columns = (
        Column("cell", numeric=False),
        Column("gain"),
        Column("gate"),
        Column("model", numeric=False),
        Column("right?", numeric=False),
        Column("departure\nnats/step"),
        Column("log10\nfull"),
        Column("log10\ndirect"),
        Column("log10\nrest"),
        Column("carried by\n(nats/step)", numeric=False),
    )
    groups = groupby(all_paths, key=lambda paths: (paths.cell, paths.candidate_gain))
    notes = dict.fromkeys(f"{paths.cell}: {note}" for paths in all_paths for note in paths.notes)
    return TextTable(
        title=words.answer(all_paths),
        columns=columns,
        sections=tuple(tuple(_cells(paths) for paths in group) for _, group in groups),
        notes=tuple(notes),
        shared=2,
    )


def paths_rows(all_paths: Sequence[CellPaths]) -> list[Row]:
    """Return one CSV row per cell and path, with every digit."""
    return [
        {
            "cell": paths.cell,
            "gate_name": paths.gate_name,
            "gate_value": paths.gate_value,
            "candidate_gain": paths.candidate_gain,
            "state": paths.state,
            "norm": paths.norm,
            "path": line.path,
            "last_step": int(paths.steps[-1]),
            "log10_norm": float(line.log10_norm[-1]),
            "rate": line.rate,
            "departure": _from_direct(paths, line.rate),
            "first_zero_step": line.first_zero_step,
            "zero_reason": line.zero_reason,
        }
        for paths in all_paths
        for line in paths.lines
    ]


def _from_direct(paths: CellPaths, rate: float | None) -> float | None:
    direct = paths.line("direct")
    return None if direct is None or direct.rate is None or rate is None else rate - direct.rate


def _cells(paths: CellPaths) -> Cells:
    carrier = words.carrier(paths)
    return (
        paths.cell,
        number_text(paths.candidate_gain),
        number_text(paths.gate_value),
        ABSENT if paths.line("direct") is None else words.model(paths),
        words.verdict(paths),
        words.departure_text(paths),
        *(_end(paths, path) for path in ("full", "direct", "rest")),
        ABSENT if carrier is None else f"{carrier[0]} ({signed_text(carrier[1])})",
    )


def _end(paths: CellPaths, path: str) -> str:
    line = paths.line(path)
    return ABSENT if line is None else log10_text(float(line.log10_norm[-1]))
