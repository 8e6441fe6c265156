"""The figures of a depth map: a heat map of time and depth, and the same as curves by lag.

Both begin at each sample's own end (on the right) and go back from it. The heat map is told by
lightness alone (dark is felt, light is lost) and has numbers in it, so it reads in grey.
"""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from gradflow.present import depth_words as words
from gradflow.present.layout import Grid, Words, labels_that_fit, make_sheet
from gradflow.present.palette import INK, QUIET
from gradflow.present.theme import Theme, describe, inches_of, text_width, theme_context
from gradflow.records.depth import DepthMap, DepthResult

_ROW = 2.3  # em: the height of a row
_NUMBERS = 7  # columns of numbers in a panel, at most
_SWATCHES = 5
_ZERO_HATCH, _ZERO_EDGE = "xxxx", "#b9bec6"
_PALEST = 0.93  # of the scale: white is kept for what is not there


def depth_figure(result: DepthResult, *, style: str = "screen") -> Figure:
    """Return the heat maps: a panel per stack, a row per layer, time running to the own end.

    Args:
        result: what `gradflow depth` measured.
        style: "screen" or "paper".
    """
    with theme_context(style) as theme:
        maps = result.maps
        columns = min(2, max(1, len(maps)))
        heights = max((_rows_of(found) for found in maps), default=1)
        grid = Grid(
            rows=max(1, math.ceil(len(maps) / columns)),
            columns=columns,
            tick_room=_label_room(result, theme),
            height=heights * _ROW * theme.em,
        )
        caption = " ".join([*words.findings(result), _reading(result)])
        texts = Words(words.title(result), words.conditions(result), caption)
        scale = color_scale(result)
        sheet = make_sheet(theme, grid, texts, legend=_legend(result, scale))
        axes = [ax for row in sheet.axes for ax in row]
        for index, (ax, found) in enumerate(zip(axes, maps, strict=False)):
            draw_map(ax, found, theme=theme, scale=scale)
            if index % columns:
                ax.set_yticklabels([])
        for ax in axes[max(0, len(maps) - columns) : len(maps)]:
            ax.set_xlabel("steps before each sample's own end")
        for ax in axes[len(maps) :]:
            ax.set_axis_off()
        return describe(sheet.figure, _alt(result))


def draw_map(ax: Axes, found: DepthMap, *, theme: Theme, scale: Normalize) -> None:
    """Draw one stack's map into `ax`: the last layer on top, the input below, the end right."""
    values = _values(found)
    ax.set_title(words.map_title(found))
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    leave_zeros_bare(ax)
    far = int(found.lags[-1])
    rows = len(values)
    image = ax.imshow(
        np.ma.masked_invalid(values[:, ::-1]),  # the farthest lag stands left
        aspect="auto",
        interpolation="nearest",
        cmap=decay_colors(),
        norm=scale,
        extent=(far + 0.5, -0.5, rows - 0.5, -0.5),
    )
    image.set_label("log10 norm")
    names = [words.row_title(row, found.directions) for row in reversed(found.rows)]
    varying = len(set(found.count.tolist())) > 1
    if varying:
        names.append("samples n")
        ax.axhspan(rows - 0.5, rows + 0.5, facecolor="white", linewidth=0)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    for row in range(1, rows):
        ax.axhline(row - 0.5, color="white", linewidth=1.0)
    _write_numbers(ax, found, values, theme=theme, scale=scale, varying=varying)


def color_scale(result: DepthResult) -> Normalize:
    """Return the scale that all panels share: from the smallest norm to the largest, in decades."""
    values = np.concatenate([_values(found).ravel() for found in result.maps] or [np.zeros(1)])
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Normalize(-1.0, 0.0)
    low, high = float(finite.min()), float(finite.max())
    return Normalize(low if low < high else high - 1.0, high)


def _write_numbers(
    ax: Axes, found: DepthMap, values: np.ndarray, *, theme: Theme, scale: Normalize, varying: bool
) -> None:
    """Write log10 of the norm into some columns, and n below them where it varies."""
    size = theme.small
    for column in _numbered(ax, values, size):
        lag = int(found.lags[column])
        for row, value in enumerate(values[:, column]):
            if math.isfinite(value):
                ax.text(
                    lag,
                    row,
                    _exponent(value),
                    size=size,
                    color=_readable_on(decay_colors()(float(scale(value)))),
                    ha="center",
                    va="center",
                )
        if varying:
            ax.text(lag, len(values), str(found.count[column]), size=size, color=QUIET,
                    ha="center", va="center")  # fmt: skip


def _readable_on(color: tuple[float, float, float, float]) -> str:
    """Return white or ink, whichever stands out more on a colour (WCAG's relative luminance)."""
    linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04 else c / 12.92 for c in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.073 else INK


def _exponent(value: float) -> str:
    if abs(value) < 0.05:
        return "0"
    return f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"


def _numbered(ax: Axes, values: np.ndarray, size: float) -> list[int]:
    """Return the columns that get numbers: evenly spaced, as many as have room."""
    texts = {_exponent(value) for value in values[np.isfinite(values)]}
    widest = max([*texts, "-00.0"], key=lambda text: text_width(text, size))
    steps = values.shape[1]
    count = min(_NUMBERS, labels_that_fit(ax, widest, size), steps)
    # half a number's width from either edge, so that it stays inside
    inset = 0.5 * text_width(widest, size) / inches_of(ax)[0] * steps
    inset = min(max(0.0, inset), (steps - 1) / 2)
    return sorted({round(float(step)) for step in np.linspace(inset, steps - 1 - inset, count)})


def _values(found: DepthMap) -> np.ndarray:
    """Return log10 norms (rows, lags), the last layer first; -inf for zero."""
    return np.stack([row.log10_norm for row in reversed(found.rows)])


def _rows_of(found: DepthMap) -> int:
    return len(found.rows) + int(len(set(found.count.tolist())) > 1)


def decay_colors() -> Colormap:
    """Return cividis from light (lost) to dark (felt): its lightness falls evenly, in grey too."""
    shades = matplotlib.colormaps["cividis_r"](np.linspace(1.0 - _PALEST, 1.0, 256))
    return matplotlib.colors.ListedColormap(shades)


def swatches(scale: Normalize) -> list[tuple[Patch, str]]:
    """Return the colours of the scale, from the largest norm to the smallest, for a legend."""
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 0.0)
    ticks = MaxNLocator(_SWATCHES, integer=True).tick_values(low, high)
    inside = [tick for tick in ticks if low - 1e-9 <= tick <= high + 1e-9]
    colors = decay_colors()
    return [
        (
            Patch(color=to_hex(colors(float(scale(tick))))),
            "1" if abs(tick) < 1e-9 else f"$10^{{{tick:.4g}}}$",  # a narrow scale has fractions
        )
        for tick in sorted(inside, reverse=True)
    ]


def zero_swatch() -> Patch:
    """Return how a zero is drawn in a heat map."""
    return Patch(facecolor="white", edgecolor=_ZERO_EDGE, hatch=_ZERO_HATCH)


def leave_zeros_bare(ax: Axes) -> None:
    """Let what has no colour in a heat map show as zero."""
    ax.patch.set(facecolor="white", edgecolor=_ZERO_EDGE, hatch=_ZERO_HATCH)


def _legend(result: DepthResult, scale: Normalize) -> list[tuple[Patch, str]]:
    """Return swatches of the scale, and of zeros where there are."""
    entries = swatches(scale)
    if any(bool(np.isneginf(_values(found)).any()) for found in result.maps):
        entries.append((zero_swatch(), "exactly 0, or too small for the dtype"))
    return entries


def _reading(result: DepthResult) -> str:
    """Return how to read the panels."""
    if not result.maps:
        return "No maps."
    varying = len(set(result.lengths)) > 1
    mean = "mean over n samples" if varying else "mean over the samples"
    return f"Colours and numbers: log10 of {words.plain_quantity(result.maps[0])}, {mean}."


def _label_room(result: DepthResult, theme: Theme) -> float:
    names = [words.row_title(row, f.directions) for f in result.maps for row in f.rows]
    widest = max((text_width(name, theme.font) for name in [*names, "samples n"]), default=0.0)
    return widest / theme.em + 1.6


def _alt(result: DepthResult) -> str:
    """Return the alt text: each row's norm at the end and at its first step."""
    parts = []
    for found in result.maps:
        rows = [
            f"{words.row_title(row, found.directions)} {row.log10_norm[0]:.3g} to "
            f"{row.log10_norm[-1]:.3g}"
            for row in reversed(found.rows)
        ]
        parts.append(f"{words.map_title(found)}: {', '.join(rows)}.")
    what = "Heat maps of log10 norms by layer (rows) and steps before the end (columns)."
    return " ".join([what, *parts])
