"""The figure of a watched training: distance from the end against update, a panel per layer.

Told by lightness alone (dark is felt, light is lost), so it reads in grey; the horizon is a line
over it, with a mark wherever it changed for good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from gradflow.present import watch_words as words
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.palette import INK, gate_color
from gradflow.present.theme import Theme, describe, inches_of, shortened, text_width, theme_context
from gradflow.present.watch_changes import HorizonChange, horizon_changes, reach
from gradflow.present.watch_map import (
    Profiles,
    edges_of,
    longest_of,
    profile_map,
    relative,
    ticks_of,
)
from gradflow.records.base import FloatArray
from gradflow.records.watch import FlowFinding, FlowLayer, Place, WatchRun

MOST_PANELS = 8
_TITLE = 1.2  # a title's bold letters against plain ones of the font size
_POINTS = 200  # of the horizon's line
_LOWEST = -8.0  # log10 of the largest gradient: the lightest shade, and all below it
_PALEST = 0.93  # of the scale: white is kept for what is not there
_ZERO_COLOR, _ZERO_HATCH = "#b9bec6", "xxxx"
_HORIZON = gate_color(0.9)
_MARKS = 0.965  # height of marks of findings, as a share of the axis


def watch_figure(run: WatchRun, *, style: str = "screen") -> Figure:
    """Return the heat maps: log10 of the gradient against the largest one of its sample."""
    state = str(run.config.get("state") or "h")
    places = [place for place in run.places if _has_profile(run.of(place), state)]
    shown = places[:MOST_PANELS]
    with theme_context(style) as theme:
        columns = max(1, min(2, len(shown)))
        rows = max(1, math.ceil(len(shown) / columns))
        grid = Grid(rows=rows, columns=columns, label_room=1.6 * theme.em)
        texts = Words(words.title(run), words.subtitle(run), _caption(places, state))
        sheet = make_sheet(theme, grid, texts, legend=_legend(run, shown, state, theme))
        panels = [ax for row in sheet.axes for ax in row]
        for index, (ax, place) in enumerate(zip(panels, shown, strict=False)):
            draw_profiles(ax, run, place, state=state, theme=theme)
            ax.set_xlabel("update" if index >= len(shown) - columns else "")
            ax.set_ylabel("steps from the end" if index % columns == 0 else "")
        for ax in panels[len(shown) :]:
            ax.set_axis_off()
        return describe(sheet.figure, _alt(run, shown))


def draw_profiles(ax: Axes, run: WatchRun, place: Place, *, state: str, theme: Theme) -> None:
    """Draw one layer's profiles into `ax`: the end below, the first step above."""
    rows = run.of(place)
    width = inches_of(ax)[0] / _TITLE
    ax.set_title(shortened(words.place_text(rows[0][1]), width, theme.font))
    ax.grid(visible=False)
    updates, values = profile_map(rows, state)
    steps = values.shape[0]
    edges = edges_of(updates)
    heights = np.linspace(-0.5, longest_of(rows) - 0.5, steps + 1)
    ax.pcolormesh(
        edges, heights, np.ma.masked_invalid(values), cmap=_colors(), norm=_scale(),
        rasterized=True, shading="flat", label="log10 gradient",
    )  # fmt: skip
    _draw_zeros(ax, edges, heights, values)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(heights[0], heights[-1])
    ax.set_xticks(ticks_of(updates))
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    _draw_horizon(ax, rows, theme)
    _draw_changes(ax, horizon_changes(run, place), theme)
    _draw_findings(ax, _findings_at(run, rows[0][1]), theme)


def _has_profile(rows: Profiles, state: str) -> bool:
    return any(words.curve_of(layer, state) for _, layer in rows)


def _draw_zeros(ax: Axes, edges: FloatArray, heights: FloatArray, values: FloatArray) -> None:
    """Draw exact zeros in grey, apart from every number; what is not there stays white."""
    zeros = np.ma.masked_where(~np.isneginf(values), np.zeros_like(values))
    if zeros.count():
        grey = ListedColormap([_ZERO_COLOR])
        ax.pcolormesh(edges, heights, zeros, cmap=grey, rasterized=True, shading="flat")


def _draw_horizon(ax: Axes, rows: Profiles, theme: Theme) -> None:
    """Draw the horizon as far as it is reached; where it is not, it runs along the upper edge.

    Of a long training each point is the median of some samples that follow each other.
    """
    edge = longest_of(rows) - 1.0  # where a cut after the last step is drawn, too
    known = [
        (update, min(far, edge)) for update, layer in rows if (far := reach(layer)) is not None
    ]
    pieces = np.array_split(np.array(known, dtype=np.float64).reshape(-1, 2), _POINTS)
    points = np.array([np.median(piece, axis=0) for piece in pieces if len(piece)]).reshape(-1, 2)
    marker = "o" if len(points) < 3 else ""
    looks = (("white", theme.line * 1.9, 1.3, "_outline"), (_HORIZON, theme.line, 1.0, "horizon"))
    for color, width, size, label in looks:
        ax.plot(
            points[:, 0], points[:, 1], color=color, lw=width, marker=marker, label=label,
            ms=theme.marker * size,
        )  # fmt: skip


def _draw_changes(ax: Axes, changes: Sequence[HorizonChange], theme: Theme) -> None:
    """Mark each moment; write what changed beside those that have room."""
    low, high = ax.get_xlim()
    wide = inches_of(ax)[0] / (high - low)  # inches an update
    size, free_from = theme.font * 0.85, -math.inf
    for change in changes:
        ax.axvline(change.update, color=INK, lw=theme.line * 0.45, ls=(0, (4, 3)), label="_change")
        left = (change.update - low) * wide
        text_room = text_width(change.text, size) + 0.8 * theme.em
        fits = left + text_room <= inches_of(ax)[0]
        if not fits or left < free_from:
            continue
        free_from = left + text_room
        ax.annotate(
            change.text, (change.update, 0.0), xycoords=("data", "axes fraction"),
            xytext=(0.4 * size, 0.5 * size), textcoords="offset points", fontsize=size,
            color=INK, bbox={"facecolor": "white", "alpha": 0.85, "lw": 0, "pad": 1.2},
        )  # fmt: skip


def _draw_findings(ax: Axes, findings: Sequence[FlowFinding], theme: Theme) -> None:
    for finding in findings:
        ax.plot(
            [finding.update], [_MARKS], marker="v", ls="none", ms=theme.marker * 1.4, mfc="white",
            mec=INK, mew=1.2, transform=ax.get_xaxis_transform(), clip_on=False,
            label=finding.code,
        )  # fmt: skip


def _findings_at(run: WatchRun, layer: FlowLayer) -> list[FlowFinding]:
    return [finding for finding in run.findings if words.gravest(layer, [finding]) is not None]


def _scale() -> Normalize:
    return Normalize(_LOWEST, 0.0, clip=True)


def _colors() -> Colormap:
    """Return cividis from light (lost) to dark (felt): its lightness falls evenly, in grey too."""
    return ListedColormap(matplotlib.colormaps["cividis_r"](np.linspace(1.0 - _PALEST, 1.0, 256)))


def _legend(
    run: WatchRun, places: Sequence[Place], state: str, theme: Theme
) -> list[tuple[Artist, str]]:
    """Return swatches of the scale, and the marks that occur."""
    colors, scale = _colors(), _scale()
    names = ((0.0, "largest"), (-2.0, "$10^{-2}$"), (-4.0, "$10^{-4}$"), (-6.0, "$10^{-6}$"))
    entries: list[tuple[Artist, str]] = [
        (Patch(color=to_hex(colors(float(scale(tick))))), name) for tick, name in names
    ]
    lowest = Patch(color=to_hex(colors(0.0)))
    entries.append((lowest, f"$10^{{{_LOWEST:.0f}}}$ or less"))
    rows = [pair for place in places for pair in run.of(place)]
    if any(np.isneginf(relative(layer, state)).any() for _, layer in rows):
        entries.append((Patch(color=_ZERO_COLOR), "exactly 0"))
    entries.append((Line2D([], [], color=_HORIZON, lw=theme.line), "horizon"))
    if any(horizon_changes(run, place) for place in places):
        dashed = Line2D([], [], color=INK, lw=theme.line * 0.45, ls=(0, (4, 3)))
        entries.append((dashed, "it changed"))
    if any(_findings_at(run, layer) for _, layer in rows):
        mark = Line2D([], [], ls="none", marker="v", mfc="white", mec=INK, ms=theme.marker * 1.4)
        entries.append((mark, "finding"))
    return entries


def _caption(places: Sequence[Place], state: str) -> str:
    left = len(places) - MOST_PANELS
    more = f" The first {MOST_PANELS} of {len(places)} layers." if left > 0 else ""
    name = "c" if state == "c" else "h"
    if not places:
        return f"No layer has a gradient of {name} to draw."
    return (
        f"Colour: ||dL/d{name}|| against the largest one of its sample. Horizon: where the "
        "gradient of h, and of c where there is one, has fallen to a thousandth of what it is at "
        f"the end; at the upper edge, not reached.{more}"
    )


def _alt(run: WatchRun, places: Sequence[Place]) -> str:
    parts = []
    for place in places:
        rows = run.of(place)
        first, last = rows[0][1], rows[-1][1]
        parts.append(
            f"{words.place_text(first)}: horizon {words.horizon_text(first)} at first, "
            f"{words.horizon_text(last)} at last."
        )
    what = "Heat maps of the loss's gradient by update (across) and steps from the end (upward)."
    return " ".join([what, *parts])
