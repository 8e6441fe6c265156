"""The panels of the figure of `gradflow inits`: curves, and rows of spreads."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gradflow.present.end_labels import EndLabel, draw_end_labels
from gradflow.present.log_axis import Scale
from gradflow.present.palette import INK, QUIET, hue, readable
from gradflow.present.theme import Theme
from gradflow.records.base import IntArray
from gradflow.records.distributions import LEVELS, Distribution
from gradflow.records.inits import InitFlow

# hue and marker of the usual ones
_LOOKS = {
    "torch-default": (0, "o"),
    "xavier": (1, "s"),
    "he": (2, "^"),
    "orthogonal-per-gate": (4, "D"),
    "orthogonal-stacked": (9, "v"),
    "scaled-identity:0.95": (5, "P"),
    "forget-bias:1": (6, "<"),
    "forget-bias:2": (8, "X"),
    "forget-bias:5": (3, ">"),
    "chrono:100": (7, "p"),
}
_MARKERS = "os^DvP<X>ph"
_SNIPPET = "as-commonly-copied"  # in ink: the ten hues are taken
_MARKS = 5  # on a curve
_DECADES = 2.0  # the curves are shown down to the threshold to this power


def init_color(name: str) -> str:
    """Return the colour of an initialization, "#rrggbb": the same in every panel and figure.

    Names that are not among the usual ones share the ten hues by their spelling.
    """
    if name == _SNIPPET:
        return INK
    number, _ = _LOOKS.get(name, (zlib.crc32(name.encode()), ""))
    return hue(number)


def init_marker(name: str) -> str:
    """Return the marker of an initialization; other names share them by their spelling."""
    if name == _SNIPPET:
        return "*"
    return _LOOKS.get(name, (0, _MARKERS[zlib.crc32(name.encode()) % len(_MARKERS)]))[1]


def text_color(name: str) -> str:
    """Return the colour of an initialization's name: darker, so that it can be read."""
    return readable(init_color(name))


def draw_curves(ax: Axes, flows: Sequence[InitFlow], theme: Theme, threshold: float) -> None:
    """Draw log10 of the norm over T (log axis), down to the square of the threshold."""
    limit = math.log10(threshold)
    scale = _scale(flows, _DECADES * limit)
    last = max(int(flow.steps[-1]) for flow in flows)
    ax.set_xscale("log")
    ax.set_xlim(1, max(last, 2))
    _plain_log_ticks(ax)
    scale.apply(ax)
    ax.axhline(limit, color=QUIET, linewidth=0.8, linestyle=(0, (3.2, 2.2)), zorder=1)
    labels = []
    for place, flow in enumerate(sorted(flows, key=lambda flow: float(flow.log10_norm[-1]))):
        color = init_color(flow.init)
        low, middle, high = (
            np.maximum(values, scale.low - 1.0)  # zeros and what is far below leave at the foot
            for values in (flow.log10_low, flow.log10_norm, flow.log10_high)
        )
        ax.fill_between(flow.steps, low, high, color=color, alpha=0.2, linewidth=0, zorder=2)
        shown = flow.steps[middle > scale.low]
        (line,) = ax.plot(
            flow.steps,
            middle,
            color=color,
            linewidth=theme.line * 0.8,
            marker=init_marker(flow.init),
            markersize=theme.marker * 0.8,
            markeredgecolor=INK,
            markeredgewidth=0.4,
            markevery=_marked(shown, shift=place / len(flows)),
            label=flow.init,
        )
        height = max(0.0, scale.share(float(middle[-1])))
        labels.append(EndLabel(flow.init, height, color=text_color(flow.init), key=line))
    draw_end_labels(ax, labels, size=theme.font * 0.95)
    ax.set_xlabel("T (steps, log scale)")
    ax.set_ylabel(f"{_quantity(flows[0])}  (log scale)")


def draw_gates(ax: Axes, flows: Sequence[InitFlow], theme: Theme, threshold: float) -> None:  # noqa: ARG001
    """Draw how the keep gate is spread over steps, units and draws, a row for each."""
    for row, flow in enumerate(flows):
        if flow.keep_gate is not None and flow.keep_gate.value is not None:
            _draw_spread(ax, row, flow.keep_gate.value, flow, theme)
    ax.set_xlim(0, 1)
    ax.set_xlabel("gate value")


def draw_time_constants(
    ax: Axes, flows: Sequence[InitFlow], theme: Theme, threshold: float
) -> None:
    """Draw the keep gate's time constant, and beside it the steps until the gradient is gone."""
    for row, flow in enumerate(flows):
        if flow.time_constant is not None:
            _draw_spread(ax, row, flow.time_constant, flow, theme)
        _draw_horizon(ax, row, flow, theme)
    ax.set_xscale("log")
    _plain_log_ticks(ax)
    ax.set_xlabel(f"steps (log scale); gone: norm at {threshold:g}")


def draw_singular_values(
    ax: Axes,
    flows: Sequence[InitFlow],
    theme: Theme,
    threshold: float,  # noqa: ARG001
) -> None:
    """Draw every singular value of the first step's Jacobian as a stroke, and its radius."""
    for row, flow in enumerate(flows):
        color = init_color(flow.init)
        strokes: dict[str, Any] = {"color": color, "linestyle": "none", "marker": "|", "zorder": 3}
        places = np.full(len(flow.singular_values), float(row))
        ax.plot(flow.singular_values, places, ms=theme.marker * 1.7, label=flow.init, **strokes)
        radius = flow.spectral_radii.mean
        if radius is not None:
            _diamond(ax, radius, row, color=color, theme=theme)
    ax.axvline(1.0, color=QUIET, linewidth=0.8, linestyle=(0, (3.2, 2.2)), zorder=1)
    ax.set_xlim(left=0)
    ax.set_xlabel("singular value (strokes), spectral radius (diamond)")


def name_rows(ax: Axes, flows: Sequence[InitFlow], theme: Theme) -> None:
    """Write the initializations' names right of their rows, the first on top."""
    ax.set_ylim(len(flows) - 0.4, -0.6)
    ax.yaxis.tick_right()
    ax.set_yticks(range(len(flows)), [flow.init for flow in flows])
    ax.tick_params(axis="y", length=0, labelsize=theme.font * 0.95, pad=theme.font * 0.6)
    for label, flow in zip(ax.get_yticklabels(), flows, strict=True):
        label.set_color(text_color(flow.init))
    ax.spines["left"].set_visible(False)


def _marked(steps: IntArray, *, shift: float) -> list[int]:
    """Return the indices of the marks on a curve, evenly spaced on a log axis, apart by `shift`."""
    if len(steps) < 2:
        return list(range(len(steps)))
    last = len(steps) - 1
    spaced = np.geomspace(1, len(steps), _MARKS + 1) * (len(steps) ** (shift / _MARKS))
    return sorted({min(last, round(float(place)) - 1) for place in spaced[:-1]})


def _plain_log_ticks(ax: Axes) -> None:
    """Label the decades of a log x axis, and on an axis of less than one some digits too."""
    low, high = ax.get_xlim()
    few = math.log10(high / low) < 1.0
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _scale(flows: Sequence[InitFlow], floor: float) -> Scale:
    values = np.concatenate([array for f in flows for array in (f.log10_low, f.log10_high)])
    finite = values[np.isfinite(values)]
    high = max(0.0, float(finite.max(initial=0.0)))
    low = max(floor, float(finite.min(initial=floor)))
    pad = 0.04 * (high - min(low, high - 1.0))
    return Scale(low - pad, high + pad)


def _quantity(flow: InitFlow) -> str:
    state = "s" if flow.state == "joint" else flow.state
    norm = "2" if flow.norm == "spectral" else "F"
    return rf"$\|\partial {state}_T\,/\,\partial {state}_0\|_{norm}$"


def _draw_spread(ax: Axes, row: int, spread: Distribution, flow: InitFlow, theme: Theme) -> None:
    """Draw nine tenths as a thin bar, half as a thick one, the median as a dot."""
    at = dict(zip(LEVELS, spread.quantiles, strict=True))
    color = init_color(flow.init)
    for low, high, width in ((0.05, 0.95, 0.5), (0.25, 0.75, 2.4)):
        ends = [at[low], at[high]]
        ax.plot(ends, [row, row], color=color, lw=theme.line * width, solid_capstyle="butt")
    look: dict[str, Any] = {
        "marker": "o",
        "ms": theme.marker * 0.8,
        "mec": "white",
        "mew": 0.5,
        "zorder": 4,
    }
    ax.plot([at[0.5]], [row], color=color, linestyle="none", label=flow.init, **look)


def _draw_horizon(ax: Axes, row: int, flow: InitFlow, theme: Theme) -> None:
    """Mark the median of the steps until the gradient is gone; an arrow where it never is."""
    color = init_color(flow.init)
    median = flow.horizons.median
    if median is not None:
        _diamond(ax, float(median), row, color=color, theme=theme)
        return
    last = float(flow.steps[-1])
    ax.plot([last], [row], marker=">", ms=theme.marker, color=color, mfc="white", zorder=4)


def _diamond(ax: Axes, x: float, row: int, *, color: str, theme: Theme) -> None:
    look: dict[str, Any] = {"ms": theme.marker * 0.9, "mfc": "white", "mew": 1.0, "zorder": 5}
    ax.plot([x], [row], marker="D", color=color, linestyle="none", clip_on=False, **look)
