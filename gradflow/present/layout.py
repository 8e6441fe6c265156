"""Sheets: a title, a legend, panels and a caption, each in its own band so that none overlap.

Every band is measured in inches before anything is drawn, without a renderer: the same sheet on
every machine, and room for the labels at the lines' ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.present.palette import QUIET
from gradflow.present.theme import Theme, text_width, wrapped

_LINE = 1.35  # line height in em
_BOLD = 1.13  # bold letters are that much wider
_BETWEEN = 4.2  # em between panels: tick labels above, the next title below
_TITLE_ROOM, _AXIS_ROOM = 1.9, 3.6  # em above the first row (its titles) and below the last


@dataclass(frozen=True)
class Words:
    """The texts around the panels; any may be empty."""

    title: str = ""
    subtitle: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Grid:
    """How many panels, and the room beside each: `label_room` right of a panel, in inches."""

    rows: int
    columns: int
    label_room: float = 0.0
    tick_room: float = 6.5  # em, left of the first column
    height: float | None = None  # inches, of one panel
    between: float = _BETWEEN  # em, between rows; more where every row names its x axis


@dataclass(frozen=True)
class Sheet:
    """A figure and the axes of its panels, row by row."""

    figure: Figure
    axes: tuple[tuple[Axes, ...], ...]


def make_sheet(
    theme: Theme, grid: Grid, words: Words, *, legend: Sequence[tuple[Artist, str]] = ()
) -> Sheet:
    """Return a new figure with empty panels, its texts and its legend in place."""
    width = theme.one_column if grid.columns == 1 else theme.two_columns
    inside = width - 2 * theme.em
    texts = _text_bands(theme, words, inside)
    columns = _legend_columns(theme, [label for _, label in legend], inside)
    legend_height = _LINE * theme.em * math.ceil(len(legend) / columns) + 0.6 * theme.em
    top = theme.em * 0.8 + sum(len(lines) * size for lines, size in texts[:2])
    bottom = len(texts[2][0]) * texts[2][1] + theme.em * 0.8
    below_title = top + (legend_height if legend else 0.3 * theme.em)
    panel = grid.height or theme.panel_height
    between = (_TITLE_ROOM + (grid.rows - 1) * grid.between + _AXIS_ROOM) * theme.em
    height = below_title + grid.rows * panel + between + bottom
    figure = Figure(figsize=(width, height), dpi=theme.dpi)
    _write_bands(figure, theme, texts, bottom=bottom)
    if legend:
        _write_legend(figure, theme, legend, columns=columns, top=top)
    axes = _place_panels(figure, theme, grid, below_title=below_title, panel=panel)
    return Sheet(figure, axes)


def _text_bands(theme: Theme, words: Words, inside: float) -> list[tuple[list[str], float]]:
    """Return the lines of title, subtitle and caption, with the line height of each in inches."""
    sizes = (_title_size(theme), theme.font, theme.font * 0.95)
    texts = (words.title, words.subtitle, words.caption)
    return [
        (wrapped(text, inside / (_BOLD if size > theme.font else 1.0), size), size * _LINE / 72)
        for text, size in zip(texts, sizes, strict=True)
    ]


def _title_size(theme: Theme) -> float:
    return theme.font * 1.3


def _write_bands(
    figure: Figure, theme: Theme, texts: list[tuple[list[str], float]], *, bottom: float
) -> None:
    height, width = figure.get_figheight(), figure.get_figwidth()
    x = theme.em / width
    y = height - 0.6 * theme.em
    looks: list[dict[str, Any]] = [
        {"fontsize": _title_size(theme), "fontweight": "bold"},
        {"fontsize": theme.font, "color": QUIET},
        {"fontsize": theme.font * 0.95},
    ]
    for index, ((lines, line_height), look) in enumerate(zip(texts, looks, strict=True)):
        place = bottom - 0.4 * theme.em if index == 2 else y
        for line in lines:  # one text a line: line spacing then is ours, in every backend
            figure.text(x, place / height, line, va="top", parse_math=False, **look)
            place -= line_height
        if index < 2:
            y = place


def _legend_columns(theme: Theme, labels: Sequence[str], inside: float) -> int:
    if not labels:
        return 1
    widest = max(text_width(label, theme.font) for label in labels) + 4.6 * theme.em
    return max(1, min(len(labels), int(inside / widest)))


def _write_legend(
    figure: Figure,
    theme: Theme,
    legend: Sequence[tuple[Artist, str]],
    *,
    columns: int,
    top: float,
) -> None:
    figure.legend(
        handles=[handle for handle, _ in legend],
        labels=[label for _, label in legend],
        loc="upper left",
        bbox_to_anchor=(theme.em / figure.get_figwidth(), 1 - top / figure.get_figheight()),
        ncols=columns,
        fontsize=theme.font,
        handlelength=2.8,
        borderaxespad=0.0,
        borderpad=0.2,
        columnspacing=1.4,
        labelspacing=0.35,
    )


def _place_panels(
    figure: Figure, theme: Theme, grid: Grid, *, below_title: float, panel: float
) -> tuple[tuple[Axes, ...], ...]:
    width, height = figure.get_figwidth(), figure.get_figheight()
    left = grid.tick_room * theme.em
    gap = grid.label_room + 1.2 * theme.em
    each = (width - left - grid.columns * gap) / grid.columns
    rows = []
    for row in range(grid.rows):
        above = (_TITLE_ROOM + row * grid.between) * theme.em
        foot = height - below_title - above - (row + 1) * panel
        boxes = [
            (left + column * (each + gap), foot, each, panel) for column in range(grid.columns)
        ]
        rows.append(
            tuple(
                figure.add_axes((x / width, y / height, w / width, h / height))
                for x, y, w, h in boxes
            )
        )
    return tuple(rows)
