"""`gf.plot` for results of `gf.run_decay`: curves, departures, paths and blocks."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.errors import UnknownNameError
from gradflow.present.blocks_figure import blocks_figure, with_blocks
from gradflow.present.decay import decay_figure
from gradflow.present.decay_panel import draw_panel, panel_scale
from gradflow.present.decay_words import Panel, panels_of
from gradflow.present.departure_figure import departure_figure, departure_scale, draw_departure
from gradflow.present.departure_words import sweeps_of
from gradflow.present.paths_figure import paths_figure
from gradflow.present.plot_axes import figure_of
from gradflow.present.theme import theme_of
from gradflow.records import DecayResult


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

    >>> import gradflow as gf
    >>> from matplotlib.figure import Figure
    >>> small = gf.DecaySettings(cell="lstm", gate=0.5, candidate_gain=0, steps=4, hidden=2)
    >>> ax = Figure().subplots()
    >>> gf.plot.decay(gf.run_decay(small), ax).axes == [ax]
    True
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
    return figure_of(ax)


def departure(
    result: DecayResult,
    ax: Axes | None = None,
    *,
    cell: str | None = None,
    style: str = "screen",
) -> Figure:
    """Draw the factor per step over the candidate's gain, with the exact rate as a line.

    Args:
        result: what `gf.run_decay` measured at three candidate gains or more.
        ax: where to draw one cell; its y axis then holds log10 of the factor.
        cell: which cell, where the result has several.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: fewer than three gains, or `ax` was given and not one cell fits.

    >>> import gradflow as gf
    >>> asked = gf.DecaySettings(cell="gru", gate=0.1, candidate_gain=(0, 1, 2), steps=4, hidden=2)
    >>> (ax,) = gf.plot.departure(gf.run_decay(asked), style="paper").axes
    >>> ax.get_xlabel(), ax.get_title(loc="left")
    ('candidate gain', 'GRU')
    """
    sweeps = sweeps_of(result)
    if not sweeps:
        raise UnknownNameError(
            "a departure is drawn over the candidate's gain, and this decay has fewer than three. "
            "Use gf.DecaySettings(candidate_gain=(0, 0.5, 1, 1.5, 2))."
        )
    if ax is None:
        return departure_figure(result, style=style)
    chosen = [sweep for sweep in sweeps if cell in (None, sweep.cell)]
    if len(chosen) != 1:
        known = ", ".join(sweep.cell for sweep in sweeps)
        raise UnknownNameError(
            f"one ax takes one cell, and {len(chosen)} fit. Name it with cell=; there are: {known}."
        )
    draw_departure(ax, chosen[0], theme=theme_of(style), scale=departure_scale(chosen))
    return figure_of(ax)


def paths(result: DecayResult, *, style: str = "screen") -> Figure:
    """Draw where the gradients of a decay travel: a panel per cell, gain and gate value.

    Args:
        result: what `gf.run_decay` measured, with `paths=True`.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: the paths were not measured.
    """
    _require_paths(result)
    return paths_figure(result.paths, style=style)


def blocks(result: DecayResult, *, style: str = "screen") -> Figure:
    """Draw the blocks of the joint Jacobian (four for an LSTM) beside the direct path.

    Args:
        result: what `gf.run_decay` measured, with `paths=True`.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: the paths were not measured, or every cell's state is of one part.
    """
    _require_paths(result)
    if not with_blocks(result.paths):
        raise UnknownNameError(
            "blocks are of a state of several parts, such as an LSTM's h and c; no cell of this "
            "decay has one. Use gf.plot.paths."
        )
    return blocks_figure(result.paths, style=style)


def _require_paths(result: DecayResult) -> None:
    if not result.paths:
        raise UnknownNameError(
            "this decay has no paths: they are measured where they are asked for. "
            "Use gf.DecaySettings(paths=True), or gradflow decay --paths."
        )


def _fits(panel: Panel, cell: str | None, candidate_gain: float | None) -> bool:
    return cell in (None, panel.cell) and candidate_gain in (None, panel.gain)
