"""`gradflow decay` as a table, CSV rows and figures."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

from gradflow.present import decay_words as words
from gradflow.present.blocks_figure import blocks_figure, with_blocks
from gradflow.present.decay_figure import decay_figure
from gradflow.present.departure_figure import departure_figure
from gradflow.present.departure_words import sweeps_of
from gradflow.present.numbers import (
    ABSENT,
    log10_text,
    number_text,
    range_text,
    signed_text,
)
from gradflow.present.outputs import Outputs, Row
from gradflow.present.paths import paths_figure, paths_rows, paths_table
from gradflow.present.tables import Column, TextTable
from gradflow.records import DecayCurve, DecayResult

__all__ = ["DecayStepRows", "decay_figure", "decay_outputs", "decay_rows", "decay_table"]


def decay_outputs(result: DecayResult, *, style: str = "screen") -> Outputs:
    """Return a decay ready to be shown and stored.

    `tables` are "decay" (a row per curve) and "curves" (a row per curve and step); the figure is
    "decay". Of three candidate gains or more there is a figure "departure", the first one, and a
    table "exact" of the exact rates; where paths were measured, a table and a figure "paths", and
    for cells whose state has parts a figure "blocks".
    """
    table = decay_table(result)
    tables: dict[str, Sequence[Row]] = {
        "decay": decay_rows(result),
        "curves": DecayStepRows(result),
    }
    sweep = bool(sweeps_of(result))
    figures = {"departure": departure_figure(result, style=style)} if sweep else {}
    figures["decay"] = decay_figure(result, style=style)
    if result.exact_lines:
        tables["exact"] = _exact_rows(result)
    if result.paths:
        table = replace(table, more=(*table.more, paths_table(result.paths)))
        tables["paths"] = paths_rows(result.paths)
        figures["paths"] = paths_figure(result.paths, style=style)
        if with_blocks(result.paths):
            figures["blocks"] = blocks_figure(result.paths, style=style)
    return Outputs(table=table, tables=tables, figures=figures)


def decay_table(result: DecayResult) -> TextTable:
    """Return the table of a decay, a rich renderable: a section per cell and candidate gain.

    Logarithms are base 10, the departure is in nats per step (what is round-off in the run's dtype
    reads 0, and the heading says below what), the half-life in steps. The gate as
    realised over the run has its own column where it is not the value asked for, to six digits.
    """
    last = {int(curve.steps[-1]) for curve in result.curves if curve.steps.size}
    at = f"T={last.pop()}" if len(last) == 1 else "T, the last"
    ranged = any(_realised(curve) != number_text(curve.gate_value) for curve in result.curves)
    least = words.round_off(result)
    rounded = any(0.0 < abs(curve.departure or 0.0) < least for curve in result.curves)
    columns = [
        Column("cell", numeric=False),
        Column("gain"),
        Column("gate"),
        *([Column("gate as\nrealised")] if ranged else []),
        Column("path", numeric=False),
        Column("factor\nper step"),
        Column("log10\nnorm at T"),
        Column("T log10\ngate"),
        Column("half-life\nsteps"),
        Column("departure\nnats/step" + (f"\n(0: <{least:g})" if rounded else "")),
    ]
    notes = [*result.notes, *(note for curve in result.curves for note in curve.notes)]
    return TextTable(
        title=f"How much of step 0 is still felt at step {at} ({words.conditions(result)})",
        columns=tuple(columns),
        sections=tuple(
            tuple((panel.name, *_cells(curve, least, ranged=ranged)) for curve in _by_gate(panel))
            for panel in words.panels_of(result)
        ),
        notes=tuple(dict.fromkeys(notes)),
        shared=2,
    )


def decay_rows(result: DecayResult) -> list[Row]:
    """Return one CSV row per curve, with every digit; the columns have the JSON's names."""
    return [_summary(curve) for curve in result.curves]


def _exact_rows(result: DecayResult) -> list[Row]:
    """Return one CSV row per cell, gate value and candidate gain of the exact lines."""
    return [
        {
            "cell": line.cell,
            "gate_name": line.gate_name,
            "gate_value": line.gate_value,
            "candidate_gain": float(gain),
            "exact_rate": float(rate),
        }
        for line in result.exact_lines
        for gain, rate in zip(line.candidate_gain, line.rate, strict=True)
    ]


class DecayStepRows(Sequence[Row]):
    """One CSV row per curve and step, made when it is read: long runs have millions."""

    def __init__(self, result: DecayResult) -> None:
        self._curves = result.curves
        self._ends: list[int] = []
        for curve in result.curves:
            self._ends.append((self._ends[-1] if self._ends else 0) + len(curve.steps))

    def __len__(self) -> int:
        """Return the number of rows: steps, summed over curves."""
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Return one row, or the rows of a slice."""
        if isinstance(index, slice):
            return [self[item] for item in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        which = bisect.bisect_right(self._ends, place)
        start = self._ends[which - 1] if which else 0
        return _step_row(self._curves[which], place - start)

    def __iter__(self) -> Iterator[Row]:
        """Yield every row."""
        for curve in self._curves:
            for index in range(len(curve.steps)):
                yield _step_row(curve, index)


def _by_gate(panel: words.Panel) -> list[DecayCurve]:
    """Return a panel's curves so that the paths of one gate value stand together."""
    curves = [*panel.full, *panel.others]
    order = {value: index for index, value in enumerate(map(words.curve_value, curves[::-1]))}
    return sorted(curves, key=lambda curve: -order[words.curve_value(curve)])


def _realised(curve: DecayCurve) -> str:
    return range_text(curve.gate_min, curve.gate_max)


def _cells(curve: DecayCurve, least: float, *, ranged: bool) -> tuple[str, ...]:
    trend, departure = curve.trend_log10, curve.departure
    is_rounding = departure is not None and abs(departure) < least
    return (
        number_text(curve.candidate_gain),
        number_text(curve.gate_value),
        *([_realised(curve)] if ranged else []),
        curve.path,
        number_text(curve.factor_per_step),
        log10_text(float(curve.log10_norm[-1])) if curve.steps.size else ABSENT,
        ABSENT if trend is None or not trend.size else number_text(float(trend[-1])),
        _half_life(curve),
        signed_text(0.0 if is_rounding else departure),
    )


def _half_life(curve: DecayCurve) -> str:
    if curve.half_life is not None:
        return number_text(curve.half_life)
    if curve.rate is None:
        return ABSENT
    return "grows" if curve.rate > 0 else "holds"


def _summary(curve: DecayCurve) -> dict[str, Any]:
    trend = curve.trend_log10
    check = curve.autograd
    return {
        "cell": curve.cell,
        "gate_name": curve.gate_name,
        "gate_value": curve.gate_value,
        "gate_min": curve.gate_min,
        "gate_max": curve.gate_max,
        "candidate_gain": curve.candidate_gain,
        "state": curve.state,
        "path": curve.path,
        "norm": curve.norm,
        "last_step": int(curve.steps[-1]) if curve.steps.size else None,
        "log10_norm": float(curve.log10_norm[-1]) if curve.steps.size else None,
        "trend_log10": None if trend is None or not trend.size else float(trend[-1]),
        "rate": curve.rate,
        "factor_per_step": curve.factor_per_step,
        "trend_rate": curve.trend_rate,
        "departure": curve.departure,
        "exact_rate": curve.exact_rate,
        "half_life": curve.half_life,
        "first_zero_step": curve.first_zero_step,
        "zero_reason": curve.zero_reason,
        "autograd_max_relative_error": None if check is None else check.max_relative_error,
    }


def _step_row(curve: DecayCurve, index: int) -> dict[str, Any]:
    return {
        "cell": curve.cell,
        "gate_name": curve.gate_name,
        "gate_value": curve.gate_value,
        "candidate_gain": curve.candidate_gain,
        "state": curve.state,
        "path": curve.path,
        "step": int(curve.steps[index]),
        "log10_norm": float(curve.log10_norm[index]),
        "trend_log10": None if curve.trend_log10 is None else float(curve.trend_log10[index]),
    }
