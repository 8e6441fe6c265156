"""The figure of `gradflow decay`: measured norms (solid) beside the trend f^T, z^T (dashed)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gradflow.present import decay_words as words
from gradflow.present.decay_panel import (
    DASHES,
    draw_panel,
    drawn_paths,
    end_text,
    panel_scale,
    paths_on_trend,
)
from gradflow.present.decay_words import Panel
from gradflow.present.layout import Grid, Words, make_sheet, titled_panels
from gradflow.present.log_axis import Scale
from gradflow.present.palette import INK
from gradflow.present.theme import Theme, describe, text_width, theme_context
from gradflow.records import DecayCurve, DecayResult


def decay_figure(result: DecayResult, *, style: str = "screen") -> Figure:
    """Return the figure of a decay: a panel per cell and candidate gain, a colour per gate value.

    Solid lines with markers are the measured norms, dashed lines the trend T log10 of the gate,
    dotted lines the direct path where it is neither. Exact zeros are triangles at the floor.

    Args:
        result: what `gradflow decay` measured.
        style: "screen" or "paper" (one- and two-column sizes).
    """
    panels = words.shown_panels(result)
    with theme_context(style) as theme:
        rows = panel_rows(panels, theme.most_columns)
        scales = [panel_scale(row) for row in rows]
        grid = Grid(
            rows=max(1, len(rows)),
            columns=max([1, *(len(row) for row in rows)]),
            label_room=_label_room(result, scales, rows, theme),
            tick_room=_tick_room(scales),
        )
        texts = Words(
            title="How much of step 0 is still felt at step T",
            subtitle=words.conditions(result),
            caption=words.caption_of(result),
        )
        grid = titled_panels(theme, grid, [panel.title for panel in panels])
        sheet = make_sheet(theme, grid, texts, legend=_legend(rows, scales, theme))
        for row, axes, scale in zip(rows, sheet.axes, scales, strict=False):
            _draw_row(row, axes, theme, scale)
        _name_steps(rows, sheet.axes)
        return describe(sheet.figure, words.alt_of(result))


def panel_rows(panels: Sequence[Panel], most: int) -> list[list[Panel]]:
    """Return the panels row by row: a cell begins a new row, and wraps after `most` panels.

    Where every cell has but one panel, cells stand side by side.
    """
    rows: list[list[Panel]] = []
    lonely = len({panel.cell for panel in panels}) == len(panels)
    for panel in panels:
        joins = bool(rows) and (lonely or rows[-1][0].cell == panel.cell)
        if joins and len(rows[-1]) < most:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    return rows


def _draw_row(row: Sequence[Panel], axes: Sequence[Axes], theme: Theme, scale: Scale) -> None:
    for index, (panel, ax) in enumerate(zip(row, axes, strict=False)):
        draw_panel(ax, panel, theme=theme, scale=scale)
        if index == 0 or panel.quantity != row[0].quantity:
            ax.set_ylabel(f"{panel.quantity}  (log scale)")
        if index:
            ax.tick_params(labelleft=False)
    for ax in axes[len(row) :]:
        ax.set_axis_off()


def _name_steps(rows: Sequence[Sequence[Panel]], axes: Sequence[Sequence[Axes]]) -> None:
    """Name the x axis under the lowest panel of each column."""
    for column in range(max((len(row) for row in rows), default=0)):
        lowest = max(index for index, row in enumerate(rows) if column < len(row))
        axes[lowest][column].set_xlabel("T (steps)")


def _label_room(
    result: DecayResult, scales: Sequence[Scale], rows: Sequence[Sequence[Panel]], theme: Theme
) -> float:
    """Return the inches that the widest label at a line's end needs."""
    texts = [end_text(curve) for curve in result.curves if curve.path == "full"]
    for row, scale in zip(rows, scales, strict=True):
        paths = [curve for panel in row for curve in drawn_paths(panel, scale)]
        texts += [f"{words.curve_name(curve)}, {curve.path}" for curve in paths]
    widest = max((text_width(text, theme.font * 0.95) for text in texts), default=0.0)
    return widest + 1.6 * theme.em


def _tick_room(scales: Sequence[Scale]) -> float:
    """Return the em that tick labels and the axis label need."""
    digits = max((len(f"{abs(scale.low):.0f}") for scale in scales), default=1)
    return 5.2 + 0.45 * digits


def _legend(
    rows: Sequence[Sequence[Panel]], scales: Sequence[Scale], theme: Theme
) -> list[tuple[Line2D, str]]:
    """Return what line styles and marks mean, for those that occur."""
    curves = [curve for row in rows for panel in row for curve in panel.full]
    measured = Line2D([], [], color=INK, marker="o", ms=theme.marker, lw=theme.line)
    legend = [(measured, "measured (\N{MULTIPLICATION SIGN}: factor per step)")]
    if any(words.reference_log10(curve) is not None for curve in curves):
        dashed = Line2D([], [], color=INK, linestyle=DASHES, lw=theme.line * 0.6)
        legend.append((dashed, _trend_text(rows, scales)))
    if any(drawn_paths(p, scale) for row, scale in zip(rows, scales, strict=True) for p in row):
        legend.append((Line2D([], [], color=INK, linestyle=":"), "direct path"))
    values = np.concatenate([curve.log10_norm for curve in curves] or [np.zeros(0)])
    for chosen, marker, text in (
        (np.isneginf(values), "v", "zero"),
        (np.isposinf(values), "^", "infinite"),
        (np.isnan(values), "x", "not a number"),
    ):
        if chosen.any():
            mark = Line2D([], [], color=INK, linestyle="none", marker=marker, mfc="white")
            legend.append((mark, text))
    return legend


def _trend_text(rows: Sequence[Sequence[Panel]], scales: Sequence[Scale]) -> str:
    """Return what the dashed lines are; the direct path is named with them where it hides there."""
    curves = [curve for row in rows for panel in row for curve in panel.full]
    gated = [curve for curve in curves if curve.gate_value is not None]
    trends = ", ".join(dict.fromkeys(_power(curve) for curve in gated))
    gains = {_power(curve) for curve in curves if curve.gate_value is None}
    hidden = any(
        paths_on_trend(panel, scale)
        for row, scale in zip(rows, scales, strict=True)
        for panel in row
    )
    also = " (the direct path lies on it)" if hidden else ""
    texts = [f"trend {trends}{also}"] if gated else []
    return "; ".join([*texts, *(f"reference {gain}" for gain in gains)])


def _power(curve: DecayCurve) -> str:
    return rf"${words.curve_symbol(curve)}^{{\,T}}$"
