"""The heat map of `gradflow inspect --depth`: the loss's gradient over layers and time."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gradflow.present.depth_figure import decay_colors, leave_zeros_bare, swatches, zero_swatch
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.theme import Theme, describe, shortened, text_width, theme_context
from gradflow.records.base import FloatArray
from gradflow.records.inspect import InspectedLayer, InspectResult

_ROW = 2.2  # em, of one layer
_LABEL = 14.0  # em, the widest name of a layer


def depth_figure(result: InspectResult, *, style: str = "screen") -> Figure | None:
    """Return log10 ||dL/dh_t|| by layer (the top one above) and step; None without a loss.

    Hatched where there is no number: an exact zero, or no such step.
    """
    layers = layers_with_loss(result)
    if not layers:
        return None
    with theme_context(style) as theme:
        names = _names(layers, theme)
        widest = max(text_width(name, theme.font) for name in names) / theme.em
        height = max(3, len(layers)) * _ROW * theme.em
        grid = Grid(1, 1, tick_room=widest + 1.6, height=height, titled=False)
        title = "The gradient of the loss by layer and step"
        texts = Words(title, result.verdict[-1], f"log10 of ||dL/dh_t||. {result.verdict[0]}")
        values = heights(layers)
        legend = swatches(_scale(values))
        if np.isnan(values).any():
            legend.append((zero_swatch(), "exactly 0, or no such step"))
        sheet = make_sheet(theme, grid, texts, legend=legend)
        draw_heights(sheet.axes[0][0], layers, theme=theme)
        return describe(sheet.figure, f"{title}. {' '.join(result.verdict)}")


def layers_with_loss(result: InspectResult) -> list[InspectedLayer]:
    """Return the layers whose states have a gradient of the loss, the top one first."""
    return [layer for layer in reversed(result.layers) if layer.log10_dL_dh is not None]


def draw_heights(ax: Axes, layers: list[InspectedLayer], *, theme: Theme) -> None:
    """Draw log10 ||dL/dh_t|| of these layers into `ax`, one row each."""
    values = heights(layers)
    names = _names(layers, theme)
    leave_zeros_bare(ax)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.imshow(
        np.ma.masked_invalid(values),
        aspect="auto",
        interpolation="nearest",
        cmap=decay_colors(),
        norm=_scale(values),
    )
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    ax.set_xlabel("step t")


def _names(layers: list[InspectedLayer], theme: Theme) -> list[str]:
    return [
        shortened(f"{layer.title}, {layer.direction}", _LABEL * theme.em, theme.font)
        for layer in layers
    ]


def _scale(values: FloatArray) -> Normalize:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Normalize(-1.0, 0.0)
    low, high = float(finite.min()), float(finite.max())
    return Normalize(low if low < high else high - 1.0, high)


def heights(layers: list[InspectedLayer]) -> FloatArray:
    """Return log10 norms (layer, step), nan where there is none."""
    longest = max(len(layer.log10_dL_dh or ()) for layer in layers)
    values = np.full((len(layers), longest), math.nan)
    for row, layer in enumerate(layers):
        for t, value in enumerate(layer.log10_dL_dh or ()):
            values[row, t] = math.nan if value is None else value
    return values
