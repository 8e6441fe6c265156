"""The same norms as curves: a line per layer by lag, with the range over the samples."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gradflow.present import depth_words as words
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.log_axis import Scale, mark, scale_of
from gradflow.present.palette import INK, QUIET
from gradflow.present.theme import Theme, describe, theme_context
from gradflow.present.thinning import marker_indices
from gradflow.records.depth import DepthMap, DepthResult, DepthRow

_MARKERS = "os^Dv<>pX*"
_DASHES: dict[str, object] = {"forward": "-", "reverse": (0, (4.0, 1.6)), "input": (0, (1.2, 1.4))}


def depth_curves_figure(result: DepthResult, *, style: str = "screen") -> Figure:
    """Return the curves: a panel per stack, a line per layer, back from each sample's own end.

    Args:
        result: what `gradflow depth` measured.
        style: "screen" or "paper".
    """
    with theme_context(style) as theme:
        maps = result.maps
        columns = min(2, max(1, len(maps)))
        grid = Grid(max(1, math.ceil(len(maps) / columns)), columns)
        texts = Words("The same as curves, by layer", words.conditions(result), _caption(result))
        sheet = make_sheet(theme, grid, texts, legend=_legend(result, theme))
        axes = [ax for row in sheet.axes for ax in row]
        scale = curve_scale(result)
        for ax, found in zip(axes, maps, strict=False):
            draw_curves(ax, found, theme=theme, scale=scale)
        for index, ax in enumerate(axes):
            if index % columns:
                ax.tick_params(labelleft=False)
            elif index < len(maps):
                ax.set_ylabel(f"{words.quantity(maps[index])}  (log scale)")
        for ax in axes[max(0, len(maps) - columns) : len(maps)]:
            ax.set_xlabel("steps before each sample's own end")
        for ax in axes[len(maps) :]:
            ax.set_axis_off()
        return describe(sheet.figure, f"Lines of norms by lag, one per layer. {texts.caption}")


def curve_scale(result: DepthResult) -> Scale:
    """Return the y scale of all panels, with a floor row for each layer that has a zero."""
    rows = [row for found in result.maps for row in found.rows]
    zeros = max((sum(_has_zero(row) for row in found.rows) for found in result.maps), default=0)
    return scale_of([edge for row in rows for edge in (row.lowest, row.highest)], zeros=zeros)


def draw_curves(ax: Axes, found: DepthMap, *, theme: Theme, scale: Scale) -> None:
    """Draw one stack's curves into `ax`; its y axis holds log10 values."""
    ax.set_title(words.map_title(found))
    far = max(1, int(found.lags[-1]))
    ax.set_xlim(far, 0)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    scale.apply(ax)
    floor = 0
    for row in found.rows:
        _draw_row(ax, found, row, theme=theme)
        zeros = found.lags[np.isneginf(row.log10_norm)].astype(np.float64)
        if zeros.size:
            kept = zeros[marker_indices(zeros, 40)]
            height = scale.row_height(floor)
            color = layer_color(row.layer, found.layers)
            mark(ax, kept, height=height, marker="v", color=color)
            floor += 1


def layer_color(layer: int, layers: int) -> str:
    """Return a layer's colour: the deeper it lies below the last one, the lighter; ink for x."""
    if layer == 0:
        return QUIET
    share = 0.0 if layers == 1 else (layer - 1) / (layers - 1)
    return to_hex(matplotlib.colormaps["cividis"](0.78 * (1.0 - share)))


def _draw_row(ax: Axes, found: DepthMap, row: DepthRow, *, theme: Theme) -> None:
    values = np.where(np.isfinite(row.log10_norm), row.log10_norm, np.nan)
    color = layer_color(row.layer, found.layers)
    if row.layer > 0 and found.count.max() > 1:
        low = np.where(np.isfinite(row.lowest), row.lowest, np.nan)
        high = np.where(np.isfinite(row.highest), row.highest, np.nan)
        ax.fill_between(found.lags, low, high, color=color, alpha=0.13, linewidth=0)
    alone = int(np.isfinite(values).sum()) == 1
    points = np.linspace(0, len(values) - 1, min(6, len(values))).round().astype(int)
    ax.plot(
        found.lags,
        values,
        color=color,
        linestyle=_DASHES[row.direction],
        linewidth=theme.line * (0.6 if row.layer == 0 else 0.8),
        # a line of one point is none: even the input's needs a mark then
        marker="_" if alone and row.layer == 0 else "" if row.layer == 0 else _marker(row.layer),
        markersize=theme.marker * 0.8,
        markeredgecolor=color if row.layer == 0 else INK,
        markeredgewidth=1.2 if row.layer == 0 else 0.4,
        markevery=sorted(set(points.tolist())),
        clip_on=False,
        label=words.row_title(row, found.directions),
        zorder=3,
    )


def _marker(layer: int) -> str:
    return _MARKERS[(layer - 1) % len(_MARKERS)]


def _has_zero(row: DepthRow) -> bool:
    return bool(np.isneginf(row.log10_norm).any())


def _legend(result: DepthResult, theme: Theme) -> list[tuple[Line2D, str]]:
    """Return a line for each layer and direction, the last layer first."""
    if not result.maps:
        return []
    found = max(result.maps, key=lambda entry: len(entry.rows))
    entries = []
    for row in reversed(found.rows):
        line = Line2D(
            [],
            [],
            color=layer_color(row.layer, found.layers),
            linestyle=_DASHES[row.direction],  # type: ignore[arg-type]
            linewidth=theme.line * 0.8,
            marker="" if row.layer == 0 else _marker(row.layer),
            markersize=theme.marker * 0.8,
            markeredgecolor=INK,
            markeredgewidth=0.4,
        )
        entries.append((line, words.row_title(row, found.directions)))
    return entries


def _caption(result: DepthResult) -> str:
    texts = words.findings(result)
    if len(result.lengths) > 1:
        texts.append("Lines: means over the samples; bands: from the smallest to the largest.")
    if len(set(result.lengths)) > 1 and result.maps:
        found = result.maps[0]
        lags = [0, int(found.lags[-1]) // 2, int(found.lags[-1])]
        counts = ", ".join(f"{found.count[lag]} at {lag}" for lag in dict.fromkeys(lags))
        texts.append(f"Samples n by steps before their end: {counts}.")
    return " ".join(texts)
