"""Sizes, fonts and files of every figure: one theme, two styles, no display, no pyplot.

`theme_context` starts from matplotlib's own defaults, so a user's matplotlibrc changes nothing,
and files carry no date and no random id: the same result gives the same bytes.

"screen" is for a page or a lecture: wide, with its title and caption inside. "paper" is made to be
set without scaling, and without title and caption, which the paper has in its own type (they are in
`layout.words_of`): 3.25 inches wide where the panels stand in one column, else 6.75. These are the
column and the text of ICML's icml2025.sty (textwidth 6.75 in, columnsep 0.25 in), the narrowest of
the usual two-column pages, so they fit the 3.5 and 7.16 inches of IEEE's too; the greatest height
is IEEE's 8.5 inches. No letter is smaller than `Theme.small`.

A new figure takes its style so:

    def x_figure(record: XResult, *, style: str = "screen") -> Figure:
        with theme_context(style) as theme:            # checks the name, sets fonts and lines
            sheet = make_sheet(theme, Grid(rows=1, columns=1), Words(title, conditions, finding))
            draw_x(sheet.axes[0][0], record, theme=theme)
            return describe(sheet.figure, alt)         # what a reader who cannot see it is told

Every size comes from `theme` (`font`, `small`, `line`, `marker`, `em`), every colour from
`gradflow.present.palette`: a gate value has its `gate_look` wherever it is drawn. Series that share
a panel differ in line style, in marker or clearly in lightness, so that a grey print reads too.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from gradflow.errors import UnknownNameError, nearest_name
from gradflow.present.palette import INK, QUIET

Style = Literal["paper", "screen"]
FigureFormat = Literal["png", "svg", "pdf"]


@dataclass(frozen=True)
class Theme:
    """Sizes of a style: widths and heights in inches, the rest in points.

    `small` is the smallest letter, `most_columns` the panels side by side, `greatest_height` that
    of a figure. `worded` figures hold their title and caption. `formats` are the files of a run.
    """

    one_column: float
    two_columns: float
    panel_height: float
    font: float
    small: float
    line: float
    marker: float
    dpi: int
    worded: bool
    formats: tuple[FigureFormat, ...]
    most_columns: int = 2
    greatest_height: float = math.inf

    @property
    def em(self) -> float:
        """The font size in inches: margins are measured in it."""
        return self.font / 72.0


_HINTED = 1.03  # in a PNG letters are fitted to pixels, and grow by as much

_THEMES: dict[str, Theme] = {
    "paper": Theme(
        one_column=3.25,
        two_columns=6.75,
        panel_height=1.6,
        font=7.5,
        small=6.0,
        line=1.3,
        marker=3.6,
        dpi=300,
        worded=False,
        formats=("png", "svg", "pdf"),
        greatest_height=8.5,
    ),
    "screen": Theme(
        one_column=6.4,
        two_columns=11.0,
        panel_height=2.9,
        font=10.0,
        small=7.5,
        line=2.2,
        marker=5.5,
        dpi=144,
        worded=True,
        formats=("png", "svg"),
    ),
}


def theme_of(style: str) -> Theme:
    """Return the sizes of a style, "paper" or "screen".

    Raises:
        UnknownNameError: there is no such style.
    """
    if style not in _THEMES:
        raise UnknownNameError(
            f"no figure style is called {style!r}. {nearest_name(style, _THEMES)}"
        )
    return _THEMES[style]


@contextmanager
def theme_context(style: str = "screen") -> Iterator[Theme]:
    """Draw and save under the theme: matplotlib's defaults, petroff10, and our sizes."""
    theme = theme_of(style)
    with mpl_style.context(["default", "petroff10", _settings(theme)]):
        yield theme


def figure_bytes(figure: Figure, format: FigureFormat = "png") -> bytes:  # noqa: A002 - matplotlib's word
    """Return a figure as the bytes of a PNG, SVG or PDF file; the same figure, the same bytes.

    Fonts are outlines in SVG and embedded in PDF, so no reader needs ours.

    Raises:
        UnknownNameError: another format.
    """
    if format not in get_args(FigureFormat):
        known = get_args(FigureFormat)
        raise UnknownNameError(f"no figure format {format!r}. {nearest_name(str(format), known)}")
    data = io.BytesIO()
    with theme_context():
        figure.savefig(data, format=format, dpi=figure.dpi, metadata=_metadata(figure, format))
    return data.getvalue()


def describe(figure: Figure, alt: str) -> Figure:
    """Give a figure its alt text (what a reader who cannot see it is told), and return it."""
    figure.set_label(alt)
    return figure


def alt_text(figure: Figure) -> str:
    """Return a figure's alt text."""
    return str(figure.get_label())


def inches_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height of a panel in inches, as it is placed now."""
    figure = ax.get_figure(root=True)
    place = ax.get_position()
    if figure is None:
        return (4.0, 3.0)
    return (place.width * figure.get_figwidth(), place.height * figure.get_figheight())


def text_width(text: str, size: float) -> float:
    """Return how wide a line of plain text is, in inches, at a font size in points.

    Letter by letter, so that no renderer is needed; an upper bound, since kerning only narrows.
    """
    return _HINTED * sum(_letter_width(letter) for letter in text) * size / 72.0


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Break text between words into lines that fit `width` inches at a font size in points."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shortened(text: str, width: float, size: float) -> str:
    """Return text that fits `width` inches: of a long name the end says more than the beginning."""
    if text_width(text, size) <= width:
        return text
    while len(text) > 1 and text_width("\N{HORIZONTAL ELLIPSIS}" + text, size) > width:
        text = text[1:]
    return "\N{HORIZONTAL ELLIPSIS}" + text


@lru_cache(maxsize=4096)
def _letter_width(letter: str) -> float:
    """Return the advance of a letter as a share of the font size."""
    around = [_ink_width(text) for text in (f"x{letter}x", "xx")]
    return around[0] - around[1]


def _ink_width(text: str) -> float:
    size = 100.0
    plain = text.replace("$", r"\$")
    path = TextPath((0.0, 0.0), plain, size=size, prop=FontProperties(family="DejaVu Sans"))
    return float(path.get_extents().width) / size


def _metadata(figure: Figure, format: str) -> dict[str, Any]:  # noqa: A002
    alt = alt_text(figure)
    if format == "svg":
        return {"Date": None, "Description": alt}
    if format == "pdf":
        return {"CreationDate": None, "Subject": alt}
    return {"Description": alt}


def _settings(theme: Theme) -> dict[str, Any]:
    return {
        "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
        "font.size": theme.font,
        "mathtext.fontset": "dejavusans",
        "axes.titlesize": theme.font * 1.05,
        "axes.labelsize": theme.font,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.edgecolor": QUIET,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e3e5e8",
        "grid.linewidth": 0.6,
        "xtick.labelsize": theme.font * 0.9,
        "ytick.labelsize": theme.font * 0.9,
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "text.color": INK,
        "legend.frameon": False,
        "lines.linewidth": theme.line,
        "lines.markersize": theme.marker,
        "figure.dpi": theme.dpi,
        "savefig.facecolor": "white",
        "svg.hashsalt": "gradflow",
        "svg.fonttype": "path",
        "pdf.fonttype": 42,
    }
