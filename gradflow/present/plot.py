"""Figures in a script or notebook: `gf.plot.decay(result)`, `gf.plot.norms(steps, norms)`, ...

Each returns a matplotlib Figure, needs no display and does not touch pyplot. Given an `ax` of your
own, it draws there and returns that axes' figure.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.errors import UnknownNameError, nearest_name
from gradflow.present.benchmark_gradient import gradient_figure
from gradflow.present.benchmark_learning import learning_figure
from gradflow.present.benchmark_scores import accuracy_figure, cost_figure
from gradflow.present.depth_curves import depth_curves_figure
from gradflow.present.depth_figure import color_scale, depth_figure, draw_map
from gradflow.present.depth_words import map_title
from gradflow.present.inits_figure import inits_figure
from gradflow.present.norms import NormLabels, draw_norms, norms_figure
from gradflow.present.params_figure import params_figure
from gradflow.present.plot_axes import figure_of, place_of
from gradflow.present.plot_checks import inspect, parity, saturate, speed
from gradflow.present.plot_decay import blocks, decay, departure, paths
from gradflow.present.spectrum_figure import draw_spectrum, spectrum_figure
from gradflow.present.step_figure import step_figure
from gradflow.present.theme import theme_of
from gradflow.present.watch_figure import watch_figure
from gradflow.records import (
    BenchmarkResult,
    DepthResult,
    InitsResult,
    ParamsResult,
    SpectrumResult,
    StepResult,
    WatchRun,
)

__all__ = [
    "benchmark",
    "blocks",
    "decay",
    "departure",
    "depth",
    "depth_curves",
    "inits",
    "inspect",
    "norms",
    "params",
    "parity",
    "paths",
    "saturate",
    "spectrum",
    "speed",
    "step",
    "watch",
]
_BENCHMARKS = {
    "accuracy": accuracy_figure,
    "learning": learning_figure,
    "cost": cost_figure,
    "gradient": gradient_figure,
}


def norms(
    steps: Any,
    norms: Any,
    ax: Axes | None = None,
    *,
    log10: bool = False,
    title: str = "Norm by step",
    norm: str = "norm",
    step: str = "step",
    style: str = "screen",
) -> Figure:
    """Draw norms by step or lag on a log axis; zeros, NaN and infinities are shown and counted.

    Args:
        steps: the step or lag of each norm: an array, a tensor or a list.
        norms: the norms, or with `log10` their base-10 logarithms.
        ax: where to draw.
        log10: whether `norms` are logarithms (-inf for zero).
        title: the figure's title.
        norm: what the y axis is called.
        step: what the x axis is called.
        style: "screen" or "paper" sizes.

    Raises:
        ShapeError: the two are not one-dimensional and of one length.
    """
    labels = NormLabels(title=title, norm=norm, step=step)
    at, values = _plain(steps), _plain(norms)
    if ax is None:
        return norms_figure(at, values, log10=log10, labels=labels, style=style)
    draw_norms(ax, at, values, log10=log10, labels=labels, theme=theme_of(style))
    ax.legend()
    return figure_of(ax)


def spectrum(result: SpectrumResult, ax: Axes | None = None, *, style: str = "screen") -> Figure:
    """Draw Lyapunov exponents by their number, zeros on a floor below the axis.

    Args:
        result: what `gf.run_spectrum` measured.
        ax: where to draw.
        style: "screen" or "paper" sizes.
    """
    if ax is None:
        return spectrum_figure(result, style=style)
    draw_spectrum(ax, result, theme=theme_of(style))
    return figure_of(ax)


def depth(
    result: DepthResult, ax: Axes | None = None, *, panel: int | None = None, style: str = "screen"
) -> Figure:
    """Draw gradient flow through time and depth as heat maps, or with `ax` one of them.

    Args:
        result: what `gf.run_depth` measured.
        ax: where to draw one map.
        panel: which map, counted from 0, where the result has several.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: `ax` was given, and it is not clear which map fits.
    """
    if ax is None:
        return depth_figure(result, style=style)
    chosen = place_of([map_title(found) for found in result.maps], panel, "panel", "map")
    draw_map(ax, result.maps[chosen], theme=theme_of(style), scale=color_scale(result))
    ax.set_xlabel("steps before each sample's own end")
    return figure_of(ax)


def depth_curves(result: DepthResult, *, style: str = "screen") -> Figure:
    """Draw the same norms as a curve per layer, with the range over the samples."""
    return depth_curves_figure(result, style=style)


def benchmark(
    result: BenchmarkResult, *, figure: str = "accuracy", style: str = "screen"
) -> Figure:
    """Draw a benchmark: accuracy by delay, learning curves, cost, or the loss's gradient.

    Args:
        result: what `gf.run_benchmark` measured.
        figure: "accuracy", "learning", "cost" or "gradient".
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: there is no such figure.
    """
    if figure not in _BENCHMARKS:
        raise UnknownNameError(
            f"no figure of a benchmark is called {figure!r}. {nearest_name(figure, _BENCHMARKS)}"
        )
    return _BENCHMARKS[figure](result, style=style)


def inits(result: InitsResult, *, style: str = "screen") -> Figure:
    """Draw a comparison of initializations: curves, gates, time constants, singular values."""
    return inits_figure(result, style=style)


def params(result: ParamsResult, *, style: str = "screen") -> Figure:
    """Draw where the parameters of each cell are."""
    return params_figure(result, style=style)


def step(result: StepResult, *, style: str = "screen") -> Figure:
    """Draw worked steps: the cell as a conveyor belt, with its gates."""
    return step_figure(result, style=style)


def watch(run: WatchRun, *, style: str = "screen") -> Figure:
    """Draw a watched training: a heat map per layer, distance from the end against update.

    Args:
        run: what `gf.run_watch` or `gf.load_result` read.
        style: "screen" or "paper" sizes.
    """
    return watch_figure(run, style=style)


def _plain(values: Any) -> Any:
    """Return a tensor as a NumPy array (without importing torch), and anything else as it is."""
    if hasattr(values, "detach"):
        return values.detach().cpu().double().numpy()
    return values
