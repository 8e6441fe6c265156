"""One look for each gate value, the same in every figure: colour, marker and fill.

Hues are those of petroff10 (M. Petroff, "Accessible Color Sequences for Data Visualization",
arXiv:2107.02270), chosen there for colour-blind readers. A look is a function of the value alone,
never of what else is in the figure, so 0.9 looks the same in a figure of one gate and of nine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
