"""Figures in a script or notebook: `gf.plot.decay(result)`, `gf.plot.norms(steps, norms)`, ...

Each returns a matplotlib Figure, needs no display and does not touch pyplot. Given an `ax` of your
own, it draws there and returns that axes' figure.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.errors import UnknownNameError
from gradflow.present.decay import decay_figure
from gradflow.present.decay_panel import draw_panel, panel_scale
from gradflow.present.decay_words import Panel, panels_of
from gradflow.present.depth_curves import depth_curves_figure
from gradflow.present.depth_figure import color_scale, depth_figure, draw_map
from gradflow.present.depth_words import map_title
from gradflow.present.inits_figure import inits_figure
from gradflow.present.norms import NormLabels, draw_norms, norms_figure
from gradflow.present.params_figure import params_figure
from gradflow.present.paths_figure import paths_figure
from gradflow.present.spectrum_figure import draw_spectrum, spectrum_figure
from gradflow.present.step_figure import step_figure
from gradflow.present.theme import theme_of
from gradflow.present.watch_figure import watch_figure
from gradflow.records import (
    DecayResult,
    DepthResult,
    InitsResult,
    ParamsResult,
    SpectrumResult,
    StepResult,
    WatchRun,
)

__all__ = [
    "decay",
    "depth",
    "depth_curves",
    "inits",
    "norms",
    "params",
    "paths",
    "spectrum",
    "step",
    "watch",
]


def decay(
    result: DecayResult,
    ax: Axes | None = None,
    *,
    cell: str | None = None,
    candidate_gain: float | None = None,
    style: str = "screen",
) -> Figure:
    """Draw a decay: the whole figure, or with `ax` the one panel of a cell and candidate gain.

    Args:
        result: what `gf.run_decay` measured.
        ax: where to draw one panel; its y axis then holds log10 values.
        cell: which cell's panel, where the result has several.
        candidate_gain: which gain's panel, where the result has several.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: `ax` was given, and not exactly one panel fits.
    """
    panels = [panel for panel in panels_of(result) if _fits(panel, cell, candidate_gain)]
    if ax is None:
        return decay_figure(result, style=style)
    if len(panels) != 1:
        known = "; ".join(panel.title for panel in panels_of(result))
        raise UnknownNameError(
            f"one ax takes one panel, and {len(panels)} fit. "
            f"Name one with cell= and candidate_gain=; there are: {known}."
        )
    draw_panel(ax, panels[0], theme=theme_of(style), scale=panel_scale(panels))
    ax.set_xlabel("T (steps)")
    ax.set_ylabel(f"{panels[0].quantity}  (log scale)")
    return _figure_of(ax)


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
    return _figure_of(ax)


def paths(result: DecayResult, *, style: str = "screen") -> Figure:
    """Draw where the gradients of a decay travel: a panel per cell, gain and gate value.

    Args:
        result: what `gf.run_decay` measured, with `paths=True`.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: the paths were not measured.
    """
    if not result.paths:
        raise UnknownNameError(
            "this decay has no paths: they are measured where they are asked for. "
            "Use gf.DecaySettings(paths=True), or gradflow decay --paths."
        )
    return paths_figure(result.paths, style=style)


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
    return _figure_of(ax)


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
    chosen = 0 if panel is None and len(result.maps) == 1 else panel
    if chosen is None or not 0 <= chosen < len(result.maps):
        known = "; ".join(f"{place}: {map_title(found)}" for place, found in enumerate(result.maps))
        raise UnknownNameError(f"one ax takes one map. Name it with panel=; there are: {known}.")
    draw_map(ax, result.maps[chosen], theme=theme_of(style), scale=color_scale(result))
    ax.set_xlabel("steps before each sample's own end")
    return _figure_of(ax)


def depth_curves(result: DepthResult, *, style: str = "screen") -> Figure:
    """Draw the same norms as a curve per layer, with the range over the samples."""
    return depth_curves_figure(result, style=style)


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


def _fits(panel: Panel, cell: str | None, candidate_gain: float | None) -> bool:
    return cell in (None, panel.cell) and candidate_gain in (None, panel.gain)


def _plain(values: Any) -> Any:
    """Return a tensor as a NumPy array (without importing torch), and anything else as it is."""
    if hasattr(values, "detach"):
        return values.detach().cpu().double().numpy()
    return values


def _figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise UnknownNameError("ax belongs to no figure (it was removed). Pass one that does.")
    return figure
