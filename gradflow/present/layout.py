"""Sheets: a title, a legend, panels and a caption, each in its own band so that none overlap.

Every band is measured in inches before anything is drawn, without a renderer: the same sheet on
every machine, and room for the labels at the lines' ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.present.palette import QUIET
from gradflow.present.theme import Theme, inches_of, shortened, text_width, wrapped

_LINE = 1.35  # line height in em
_BOLD = 1.13  # bold letters are that much wider
_BETWEEN = 4.2  # em between panels: tick labels above, the next title below
_TITLE_ROOM, _AXIS_ROOM = 1.9, 3.6  # em above the first row (its titles) and below the last
_BARE_ROOM = 0.8  # em above the first row where it has no titles
_LOWEST = 0.8  # inches: no panel is made lower than that to fit the page


@dataclass(frozen=True)
class Words:
    """The texts around the panels; any may be empty. On paper they stand outside the figure."""

    title: str = ""
    subtitle: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Grid:
    """How many panels, and the room beside each: `label_room` right of a panel, in inches.

    Panels whose `height` is left to the theme are lower where many rows must fit a page.
    """

    rows: int
    columns: int
    label_room: float = 0.0
    tick_room: float = 6.5  # em, left of the first column
    height: float | None = None  # inches, of one panel
    between: float = _BETWEEN  # em, between rows; more where every row names its x axis
    tall: float = 1.0  # of the theme's height of a panel, where `height` is not given
    titled: bool = True  # whether panels have titles, which need room above them
    title_lines: int = 1  # see `titled_panels`
    axis_room: float = _AXIS_ROOM  # em below the last row, for tick labels and the axis' name


@dataclass(frozen=True)
class Sheet:
    """A figure and the axes of its panels, row by row."""

    figure: Figure
    axes: tuple[tuple[Axes, ...], ...]


_WORDS: WeakKeyDictionary[Figure, Words] = WeakKeyDictionary()


def make_sheet(
    theme: Theme, grid: Grid, words: Words, *, legend: Sequence[tuple[Artist, str]] = ()
) -> Sheet:
    """Return a new figure with empty panels, its texts and its legend in place."""
    width = theme.one_column if grid.columns == 1 else theme.two_columns
    inside = width - 2 * theme.em
    texts = _text_bands(theme, words if theme.worded else Words(), inside)
    columns = _legend_columns(theme, [label for _, label in legend], inside)
    legend_height = _LINE * theme.em * math.ceil(len(legend) / columns) + 0.6 * theme.em
    top = theme.em * 0.8 + sum(len(lines) * size for lines, size in texts[:2])
    bottom = len(texts[2][0]) * texts[2][1] + theme.em * 0.8
    below_title = top + (legend_height if legend else 0.3 * theme.em)
    around = below_title + bottom + _between_rows(theme, grid)
    panel = _panel_height(theme, grid, around)
    figure = Figure(figsize=(width, around + grid.rows * panel), dpi=theme.dpi)
    _WORDS[figure] = words
    _write_bands(figure, theme, texts, bottom=bottom)
    if legend:
        _write_legend(figure, theme, legend, columns=columns, top=top)
    axes = _place_panels(figure, theme, grid, below_title=below_title, panel=panel)
    return Sheet(figure, axes)


def words_of(figure: Figure) -> Words:
    """Return a figure's title, conditions and caption, whether they stand in it or not.

    >>> from gradflow.present.theme import theme_of
    >>> words_of(make_sheet(theme_of("paper"), Grid(1, 1), Words("Decay")).figure).title
    'Decay'
    """
    return _WORDS.get(figure, Words())


def panel_title(title: str, width: float, theme: Theme) -> str:
    """Return a panel's title in one line, or in two where it is wider than the panel.

    It is broken after its first comma, where a name ends, or after the colon in file.py:make_cell;
    what is too wide even so loses its beginning: a name can spare more of that than of its end.

    >>> from gradflow.present.theme import theme_of
    >>> panel_title("my_cell.py:make_cell, gain 1", 1.9, theme_of("screen")).splitlines()
    ['my_cell.py:make_cell,', 'gain 1']
    """
    size = theme.font * 1.05 * _BOLD
    if text_width(title, size) <= width:
        return title
    breaks = [(title[: at + 1], title[at + 1 :]) for at in map(title.find, ",:") if at >= 0]
    fitting = [lines for lines in breaks if max(text_width(x, size) for x in lines) <= width]
    chosen = (*fitting, *breaks, (title, ""))[0]
    return "\n".join(shortened(line.strip(), width, size) for line in chosen if line)


def titled_panels(theme: Theme, grid: Grid, titles: Sequence[str]) -> Grid:
    """Return the grid with as much room above its panels as their titles need."""
    columns = grid.columns
    width = theme.one_column if columns == 1 else theme.two_columns
    each = (width - grid.tick_room * theme.em) / columns - grid.label_room - 1.2 * theme.em
    lines = [panel_title(title, each, theme).count("\n") + 1 for title in titles]
    return replace(grid, title_lines=max(lines, default=1))


def labels_that_fit(ax: Axes, widest: str, size: float) -> int:
    """Return how many labels as wide as `widest` fit under a panel with air between, 2 or more.

    Args:
        ax: the panel, in its place.
        widest: the widest of the labels, as plain text.
        size: the font size in points.
    """
    return max(2, int(inches_of(ax)[0] / (text_width(widest, size) + 0.9 * size / 72.0)))


def _title_room(grid: Grid) -> float:
    more = (grid.title_lines - 1) * _LINE
    return _TITLE_ROOM + more if grid.titled else _BARE_ROOM


def _row_room(grid: Grid) -> float:
    """Return the em between two rows of panels."""
    return grid.between + (grid.title_lines - 1) * _LINE


def _between_rows(theme: Theme, grid: Grid) -> float:
    """Return the inches that are above, between and below the rows of panels."""
    return (_title_room(grid) + (grid.rows - 1) * _row_room(grid) + grid.axis_room) * theme.em


def _panel_height(theme: Theme, grid: Grid, around: float) -> float:
    """Return the height of a panel: as asked, or as the page has room for it."""
    if grid.height is not None:
        return grid.height
    room = (theme.greatest_height - around) / grid.rows
    return max(min(grid.tall * theme.panel_height, room), _LOWEST)


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
    # matplotlib fills column by column, and one reads line by line
    places = [place for column in range(columns) for place in range(column, len(legend), columns)]
    figure.legend(
        handles=[legend[place][0] for place in places],
        labels=[legend[place][1] for place in places],
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
        above = (_title_room(grid) + row * _row_room(grid)) * theme.em
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
