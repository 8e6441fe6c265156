"""One look for each gate value, the same in every figure: colour, marker and fill.

Gates by name (forget, input, ...) have looks of their own, in hues that no gate value has; what is
neither takes a `hue` by number.

Hues are those of petroff10 (M. Petroff, "Accessible Color Sequences for Data Visualization",
arXiv:2107.02270), chosen there for colour-blind readers. A look is a function of the value alone,
never of what else is in the figure, so 0.9 looks the same in a figure of one gate and of nine.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Literal

import matplotlib
from matplotlib.colors import to_hex, to_rgb

INK = "#26292e"
QUIET = "#6b7078"

# value, hue (index into petroff10), tone (-1 dark .. 1 light), marker. Values that are often
# asked for together stand far apart in hue, in lightness (for grey prints) and in marker.
_ANCHORS: tuple[tuple[float, int, float, str], ...] = (
    (0.001, 5, 0.5, "h"),
    (0.01, 4, 0.5, "X"),
    (0.05, 6, -0.8, "<"),
    (0.1, 0, 0.0, "o"),
    (0.2, 9, -0.3, "p"),
    (0.3, 3, 0.0, "D"),
    (0.4, 8, 0.0, ">"),
    (0.5, 1, 0.0, "s"),
    (0.6, 7, 0.0, "P"),
    (0.7, 5, 0.0, "v"),
    (0.8, 6, 0.0, "<"),
    (0.9, 2, 0.0, "^"),
    (0.95, 0, -1.0, "d"),
    (0.99, 4, 0.0, "X"),
    (0.999, 1, -1.0, "h"),
    (1.0, 8, -1.0, "*"),
    (1.1, 9, -1.0, "o"),
    (1.25, 7, -1.0, "s"),
    (1.5, 3, -1.0, "D"),
    (2.0, 4, -1.0, "P"),
)
_SAME = 1e-6
_DARKEST, _LIGHTEST = 0.45, 0.30
_BETWEEN = 0.22


# The hues of M. Okabe and K. Ito's set for colour-blind readers (2002), which petroff10 has not.
LineStyle = Literal["-", "--", ":", "-."]
_NAMED: dict[str, tuple[str, str, LineStyle]] = {
    "forget": ("#0072b2", "o", "-"),
    "update": ("#0072b2", "o", "-"),
    "input": ("#d55e00", "s", "--"),
    "reset": ("#d55e00", "s", "--"),
    "output": ("#009e73", "D", ":"),
    "candidate": ("#cc79a7", "^", "-."),
}
_OTHERS: tuple[tuple[str, str, LineStyle], ...] = (
    ("#56b4e9", "P", "-."),
    ("#8c6d00", "p", ":"),
    ("#5a5f66", "X", "--"),
)
FULL, DIRECT, OWN_PRECISION = "#0072b2", "#d55e00", "#009e73"
"""Paths of a model of one's own: the full gradient, the product of keep gates, its own dtype."""
_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3, of text on white


@dataclass(frozen=True)
class SeriesLook:
    """How a named gate is drawn: colour, marker and line style."""

    color: str
    marker: str
    line: LineStyle


def gate_name_look(name: str) -> SeriesLook:
    """Return the look of a gate by its name: forget and update are alike, input and reset too.

    >>> gate_name_look("forget") == gate_name_look("update")
    True
    """
    known = _NAMED.get(name) or _OTHERS[zlib.crc32(name.encode()) % len(_OTHERS)]
    return SeriesLook(*known)


def block_look(block: str) -> SeriesLook:
    """Return the look of a block of a joint Jacobian by its parts, such as "h,c".

    >>> block_look("c,c").marker
    'o'
    """
    row, _, column = block.partition(",")
    known = {"c,c": "forget", "h,c": "input", "c,h": "output", "h,h": "candidate"}
    return gate_name_look(known.get(block, f"{row}{column}"))


def hue(number: int) -> str:
    """Return the colour of petroff10 with this number, 0 to 9, as "#rrggbb".

    >>> hue(0)
    '#3f90da'
    """
    return to_hex(matplotlib.color_sequences["petroff10"][number % 10])


def readable(color: str) -> str:
    """Return the colour, darkened until text in it can be read on white.

    >>> readable("#000000")
    '#000000'
    """
    shade, step = color, 0.0
    while _contrast_with_white(shade) < _CONTRAST:
        step += 0.05
        shade = _mixed(color, "black", step)
    return shade


def _contrast_with_white(color: str) -> float:
    """Return WCAG's contrast of a colour with white, 1 to 21."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(color)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 1.05 / (luminance + 0.05)


@dataclass(frozen=True)
class Look:
    """How a gate value is drawn: `color` for lines, `dark` for dashes and edges, its marker."""

    color: str
    dark: str
    marker: str
    face: str


def gate_color(value: float | None) -> str:
    """Return the colour of a gate value (or of a recurrent gain), as "#rrggbb".

    >>> gate_color(0.1), gate_color(0.5), gate_color(0.9)
    ('#3f90da', '#ffa90e', '#bd1f01')
    """
    return gate_look(value).color


def gate_look(value: float | None) -> Look:
    """Return the look of a gate value; None (a cell without a keep gate) is drawn in ink.

    Between two anchors the nearer one's hue is kept, shaded by the distance, with an open marker.
    """
    if value is None or math.isnan(value):
        return Look(color=INK, dark="#000000", marker="o", face=INK)
    position = _position(value)
    anchor = min(_ANCHORS, key=lambda entry: abs(_position(entry[0]) - position))
    anchor_value, hue, tone, marker = anchor
    offset = position - _position(anchor_value)
    exact = abs(value - anchor_value) <= _SAME * anchor_value
    color = _toned(to_hex(matplotlib.color_sequences["petroff10"][hue]), tone)
    if not exact:
        color = _mixed(color, "white" if offset > 0 else "black", _shade(offset))
    dark = _mixed(color, "black", 0.45)
    return Look(color=color, dark=dark, marker=marker, face=color if exact else "white")


def _position(value: float) -> float:
    """Return where a value lies among the anchors: logit below 1, log from 1 on.

    Near 0 and near 1 equal steps of the logit are equal ratios of the decay rate, which is what a
    reader tells apart. 15 is beyond every logit that occurs, so the two parts never overlap.
    """
    if value <= 0.0:
        return -15.0
    if value < 1.0:
        return max(-15.0, min(14.0, math.log(value) - math.log1p(-value)))
    return 15.0 + min(4.0 * math.log(value), 100.0)


def _shade(offset: float) -> float:
    return _BETWEEN * (1.0 - math.exp(-2.0 * abs(offset))) + 0.08


def _toned(color: str, tone: float) -> str:
    if tone < 0:
        return _mixed(color, "black", -tone * _DARKEST)
    return _mixed(color, "white", tone * _LIGHTEST)


def _mixed(color: str, other: str, share: float) -> str:
    red, green, blue = (
        (1 - share) * mine + share * theirs
        for mine, theirs in zip(to_rgb(color), to_rgb(other), strict=True)
    )
    return to_hex((red, green, blue))
