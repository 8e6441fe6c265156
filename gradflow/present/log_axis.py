"""A log axis for numbers that no float can hold: log10 values on a linear axis.

Ticks read as the quantity itself, 10^-100 or 0.5. Values that have no logarithm keep a place:
zeros at the floor, infinities and what is not a number at the ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import Formatter, Locator, MaxNLocator
from matplotlib.typing import ColorType
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_WIDE, _NARROW = 2.5, 0.7  # decades: whole powers above, evenly spaced numbers below
_FLOAT_RANGE = 300.0
_PLAIN = 3.0  # decades from 1 that read as 0.001 or 1000 beside other plain numbers
_FLAT = 1e-5  # decades: below it a curve is level, and its wiggles are rounding
_FLOOR_COLOR = "#f1f2f4"
CEILING = 0.965  # height of marks at the top, as a share of the axis
_FLOOR, _ROW, _MOST = 0.04, 0.05, 0.34  # the same of zeros: the lowest, the next, all of them


class DecadeLocator(Locator):
    """Places ticks at whole powers of ten, at 1-2-5 numbers, or at round numbers, by the span.

    None stand below `lowest`, where the floor of zeros begins.
    """

    def __init__(self, count: int = 6, *, lowest: float = -math.inf) -> None:
        self.count = count
        self.lowest = lowest

    def __call__(self) -> Sequence[float]:
        """Return the ticks of the axis as it is."""
        if self.axis is None:
            return []
        low, high = sorted(self.axis.get_view_interval())
        return self.tick_values(float(low), float(high))

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return log10 positions between `vmin` and `vmax`."""
        vmin = max(vmin, self.lowest)
        span = vmax - vmin
        if span >= _WIDE or max(abs(vmin), abs(vmax)) > _FLOAT_RANGE:
            ticks = MaxNLocator(self.count, integer=span >= _WIDE).tick_values(vmin, vmax)
        elif span >= _NARROW:
            decades = range(math.floor(vmin), math.ceil(vmax) + 1)
            ticks = [decade + math.log10(digit) for decade in decades for digit in (1, 2, 5)]
        else:
            numbers = MaxNLocator(self.count).tick_values(10**vmin, 10**vmax)
            ticks = [math.log10(number) for number in numbers if number > 0]
        slack = 1e-9 * max(span, 1e-300)
        return [float(tick) for tick in ticks if vmin - slack <= tick <= vmax + slack]


class DecadeFormatter(Formatter):
    """Writes the position log10 y as y: 10^-100 where the axis is wide, 0.5 where it is not."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - matplotlib's call
        """Return the tick label of one position."""
        whole = round(x)
        if abs(x - whole) < 1e-9 and not self._reads_plainly(x):
            return {0: "1", 1: "10"}.get(whole, f"$10^{{{whole}}}$")
        if abs(x) > _FLOAT_RANGE:
            return f"$10^{{{x:.10g}}}$"
        return f"{10**x:.6g}"

    def _reads_plainly(self, x: float) -> bool:
        """Return whether a power of ten stands among plain numbers, and so reads as one."""
        if self.axis is None:
            return False
        low, high = sorted(self.axis.get_view_interval())
        return bool(high - low < _WIDE and abs(x) <= _PLAIN)


@dataclass(frozen=True)
class Scale:
    """The y limits (log10) of an axis: values lie between `low` and `high`, zeros in rows below.

    Under `low` is a floor with one row of marks for each of `zeros` curves that are zero.
    """

    low: float
    high: float
    zeros: int = 0

    @property
    def floor(self) -> float:
        """The height of the floor, as a share of the axis; 0 where nothing is zero."""
        return self.row_height(self.zeros) + 0.06 if self.zeros else 0.0

    @property
    def foot(self) -> float:
        """The log10 position of the axis' lower end, under the floor."""
        return self.high - (self.high - self.low) / (1.0 - self.floor)

    def share(self, value: float) -> float:
        """Return how high a log10 value lies: 0 is the foot of the axis, 1 its top."""
        return (value - self.foot) / (self.high - self.foot)

    def row_height(self, row: int) -> float:
        """Return how high a row of zeros lies, as a share of the axis."""
        return _FLOOR + min(_ROW, _MOST / max(1, self.zeros)) * row

    def apply(self, ax: Axes) -> None:
        """Set the limits of `ax`, let its y axis read as the quantity itself, draw the floor."""
        ax.set_ylim(self.foot, self.high)
        ax.yaxis.set_major_locator(DecadeLocator(lowest=self.low if self.zeros else -math.inf))
        ax.yaxis.set_major_formatter(DecadeFormatter())
        if self.zeros:
            ax.axhspan(self.foot, self.low, facecolor=_FLOOR_COLOR, linewidth=0, zorder=0.5)


def scale_of(arrays: Sequence[FloatArray], *, zeros: int = 0) -> Scale:
    """Return the scale that holds the finite values of `arrays`, with a floor for `zeros` rows."""
    finite = np.concatenate([values[np.isfinite(values)] for values in arrays] or [np.zeros(0)])
    if not finite.size:
        return Scale(-1.0, 0.15, zeros)
    low, high = float(finite.min()), float(finite.max())
    span = high - low
    pad = 0.06 * span if span > _FLAT else 0.1
    return Scale(low - pad, high + pad, zeros)


def mark(
    ax: Axes,
    steps: FloatArray,
    *,
    height: float,
    marker: str,
    color: ColorType,
    label: str = "_beyond",
) -> None:
    """Mark steps whose value has no logarithm, at a height that is a share of the axis.

    The marks: "v" for an exact zero, "^" for an infinity, "x" for what is not a number.
    """
    ax.plot(
        steps,
        np.full(len(steps), height),
        linestyle="none",
        marker=marker,
        markerfacecolor="white",
        markeredgecolor=color,
        markeredgewidth=1.0,
        transform=ax.get_xaxis_transform(),  # a share of the axis: its limits may change
        clip_on=False,
        zorder=4,
        label=label,  # a leading underscore keeps it out of a legend
    )
