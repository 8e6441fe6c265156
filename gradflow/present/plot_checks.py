"""`gf.plot` for checks: inspections of a model, saturation, parity, and timings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.errors import UnknownNameError, nearest_name
from gradflow.present import inspect_figure as profiles
from gradflow.present.inspect_depth_figure import depth_figure, draw_heights, layers_with_loss
from gradflow.present.inspect_words import layer_title
from gradflow.present.parity_figure import draw_errors, parity_figure
from gradflow.present.plot_axes import figure_of, place_of
from gradflow.present.saturate_figure import draw_saturation, saturate_figure
from gradflow.present.saturate_words import dtypes_of
from gradflow.present.speed_figure import draw_timings, panels_of_timings, speed_figure
from gradflow.present.theme import Theme, theme_of
from gradflow.records import InspectResult, ParityResult, SaturateResult
from gradflow.records.inspect import InspectedLayer
from gradflow.records.speed import SpeedResult

PROFILES = ("lag", "gradient", "gates", "depth")
_NEEDS = {
    "lag": "a sequence of two steps or more",
    "gradient": "a loss: give gf.inspect one, or a batch with targets",
    "gates": "a layer with gates",
    "depth": "a loss: give gf.inspect one, or a batch with targets",
}


def inspect(
    result: InspectResult,
    ax: Axes | None = None,
    *,
    profile: str = "lag",
    layer: int | None = None,
    style: str = "screen",
) -> Figure:
    """Draw an inspection: one of its profiles for every layer, or with `ax` for one layer.

    Args:
        result: what `gf.inspect` found.
        ax: where to draw one layer ("depth": all of them, as rows).
        profile: "lag" (how much of a state is felt k steps later, beside the product of keep
            gates), "gradient" (dL/dh_t over time), "gates" (how often a gate has which value) or
            "depth" (dL/dh_t over layers and time).
        layer: which of the layers that have this profile, counted from 0 as in `result.layers`.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: no such profile, none of it in this result (such as a gradient where
            there was no loss), or `ax` was given and it is not clear for which layer.

    >>> import gradflow as gf, torch
    >>> from matplotlib.figure import Figure
    >>> found = gf.inspect(torch.nn.LSTM(2, 3), torch.randn(6, 1, 2))
    >>> ax = Figure().subplots()
    >>> gf.plot.inspect(found, ax).axes == [ax]
    True
    >>> [panel.get_xlabel() for panel in gf.plot.inspect(found, profile="gates").axes]
    ['gate value']
    """
    if profile not in PROFILES:
        raise UnknownNameError(
            f"no profile is called {profile!r}. {nearest_name(profile, PROFILES)}"
        )
    layers = _layers_with(result, profile)
    if not layers:
        raise UnknownNameError(
            f"this inspection has no profile {profile!r}, which needs {_NEEDS[profile]}."
        )
    if ax is None:
        return _whole(result, profile, style)
    theme = theme_of(style)
    if profile == "depth":
        draw_heights(ax, layers, theme=theme)
        return figure_of(ax)
    place = place_of([layer_title(each) for each in layers], layer, "layer", "layer")
    draw, x, y = _drawing(profile, layers)
    draw(ax, layers[place], theme)
    ax.set_title(layer_title(layers[place]), parse_math=False)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if profile != "lag":
        ax.legend()
    return figure_of(ax)


def saturate(
    result: SaturateResult,
    ax: Axes | None = None,
    *,
    dtype: str | None = None,
    style: str = "screen",
) -> Figure:
    """Draw the saturation map: a tile per cell and magnitude, or with `ax` that of one dtype.

    Args:
        result: what `gf.run_saturate` found.
        ax: where to draw the tiles of one dtype.
        dtype: which, where the result has several.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: `ax` was given, and it is not clear for which dtype.

    >>> import gradflow as gf
    >>> asked = gf.SaturateSettings(cell="rnn", dtype="float32", magnitude="max")
    >>> [ax.get_title(loc="left") for ax in gf.plot.saturate(gf.run_saturate(asked)).axes]
    ['float32']
    """
    if ax is None:
        return saturate_figure(result, style=style)
    known = dtypes_of(result)
    chosen = [name for name in known if dtype in (None, name)]
    if len(chosen) != 1:
        raise UnknownNameError(
            f"one ax takes one dtype, and {len(chosen)} fit. Name it with dtype=; "
            f"there are: {', '.join(known)}."
        )
    draw_saturation(ax, result, chosen[0], theme=theme_of(style))
    return figure_of(ax)


def parity(result: ParityResult, ax: Axes | None = None, *, style: str = "screen") -> Figure:
    """Draw the largest difference of every compared quantity beside what is allowed.

    Args:
        result: what `gf.parity` or `gf.run_parity` found.
        ax: where to draw.
        style: "screen" or "paper" sizes.

    >>> import gradflow as gf
    >>> (ax,) = gf.plot.parity(gf.parity("gru", "torch.GRUCell")).axes
    >>> ax.get_xlabel()
    'largest |A - B|'
    """
    if ax is None:
        return parity_figure(result, style=style)
    draw_errors(ax, result, theme=theme_of(style))
    return figure_of(ax)


def speed(
    result: SpeedResult, ax: Axes | None = None, *, panel: int | None = None, style: str = "screen"
) -> Figure:
    """Draw how long each method takes over the width: every case, or with `ax` one of them.

    Args:
        result: what `gf.run_speed` measured.
        ax: where to draw one panel.
        panel: which, counted from 0, where the result has several.
        style: "screen" or "paper" sizes.

    Raises:
        UnknownNameError: `ax` was given, and it is not clear which panel is meant.
    """
    if ax is None:
        return speed_figure(result, style=style)
    panels = panels_of_timings(result)
    place = place_of(list(panels), panel, "panel")
    draw_timings(ax, list(panels.values())[place], theme=theme_of(style))
    ax.set_ylabel("time")
    return figure_of(ax)


def _layers_with(result: InspectResult, profile: str) -> list[InspectedLayer]:
    if profile == "lag":
        return [layer for layer in result.layers if layer.lag]
    if profile == "gradient":
        return [layer for layer in result.layers if layer.log10_dL_dh is not None]
    if profile == "depth":
        return layers_with_loss(result)
    return [layer for layer in result.layers if any(gate.histogram for gate in layer.gates)]


def _whole(result: InspectResult, profile: str, style: str) -> Figure:
    makers: dict[str, Callable[..., Figure | None]] = {
        "lag": profiles.lag_figure,
        "gradient": profiles.gradient_figure,
        "gates": profiles.gate_figure,
        "depth": depth_figure,
    }
    figure = makers[profile](result, style=style)
    if figure is None:
        raise UnknownNameError(f"this inspection has no profile {profile!r}.")
    return figure


def _drawing(
    profile: str, layers: Sequence[InspectedLayer]
) -> tuple[Callable[[Axes, InspectedLayer, Theme], None], str, str]:
    """Return how one layer is drawn, and the names of the axes."""
    if profile == "lag":
        scale = profiles.lag_scale(layers)
        return partial(profiles.draw_lag, scale=scale), *profiles.LAG.axes
    if profile == "gradient":
        scale = profiles.gradient_scale(layers)
        return partial(profiles.draw_gradient, scale=scale), *profiles.GRADIENT.axes
    highest = profiles.highest_share(layers)
    return partial(profiles.draw_gates, highest=highest), *profiles.GATES.axes
