"""The figure of a spectrum: every exponent by its number, zeros on a floor below the axis."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gradflow.present import spectrum_words as words
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.log_axis import mark
from gradflow.present.numbers import counted, number_text
from gradflow.present.palette import INK, QUIET, hue
from gradflow.present.theme import Theme, describe, theme_context
from gradflow.present.thinning import marker_indices
from gradflow.records.spectrum import SpectrumResult

_GROWS, _FADES = hue(2), hue(0)
_FLOOR_COLOR = "#f1f2f4"
_FLOOR, _MARK = 0.14, 0.055  # heights as shares of the axis: the floor of zeros, their marks
_MANY, _MARKS = 60, 24  # exponents from which on dots are small; marks of zeros at most


def spectrum_figure(result: SpectrumResult, *, style: str = "screen") -> Figure:
    """Return the figure of a spectrum: a dot per exponent, with two standard errors either way.

    What grows, what fades and what is gone differ in colour and in marker; the runs that were
    averaged are small dots behind. Needs no display.
    """
    with theme_context(style) as theme:
        texts = Words(
            title=words.title(result),
            subtitle=words.conditions(result),
            caption=f"{words.leading(result)} {words.totals(result)}",
        )
        grid = Grid(1, 1, label_room=0.6 * theme.em, tall=1.25, titled=False)
        sheet = make_sheet(theme, grid, texts, legend=_legend(result, theme))
        draw_spectrum(sheet.axes[0][0], result, theme=theme)
        alt = f"Dot plot of {counted(result.count, 'Lyapunov exponent')} by number, in nats per "
        return describe(sheet.figure, f"{alt}step. {texts.caption}")


def draw_spectrum(ax: Axes, result: SpectrumResult, *, theme: Theme) -> None:
    """Draw the exponents into `ax`."""
    numbers = np.arange(1, result.count + 1)
    _set_axes(ax, result)
    ax.axhline(0.0, color=QUIET, linewidth=theme.line * 0.5, zorder=1)
    if len(result.by_row) > 1:
        finite = np.where(np.isfinite(result.by_row), result.by_row, np.nan)
        behind = np.tile(numbers, len(finite))
        ax.plot(behind, finite.ravel(), ".", color=QUIET, alpha=0.35, markersize=theme.marker * 0.5)
    for name, chosen, color, marker in _kinds(result):
        _draw_kind(ax, result, chosen, color=color, marker=marker, theme=theme, label=name)
    gone = numbers[np.isneginf(result.exponents)].astype(np.float64)
    if gone.size:
        kept = gone[marker_indices(gone, _MARKS)]
        mark(ax, kept, height=_MARK, marker="v", color=INK, label=_gone_text(result))
    dimension = result.kaplan_yorke_dimension
    if dimension is not None and dimension > 0:
        ax.axvline(dimension, color=INK, linestyle=":", linewidth=theme.line * 0.6, zorder=1)


def _draw_kind(
    ax: Axes,
    result: SpectrumResult,
    chosen: np.ndarray,
    *,
    color: str,
    marker: str,
    theme: Theme,
    label: str,
) -> None:
    numbers = np.flatnonzero(chosen) + 1
    errors = np.nan_to_num(words.SURE * result.standard_errors[chosen])
    ax.errorbar(
        numbers,
        result.exponents[chosen],
        yerr=errors,
        linestyle="none",
        marker=marker,
        markersize=theme.marker * (0.9 if result.count <= _MANY else 0.6),
        color=color,
        markeredgecolor=INK if result.count <= _MANY else color,
        markeredgewidth=0.5,
        elinewidth=theme.line * 0.4,
        label=label,
        zorder=3,
    )


def _kinds(result: SpectrumResult) -> list[tuple[str, np.ndarray, str, str]]:
    """Return name, which exponents, colour and marker of what grows and of what fades."""
    finite = np.isfinite(result.exponents)
    grows = finite & (result.exponents > 0)
    kinds = [
        (f"grows: {int(grows.sum()):,}", grows, _GROWS, "^"),
        (f"fades: {int((finite & ~grows).sum()):,}", finite & ~grows, _FADES, "o"),
    ]
    return [kind for kind in kinds if kind[1].any()]


def _set_axes(ax: Axes, result: SpectrumResult) -> None:
    finite = np.isfinite(result.exponents)
    bars = np.nan_to_num(words.SURE * result.standard_errors[finite])
    runs = result.by_row[np.isfinite(result.by_row)]
    middle = result.exponents[finite]
    values = np.concatenate([middle - bars, middle + bars, runs, [0.0]])
    low, high = float(values.min()), float(values.max())
    pad = 0.08 * (high - low) or 0.1
    low, high = low - pad, high + pad
    if result.vanished:
        foot = high - (high - low) / (1.0 - _FLOOR)
        ax.axhspan(foot, low, facecolor=_FLOOR_COLOR, linewidth=0, zorder=0.5)
        ax.set_ylim(foot, high)
        ticks = MaxNLocator(6).tick_values(low, high)
        ax.set_yticks([tick for tick in ticks if low <= tick <= high])
    else:
        ax.set_ylim(low, high)
    ax.set_xlim(0.5 - 0.01 * result.count, result.count + 0.5 + 0.01 * result.count)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    ax.set_xlabel(f"number of the exponent (of {result.state_size:,})")
    ax.set_ylabel("Lyapunov exponent (nats per step)")


def _gone_text(result: SpectrumResult) -> str:
    exact = result.zero_reason.count("underflow") == 0
    kind = "exactly gone" if exact else "gone, or too small to tell"
    return f"{kind}: {result.vanished:,}"


def _legend(result: SpectrumResult, theme: Theme) -> list[tuple[Line2D, str]]:
    """Return what occurs: what grows, fades and is gone, the runs behind, the dimension."""
    legend = [(_dot(marker, color, theme), name) for name, _, color, marker in _kinds(result)]
    if result.vanished:
        legend.append((_dot("v", "white", theme), _gone_text(result)))
    if len(result.by_row) > 1:
        small = Line2D([], [], color=QUIET, linestyle="none", marker=".")
        legend.append((small, "each run"))
    dimension = result.kaplan_yorke_dimension
    if dimension is not None and dimension > 0 and math.isfinite(dimension):
        line = Line2D([], [], color=INK, linestyle=":", linewidth=theme.line * 0.6)
        legend.append((line, f"Kaplan-Yorke dimension {number_text(dimension, 4)}"))
    return legend


def _dot(marker: str, color: str, theme: Theme) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=marker,
        color=color,
        markersize=theme.marker,
        markeredgecolor=INK,
        markeredgewidth=0.5,
    )
