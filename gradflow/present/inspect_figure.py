"""Figures of `gradflow inspect`: gradient by lag, the loss's gradient over time, gates.

All panels of a figure have the same axes, so that layers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gradflow.present import inspect_words as words
from gradflow.present.layout import Grid, Words, make_sheet, panel_title, titled_panels
from gradflow.present.log_axis import Scale, mark, scale_of
from gradflow.present.palette import (
    DIRECT,
    FULL,
    INK,
    OWN_PRECISION,
    QUIET,
    LineStyle,
    gate_name_look,
)
from gradflow.present.theme import Theme, describe, inches_of, theme_context
from gradflow.present.thinning import marker_indices
from gradflow.records.base import FloatArray
from gradflow.records.inspect import Curve, InspectedLayer, InspectResult

MOST_PANELS = 8
HORIZON = -3.0  # log10 of the share of the gradient that is left at the horizon
LAG_NORM = r"$\|\partial s_t\,/\,\partial s_{t-k}\|_2$"
_GRADIENTS: tuple[tuple[str, str, LineStyle], ...] = (
    ("dL/dh", FULL, "-"),
    ("dL/dc", DIRECT, "--"),
    ("dL/dh in the model's own precision", OWN_PRECISION, ":"),
)
_GONE = "zero, or no number"
Draw = Callable[[Axes, InspectedLayer, Theme], None]


@dataclass(frozen=True)
class Profile:
    """What a figure calls itself and its axes (x, y)."""

    title: str
    axes: tuple[str, str]


LAG = Profile(
    "How much of a state is felt k steps later", ("lag k (steps)", f"{LAG_NORM}  (log scale)")
)
GRADIENT = Profile("The gradient of the loss at every state", ("step t", "norm  (log scale)"))
GATES = Profile("Where the gates stand", ("gate value", "share of steps and units"))


def lag_figure(result: InspectResult, *, style: str = "screen") -> Figure:
    """Return the gradient by lag: mean and range over windows, with the product of keep gates."""
    layers = [layer for layer in result.layers if layer.lag]
    with theme_context(style) as theme:
        legend = [
            (Line2D([], [], color=FULL, lw=theme.line), "full, mean of windows (band: range)"),
            (Line2D([], [], color=DIRECT, lw=theme.line, linestyle="--"), "product of keep gates"),
            (Line2D([], [], color=QUIET, lw=theme.line, linestyle=":"), "a thousandth"),
            (Line2D([], [], color=INK, marker="o", linestyle="none"), "memory horizon"),
        ]
        draw = partial(draw_lag, scale=lag_scale(layers))
        return _figure(result, layers, draw, texts=LAG, legend=legend, theme=theme)


def gradient_figure(result: InspectResult, *, style: str = "screen") -> Figure:
    """Return the loss's gradient at every state, in float64 and in the model's own dtype."""
    layers = [layer for layer in result.layers if layer.log10_dL_dh is not None]
    with theme_context(style) as theme:
        legend = [
            (Line2D([], [], color=color, linestyle=line, lw=theme.line), name)
            for name, color, line in _GRADIENTS
            if any(_gradients(layer)[name] is not None for layer in layers)
        ]
        scale = gradient_scale(layers)
        if scale.zeros:
            zero = Line2D([], [], color=INK, linestyle="none", marker="v", mfc="white")
            legend.append((zero, _GONE))
        draw = partial(draw_gradient, scale=scale)
        return _figure(result, layers, draw, texts=GRADIENT, legend=legend, theme=theme)


def gate_figure(result: InspectResult, *, style: str = "screen") -> Figure:
    """Return how often each gate has which value."""
    layers = [layer for layer in result.layers if any(gate.histogram for gate in layer.gates)]
    with theme_context(style) as theme:
        names = dict.fromkeys(gate.name for layer in layers for gate in layer.gates)
        legend = [
            (
                Line2D([], [], color=look.color, linestyle=look.line, lw=theme.line),
                f"{name} gate",
            )
            for name, look in ((name, gate_name_look(name)) for name in names)
        ]
        draw = partial(draw_gates, highest=highest_share(layers))
        return _figure(result, layers, draw, texts=GATES, legend=legend, theme=theme)


def lag_scale(layers: Sequence[InspectedLayer]) -> Scale:
    """Return y limits that hold the curves by lag of these layers, and a thousandth."""
    arrays = [np.array([0.0, HORIZON])]
    for layer in layers[:MOST_PANELS]:
        arrays += [_array(curve) for curve in (layer.log10_norm, layer.low, layer.high)]
        arrays += [_array(layer.direct_log10_norm or ())]
    return scale_of(arrays)


def gradient_scale(layers: Sequence[InspectedLayer]) -> Scale:
    """Return y limits that hold the loss's gradients, with a floor for those that are zero."""
    curves = [curve for layer in layers for curve in _gradients(layer).values() if curve]
    gone = any(value is None for layer in layers for value in layer.log10_dL_dh or ())
    return scale_of([_array(curve) for curve in curves], zeros=int(gone))


def highest_share(layers: Sequence[InspectedLayer]) -> float:
    """Return the greatest share of a gate's values that lies in one bin."""
    shares = [_shares(gate.histogram) for layer in layers for gate in layer.gates]
    return max((float(share.max()) for share in shares if share.size), default=1.0)


def draw_lag(ax: Axes, layer: InspectedLayer, theme: Theme, *, scale: Scale) -> None:
    """Draw one layer's gradient by lag into `ax`, whose y axis then holds log10 values."""
    lags = np.array(layer.lag, dtype=np.float64)
    scale.apply(ax)
    ax.fill_between(lags, _array(layer.low), _array(layer.high), color=FULL, alpha=0.2, lw=0)
    ax.plot(lags, _array(layer.log10_norm), color=FULL, lw=theme.line, label="full")
    if layer.direct_log10_norm is not None:
        direct = _array(layer.direct_log10_norm)
        ax.plot(lags, direct, color=DIRECT, linestyle="--", lw=theme.line, label="direct")
    ax.axhline(HORIZON, color=QUIET, linestyle=":", lw=theme.line)
    if layer.horizon is not None:
        ax.plot([layer.horizon], [HORIZON], marker="o", ms=theme.marker, color=INK, zorder=4)
    _set_steps(ax, lags)


def draw_gradient(ax: Axes, layer: InspectedLayer, theme: Theme, *, scale: Scale) -> None:
    """Draw the loss's gradient at one layer's states into `ax`, zeros at the floor."""
    scale.apply(ax)
    steps = np.arange(len(layer.log10_dL_dh or ()), dtype=np.float64)
    for name, color, line in _GRADIENTS:
        curve = _gradients(layer)[name]
        if curve is not None:
            values = _array(curve)
            ax.plot(steps, values, color=color, linestyle=line, lw=theme.line, label=name)
            lone = lone_points(values)  # of which a line shows nothing
            size = theme.marker * (0.5 if line == ":" else 1.0)  # the same number in two dtypes
            style: dict[str, Any] = {"marker": "o", "linestyle": "none", "clip_on": False}
            ax.plot(steps[lone], values[lone], color=color, ms=size, **style)
    gone = steps[np.isnan(_array(layer.log10_dL_dh or ()))]
    if gone.size:
        mark(ax, gone[marker_indices(gone)], height=scale.row_height(0), marker="v", color=INK)
    _set_steps(ax, steps)


def lone_points(values: FloatArray) -> NDArray[np.bool_]:
    """Return where a curve has a number and neither neighbour has one."""
    known = np.pad(np.isfinite(values), 1)
    alone: NDArray[np.bool_] = known[1:-1] & ~known[:-2] & ~known[2:]
    return alone


def draw_gates(ax: Axes, layer: InspectedLayer, theme: Theme, *, highest: float) -> None:
    """Draw how often each gate of one layer has which value into `ax`."""
    for gate in layer.gates:
        shares = _shares(gate.histogram)
        if not shares.size:
            continue
        look = gate_name_look(gate.name)
        edges = np.linspace(0.0, 1.0, len(shares) + 1)
        style: dict[str, Any] = {"linestyle": look.line, "lw": theme.line, "label": gate.name}
        ax.stairs(shares, edges, baseline=None, color=look.color, **style)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.06 * highest)


def _figure(
    result: InspectResult,
    layers: Sequence[InspectedLayer],
    draw: Draw,
    *,
    texts: Profile,
    legend: list[tuple[Line2D, str]],
    theme: Theme,
) -> Figure:
    shown = layers[:MOST_PANELS]
    columns = max(1, min(theme.most_columns, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    grid = Grid(rows=rows, columns=columns, label_room=0.9 * theme.em)
    left = len(layers) - len(shown)
    more = f" The first {len(shown)} of {len(layers)} layers." if left > 0 else ""
    around = Words(texts.title, subtitle=result.verdict[-1], caption=result.verdict[0] + more)
    grid = titled_panels(theme, grid, [words.layer_title(layer) for layer in shown])
    sheet = make_sheet(theme, grid, around, legend=list(legend))
    panels = [ax for row in sheet.axes for ax in row]
    for index, (ax, layer) in enumerate(zip(panels, shown, strict=False)):
        title = panel_title(words.layer_title(layer), inches_of(ax)[0], theme)
        ax.set_title(title, parse_math=False)
        draw(ax, layer, theme)
        ax.set_xlabel(texts.axes[0] if index >= len(shown) - columns else "")
        ax.set_ylabel(texts.axes[1] if index % columns == 0 else "")
        ax.tick_params(labelleft=index % columns == 0)
    for ax in panels[len(shown) :]:
        ax.set_axis_off()
    return describe(sheet.figure, f"{texts.title}. {' '.join(result.verdict)}")


def _gradients(layer: InspectedLayer) -> dict[str, Curve | None]:
    curves = (layer.log10_dL_dh, layer.log10_dL_dc, layer.log10_dL_dh_own_precision)
    return {name: curve for (name, _, _), curve in zip(_GRADIENTS, curves, strict=True)}


def _set_steps(ax: Axes, steps: FloatArray) -> None:
    last = float(steps[-1]) if steps.size else 1.0
    ax.set_xlim(0.0, max(1.0, last))
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _shares(histogram: Sequence[int]) -> FloatArray:
    """Return a histogram as shares of all; empty where nothing was counted."""
    counts = np.array(histogram, dtype=np.float64)
    return counts / counts.sum() if counts.sum() else np.zeros(0)


def _array(curve: Curve) -> FloatArray:
    """Return a curve with nan where it has no number, which breaks the line."""
    return np.array([math.nan if value is None else value for value in curve])
