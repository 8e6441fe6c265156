"""Figures of `gradflow inspect`: gradient by lag, the loss's gradient over time, gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gradflow.present import inspect_words as words
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.palette import INK, QUIET
from gradflow.present.theme import Theme, describe, shortened, theme_context
from gradflow.records.base import FloatArray
from gradflow.records.inspect import Curve, InspectedLayer, InspectResult

MOST_PANELS = 8
HORIZON = -3.0
_FULL, _DIRECT, _OWN = "#0072b2", "#d55e00", "#009e73"  # told apart by line style as well
_LINES: tuple[Any, ...] = ("-", "--", ":", "-.")
_GATES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
Draw = Callable[[Axes, InspectedLayer, Theme], None]


def lag_figure(result: InspectResult, *, style: str = "screen") -> Figure:
    """Return the gradient by lag: mean and range over windows, with the product of keep gates."""
    legend = [
        (Line2D([], [], color=_FULL), "full, mean of the windows (band: their range)"),
        (Line2D([], [], color=_DIRECT, linestyle="--"), "product of keep gates"),
        (Line2D([], [], color=QUIET, linestyle=":"), "a thousandth"),
    ]
    return _figure(
        result,
        [layer for layer in result.layers if layer.lag],
        _draw_lag,
        title="How much of a state is felt k steps later",
        axes=("lag k (steps)", "log10 of ||ds_t/ds_(t-k)||"),
        legend=legend,
        style=style,
    )


def gradient_figure(result: InspectResult, *, style: str = "screen") -> Figure:
    """Return the loss's gradient at every state, in float64 and in the model's own dtype."""
    legend = [
        (Line2D([], [], color=_FULL), "dL/dh"),
        (Line2D([], [], color=_DIRECT, linestyle="--"), "dL/dc"),
        (Line2D([], [], color=_OWN, linestyle=":"), "dL/dh in the model's own precision"),
    ]
    return _figure(
        result,
        [layer for layer in result.layers if layer.log10_dL_dh is not None],
        _draw_gradient,
        title="The gradient of the loss at every state, through time",
        axes=("step t", "log10 of the norm"),
        legend=legend,
        style=style,
    )


def gate_figure(result: InspectResult, *, style: str = "screen") -> Figure:
    """Return how often each gate has which value."""
    return _figure(
        result,
        [layer for layer in result.layers if any(gate.histogram for gate in layer.gates)],
        _draw_gates,
        title="Where the gates stand",
        axes=("gate value", "share of steps and units"),
        legend=_gate_legend(result),
        style=style,
    )


def _figure(
    result: InspectResult,
    layers: Sequence[InspectedLayer],
    draw: Draw,
    *,
    title: str,
    axes: tuple[str, str],
    legend: list[tuple[Line2D, str]],
    style: str,
) -> Figure:
    shown = layers[:MOST_PANELS]
    with theme_context(style) as theme:
        columns = max(1, min(2, len(shown)))
        rows = max(1, math.ceil(len(shown) / columns))
        left = len(layers) - len(shown)
        more = f" The first {len(shown)} of {len(layers)} layers." if left > 0 else ""
        texts = Words(title=title, subtitle=result.verdict[-1], caption=result.verdict[0] + more)
        grid = Grid(rows=rows, columns=columns, label_room=0.5)  # for the next panel's ticks
        sheet = make_sheet(theme, grid, texts, legend=list(legend))
        panels = [ax for row in sheet.axes for ax in row]
        for ax, layer in zip(panels, shown, strict=False):
            width = ax.get_position().width * sheet.figure.get_figwidth()
            ax.set_title(shortened(words.layer_title(layer), width, theme.font))
            draw(ax, layer, theme)
        for index, ax in enumerate(panels[: len(shown)]):
            ax.set_xlabel(axes[0] if index >= len(shown) - columns else "")
            ax.set_ylabel(axes[1] if index % columns == 0 else "")
        for ax in panels[len(shown) :]:
            ax.set_axis_off()
        return describe(sheet.figure, f"{title}. {' '.join(result.verdict)}")


def _draw_lag(ax: Axes, layer: InspectedLayer, theme: Theme) -> None:
    lags = np.array(layer.lag, dtype=np.float64)
    low, high = _array(layer.low), _array(layer.high)
    ax.fill_between(lags, low, high, color=_FULL, alpha=0.2, lw=0)
    ax.plot(lags, _array(layer.log10_norm), color=_FULL, lw=theme.line)
    if layer.direct_log10_norm is not None:
        ax.plot(lags, _array(layer.direct_log10_norm), color=_DIRECT, linestyle="--", lw=theme.line)
    ax.axhline(HORIZON, color=QUIET, linestyle=":", lw=theme.line)
    if layer.horizon is not None:
        ax.plot([layer.horizon], [HORIZON], marker="o", ms=theme.marker, color=INK)


def _draw_gradient(ax: Axes, layer: InspectedLayer, theme: Theme) -> None:
    for curve, color, line in (
        (layer.log10_dL_dh, _FULL, "-"),
        (layer.log10_dL_dc, _DIRECT, "--"),
        (layer.log10_dL_dh_own_precision, _OWN, ":"),
    ):
        if curve is not None:
            values = _array(curve)
            ax.plot(np.arange(len(values)), values, color=color, linestyle=line, lw=theme.line)


def _draw_gates(ax: Axes, layer: InspectedLayer, theme: Theme) -> None:
    for index, gate in enumerate(layer.gates):
        counts = np.array(gate.histogram, dtype=np.float64)
        if not counts.size or not counts.sum():
            continue
        edges = np.linspace(0.0, 1.0, len(counts) + 1)
        ax.stairs(
            counts / counts.sum(), edges, color=_GATES[index % len(_GATES)], lw=theme.line,
            linestyle=_LINES[index % 4],
        )  # fmt: skip
    ax.set_xlim(0.0, 1.0)


def _gate_legend(result: InspectResult) -> list[tuple[Line2D, str]]:
    most = max((layer.gates for layer in result.layers), key=len, default=())
    return [
        (
            Line2D([], [], color=_GATES[index % len(_GATES)], linestyle=_LINES[index % 4]),
            f"{gate.name} gate",
        )
        for index, gate in enumerate(most)
    ]


def _array(curve: Curve) -> FloatArray:
    """Return a curve with nan where it has no number, which breaks the line."""
    return np.array([math.nan if value is None else value for value in curve])
