"""The heat map of `gradflow inspect --depth`: the loss's gradient over layers and time."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.theme import describe, shortened, theme_context
from gradflow.records.base import FloatArray
from gradflow.records.inspect import InspectedLayer, InspectResult

_ROW = 2.2  # em, of one layer
_LABEL = 16.0  # em
_EMPTY = "#e4e6ea"


def depth_figure(result: InspectResult, *, style: str = "screen") -> Figure | None:
    """Return log10 ||dL/dh_t|| by layer (the top one above) and step; None without a loss.

    Grey where there is no number: an exact zero, or no such step.
    """
    layers = [layer for layer in reversed(result.layers) if layer.log10_dL_dh is not None]
    if not layers:
        return None
    with theme_context(style) as theme:
        names = [
            shortened(f"{layer.title}, {layer.direction}", _LABEL * theme.em, theme.font)
            for layer in layers
        ]
        height = max(4, len(layers)) * _ROW * theme.em
        grid = Grid(rows=1, columns=1, label_room=0.9, tick_room=_LABEL, height=height)
        title = "The gradient of the loss by layer and step"
        texts = Words(title, result.verdict[-1], "log10 of ||dL/dh_t||; grey: exactly zero.")
        sheet = make_sheet(theme, grid, texts)
        ax = sheet.axes[0][0]
        values = heights(layers)
        ax.set_facecolor(_EMPTY)
        ax.grid(visible=False)
        image = ax.imshow(
            np.ma.masked_invalid(values), aspect="auto", interpolation="nearest", cmap="viridis"
        )
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel("step t")
        sheet.figure.colorbar(image, ax=ax, fraction=0.03, pad=0.02)
        return describe(sheet.figure, f"{title}. {' '.join(result.verdict)}")


def heights(layers: list[InspectedLayer]) -> FloatArray:
    """Return log10 norms (layer, step), nan where there is none."""
    longest = max(len(layer.log10_dL_dh or ()) for layer in layers)
    values = np.full((len(layers), longest), math.nan)
    for row, layer in enumerate(layers):
        for t, value in enumerate(layer.log10_dL_dh or ()):
            values[row, t] = math.nan if value is None else value
    return values
