"""The pieces of a cell's drawing: a belt of varying width, gauges, pipes and nodes.

Positions and sizes are in em, which are the panel's data units here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch, Polygon, Rectangle

from gradflow.present.palette import INK, QUIET, hue
from gradflow.present.theme import Theme, inches_of, text_width

POSITIVE, NEGATIVE = hue(0), hue(1)
"""The colours of positive and of negative numbers."""
GAUGE_HEIGHT = 4.0
_GAUGE_WIDTH = 1.5
_WIDEST, _NARROWEST = 2.6, 0.12
_HEAD, _FLARE = 1.3, 0.5
_PALE = "#f1f2f4"

Point = tuple[float, float]


@dataclass(frozen=True)
class Gauge:
    """A value at horizontal place `x`, from 0 to 1, or from -1 to 1 where it is `signed`."""

    x: float
    value: float
    label: str
    signed: bool = False


class Drawing:
    """A panel without axes, on which em are the unit; `width` says how many it is wide.

    The number `largest` is drawn as a belt of full width.
    """

    def __init__(self, ax: Axes, theme: Theme, *, largest: float) -> None:
        self.ax, self._theme, self._largest = ax, theme, largest
        self.width, height = (size / theme.em for size in inches_of(ax))
        ax.set(xlim=(0, self.width), ylim=(0, height), xticks=[], yticks=[])
        ax.set_axis_off()

    def belt(self, span: Point, y: float, value: float, label: str, *, last: bool = False) -> None:
        """Draw a stretch that carries a number, its label above; the last ends in an arrow."""
        start, end = span
        half = max(_NARROWEST, _WIDEST * abs(value) / self._largest) / 2
        body = end - _HEAD if last else end
        corners = [(start, y + half), (body, y + half)]
        if last:
            corners += [(body, y + half + _FLARE), (end, y), (body, y - half - _FLARE)]
        corners += [(body, y - half), (start, y - half)]
        look: dict[str, Any] = {"facecolor": _color(value), "linewidth": 0, "zorder": 2}
        self.ax.add_patch(Polygon(corners, closed=True, **look))
        place = ((start + end) / 2, y + _WIDEST / 2 + 0.6)
        self._write(place, label, room=end - start - 0.5, va="bottom")

    def gauge(self, gauge: Gauge, *, foot: float, room: float) -> None:
        """Draw a tube that is filled as far as its value says; its label below has `room`."""
        left = gauge.x - _GAUGE_WIDTH / 2
        full = GAUGE_HEIGHT / 2 if gauge.signed else GAUGE_HEIGHT
        zero = foot + GAUGE_HEIGHT - full
        size, tube = gauge.value * full, (_GAUGE_WIDTH, GAUGE_HEIGHT)
        filled: dict[str, Any] = {"facecolor": _color(gauge.value), "linewidth": 0}
        edge: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 0.8}
        back = Rectangle((left, foot), *tube, facecolor=_PALE, linewidth=0, zorder=3)
        self.ax.add_patch(back)
        self.ax.add_patch(Rectangle((left, zero), _GAUGE_WIDTH, size, zorder=3.1, **filled))
        self.ax.add_patch(Rectangle((left, foot), *tube, zorder=3.2, **edge))
        if gauge.signed:
            ends = [left, left + _GAUGE_WIDTH]
            self.ax.plot(ends, [zero, zero], color=INK, linewidth=0.8, zorder=3.3)
        self.label((gauge.x, foot - 0.5), gauge.label, room=room)

    def label(self, place: Point, text: str, *, room: float) -> None:
        """Write lines of text under a place, no wider than `room`."""
        self._write(place, text, room=room, va="top", linespacing=1.25)

    def pipe(self, start: Point, end: Point, *, label: str = "") -> None:
        """Draw a thin arrow; a label stands right of its middle."""
        arrow = {"arrowstyle": "-|>", "color": QUIET, "linewidth": 1.0, "shrinkA": 0.0}
        self.ax.annotate("", xy=end, xytext=start, arrowprops=arrow, zorder=2.5)
        middle = ((start[0] + end[0]) / 2 + 0.9, (start[1] + end[1]) / 2 - 0.1)
        if label:
            self._write(middle, label, room=self.width, ha="left", va="center")

    def node(self, x: float, y: float, sign: str) -> None:
        """Draw where numbers meet: a circle with its sign, or a box with a function's name."""
        look: dict[str, Any] = {
            "facecolor": "white",
            "edgecolor": INK,
            "linewidth": 1.0,
            "zorder": 4,
        }
        if len(sign) == 1:
            self.ax.add_patch(Circle((x, y), 0.85, **look))
        else:
            box = "round,pad=0,rounding_size=0.4"
            self.ax.add_patch(FancyBboxPatch((x - 1.6, y - 0.75), 3.2, 1.5, boxstyle=box, **look))
        self._write((x, y), sign, room=self.width, va="center_baseline")

    def _write(self, place: Point, text: str, *, room: float, **look: Any) -> None:
        """Write a text as large as the figure's, or smaller where it has not the room."""
        size = self._theme.font
        widest = max(text_width(line, size) for line in text.split("\n")) / self._theme.em
        look = {"ha": "center", "zorder": 5, **look}
        fitted = size * min(1.0, room / widest)
        self.ax.text(*place, text, fontsize=fitted, parse_math=False, **look)


def _color(value: float) -> str:
    return NEGATIVE if value < 0 else POSITIVE if value > 0 else QUIET
