"""`gradflow depth` as a table, CSV rows and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradflow.present import depth_words as words
from gradflow.present.depth_curves import depth_curves_figure
from gradflow.present.depth_figure import depth_figure
from gradflow.present.numbers import ABSENT, number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.depth import DepthMap, DepthResult, DepthRow

__all__ = ["depth_curves_figure", "depth_figure", "depth_outputs", "depth_rows", "depth_table"]


def depth_outputs(result: DepthResult, *, style: str = "screen") -> Outputs:
    """Return a depth map ready to be shown and stored.

    `tables` are "depth" (a row per stack, layer and direction) and "lags" (a row for each of their
    lags); the figures are "depth" (heat maps) and "curves".
    """
    tables: dict[str, Sequence[Row]] = {"depth": depth_rows(result), "lags": lag_rows(result)}
    figures = {
        "depth": depth_figure(result, style=style),
        "curves": depth_curves_figure(result, style=style),
    }
    return Outputs(table=depth_table(result), tables=tables, figures=figures)


def depth_table(result: DepthResult) -> TextTable:
    """Return the table: a section per stack, a row per layer, the last one first.

    log10 of the norm stands at three lags from each sample's own end; the rate is in nats per
    step. Where samples differ in length, n is the number of samples that reach so far.
    """
    lags = _shown_lags(result)
    some = [found.directions == 2 for found in result.maps]
    columns = (
        Column("cell", numeric=False),
        Column("links", numeric=False),
        Column("masks", numeric=False),
        Column("layer", numeric=False),
        *(Column(_lag_heading(result, lag)) for lag in lags),
        *(() if some and all(some) else (Column("nats\nper step"), Column("half-life\nsteps"))),
    )
    sections = tuple(
        tuple(_cells(found, row, lags, len(columns)) for row in reversed(found.rows))
        for found in result.maps
    )
    notes = (*words.findings(result), *result.notes)
    return TextTable(
        title=f"{words.title(result)} (log10 norms; {words.conditions(result)})",
        columns=columns,
        sections=sections,
        notes=tuple(dict.fromkeys(notes)),
        shared=3,
    )


def depth_rows(result: DepthResult) -> list[Row]:
    """Return one CSV row per stack, layer and direction, at its first and its last lag."""
    return [
        {
            **_names(found, row),
            "log10_norm_at_end": _finite(row.log10_norm[0]),
            "last_lag": int(found.lags[-1]),
            "log10_norm_at_last_lag": _finite(row.log10_norm[-1]),
            "rate": row.rate,
            "zeros": int(row.zeros.sum()),
            "exact_zeros": int(row.exact_zeros.sum()),
        }
        for found in result.maps
        for row in found.rows
    ]


def lag_rows(result: DepthResult) -> list[Row]:
    """Return one CSV row per stack, layer, direction and lag, with n."""
    return [
        {
            **_names(found, row),
            "lag": int(lag),
            "n": int(found.count[index]),
            "log10_norm": _finite(row.log10_norm[index]),
            "lowest": _finite(row.lowest[index]),
            "highest": _finite(row.highest[index]),
            "zeros": int(row.zeros[index]),
            "exact_zeros": int(row.exact_zeros[index]),
        }
        for found in result.maps
        for row in found.rows
        for index, lag in enumerate(found.lags)
    ]


def _names(found: DepthMap, row: DepthRow) -> dict[str, object]:
    return {
        "cell": found.cell,
        "residual": found.residual,
        "masks": found.masks,
        "layer": row.layer,
        "direction": row.direction,
        "read": found.read,
        "block": found.block,
        "norm": found.norm,
    }


def _shown_lags(result: DepthResult) -> list[int]:
    """Return the lags of the table's columns: the end, the middle, the farthest."""
    far = max((int(found.lags[-1]) for found in result.maps), default=0)
    return sorted({0, far // 2, far})


def _lag_heading(result: DepthResult, lag: int) -> str:
    where = "at the end" if lag == 0 else f"{lag} before"
    if len(set(result.lengths)) < 2:
        return where
    counts = {int(found.count[lag]) for found in result.maps if lag < len(found.count)}
    return f"{where}\n(n={'/'.join(map(str, sorted(counts)))})"


def _cells(found: DepthMap, row: DepthRow, lags: list[int], width: int) -> Cells:
    logs = [_log10(row, lag) for lag in lags]
    named = (
        found.cell,
        "residual" if found.residual else "none",
        words.MASKS_SHORT[found.masks],
        words.row_title(row, found.directions),
    )
    rest = (number_text(row.rate, 4), _half_life(row.rate))
    return (*named, *logs, *rest)[:width]


def _log10(row: DepthRow, lag: int) -> str:
    if lag >= len(row.log10_norm):
        return ABSENT
    value = float(row.log10_norm[lag])
    return "zero" if value == -math.inf else f"{value:.3f}"


def _half_life(rate: float | None) -> str:
    if rate is None:
        return ABSENT
    if abs(rate) < 1e-12:
        return "holds"
    return "grows" if rate > 0 else number_text(math.log(2) / -rate, 4)


def _finite(value: float | np.floating) -> float | None:
    return float(value) if math.isfinite(value) else None
