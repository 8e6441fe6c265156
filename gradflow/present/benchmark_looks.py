"""One look for each model of a benchmark: the cell gives hue and marker, the init the dashes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D

from gradflow.present.benchmark_words import model_name, short_cell
from gradflow.present.palette import INK
from gradflow.present.theme import Theme
from gradflow.records.benchmark import BenchmarkResult

_HUES = {"rnn": 1, "gru": 2, "lstm": 0}
_MARKERS = {"rnn": "s", "gru": "^", "lstm": "o"}
_OWN_HUES, _OWN_MARKERS = (3, 4, 5, 6, 7, 8, 9), ("D", "v", "P", "X", "*", "p", "h")
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (4, 1.6)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (7, 1.2)),
    (0, (4, 1.2, 1, 1.2, 1, 1.2)),
    (0, (1.2, 2.6)),
)
_DARKER = 0.28  # of one initialization to the next, so that a grey print tells them apart


@dataclass(frozen=True)
class ModelLook:
    """How a model is drawn."""

    name: str
    color: str
    marker: str
    dashes: Any

    def line(self, theme: Theme) -> dict[str, Any]:
        """Return the arguments of a line."""
        return {"color": self.color, "linestyle": self.dashes, "linewidth": theme.line * 0.85}

    def dot(self, theme: Theme, scale: float = 0.85) -> dict[str, Any]:
        """Return the arguments of markers."""
        return {
            "color": self.color,
            "marker": self.marker,
            "markersize": theme.marker * scale,
            "markeredgecolor": INK,
            "markeredgewidth": 0.5,
        }


def model_looks(result: BenchmarkResult) -> dict[tuple[str, str], ModelLook]:
    """Return the look of each cell and initialization, in the order of the result."""
    inits = list(dict.fromkeys(model.init for model in result.models))
    return {
        (model.cell, model.init): _look(result, model.cell, model.init, inits.index(model.init))
        for model in result.models
    }


def legend_of(
    looks: Sequence[ModelLook], theme: Theme, *, marked: bool
) -> list[tuple[Line2D, str]]:
    """Return legend entries of models."""
    return [
        (Line2D([], [], **look.line(theme), **(_marks(look, theme) if marked else {})), look.name)
        for look in looks
    ]


def _marks(look: ModelLook, theme: Theme) -> dict[str, Any]:
    return {key: value for key, value in look.dot(theme).items() if key != "color"}


def _look(result: BenchmarkResult, cell: str, init: str, place: int) -> ModelLook:
    own = zlib.crc32(cell.encode())
    hue = _HUES.get(cell, _OWN_HUES[own % len(_OWN_HUES)])
    marker = _MARKERS.get(cell, _OWN_MARKERS[own % len(_OWN_MARKERS)])
    red, green, blue = to_rgb(matplotlib.color_sequences["petroff10"][hue])
    keep = 1.0 - _DARKER * min(place, 2)
    return ModelLook(
        name=model_name(short_cell(result, cell), init),
        color=to_hex((red * keep, green * keep, blue * keep)),
        marker=marker,
        dashes=_DASHES[place % len(_DASHES)],
    )
