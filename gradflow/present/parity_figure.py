"""The figure of `gradflow parity`: every error on a log axis, beside what is allowed."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gradflow.present.layout import Grid, Words, labels_that_fit, make_sheet
from gradflow.present.log_axis import DecadeFormatter, DecadeLocator
from gradflow.present.numbers import number_text
from gradflow.present.palette import INK, QUIET, hue
from gradflow.present.parity_words import (
    conditions,
    group_words,
    headline,
    quantity_words,
    short_name,
)
from gradflow.present.theme import Theme, describe, text_width, theme_context
from gradflow.records.parity import Comparison, ParityResult

_ZERO_ROOM = 1.2  # decades left of the smallest error, where exact zeros stand
_KINDS = ((hue(0), "o", "agrees", True), (hue(2), "D", "differs", False))
_EPSILON = -16.0  # log10 of a float64's last digit


def parity_figure(result: ParityResult, *, style: str = "screen") -> Figure:
    """Return a dot for each compared quantity: its largest error, left or right of the tolerance.

    An exact zero stands at the left edge as an open triangle, what is no number at the right one as
    a cross.

    Args:
        result: the parity.
        style: "screen" or "paper".
    """
    rows = result.comparisons
    names = [_name(comparison) for comparison in rows]
    with theme_context(style) as theme:
        grid = Grid(
            rows=1,
            columns=1,
            tick_room=max(text_width(name, theme.font) for name in names) / theme.em + 2.0,
            label_room=text_width("0.000000", theme.font) + theme.em,
            height=(1.5 * len(rows) + 1.0) * theme.em,
            titled=False,
        )
        title = f"{headline(result)}: {short_name(result.a)} and {short_name(result.b)}"
        words = Words(title, caption=_caption(result))
        sheet = make_sheet(theme, grid, words, legend=_legend(rows))
        draw_errors(sheet.axes[0][0], result, theme=theme)
        return describe(sheet.figure, _alt(result, names))


def _name(comparison: Comparison) -> str:
    return f"{group_words(comparison.group)} {quantity_words(comparison)}"


def draw_errors(ax: Axes, result: ParityResult, *, theme: Theme) -> None:
    """Draw every error into `ax`, whose x axis then holds log10 values."""
    rows = result.comparisons
    names = [_name(comparison) for comparison in rows]
    low, high = _limits(rows)
    for row, comparison in enumerate(rows):
        color = next(color for color, *_, passed in _KINDS if passed == comparison.passed)
        place, marker = _mark(comparison, low, high)
        face = color if marker in "oD" else "white"
        ax.plot(place, row, marker, markerfacecolor=face, markeredgecolor=color, clip_on=False)
        allowed = math.log10(comparison.tolerance * comparison.scale)
        ax.plot([allowed] * 2, [row - 0.4, row + 0.4], color=INK, linewidth=theme.line * 0.7)
        text = "0" if comparison.error == 0 else number_text(comparison.error, 2)
        ax.annotate(
            text,
            (1, row),
            xycoords=ax.get_yaxis_transform(),
            xytext=(0.5 * theme.font, 0),
            textcoords="offset points",
            va="center",
            color=INK if comparison.passed else color,
        )
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(low, high)
    fitting = labels_that_fit(ax, "10-0", theme.font * 0.9)
    ax.xaxis.set_major_locator(DecadeLocator(min(7, fitting), lowest=low + _ZERO_ROOM * 0.5))
    ax.xaxis.set_major_formatter(DecadeFormatter())
    ax.tick_params(axis="y", length=0, labelsize=theme.font)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("largest |A - B|")


def _limits(rows: tuple[Comparison, ...]) -> tuple[float, float]:
    logs = [math.log10(row.error) for row in rows if row.error]
    logs += [math.log10(row.tolerance * row.scale) for row in rows]
    return min([*logs, _EPSILON]) - _ZERO_ROOM, max([*logs, 0.0]) + 0.3


def _mark(comparison: Comparison, low: float, high: float) -> tuple[float, str]:
    if comparison.error is None:
        return high, "x"
    if comparison.error == 0:
        return low, "<"
    return math.log10(comparison.error), "o" if comparison.passed else "D"


def _legend(rows: tuple[Comparison, ...]) -> list[tuple[Line2D, str]]:
    shown: list[tuple[Line2D, str]] = []
    for color, marker, label, passed in _KINDS:
        if any(row.passed == passed for row in rows):
            shown.append((Line2D([], [], marker=marker, linestyle="none", color=color), label))
    if any(row.error == 0 for row in rows):
        zero = Line2D(
            [], [], marker="<", linestyle="none", markerfacecolor="white", markeredgecolor=QUIET
        )
        shown.append((zero, "exactly 0"))
    return [*shown, (Line2D([], [], color=INK, marker="|", linestyle="none"), "allowed")]


def _caption(result: ParityResult) -> str:
    return f"{conditions(result)[0].upper()}{conditions(result)[1:]}."


def _alt(result: ParityResult, names: list[str]) -> str:
    pairs = zip(names, result.comparisons, strict=True)
    parts = [
        f"{name} {'not a number' if one.error is None else number_text(one.error, 2)}"
        for name, one in pairs
    ]
    return f"Largest differences of A and B on a log axis. {result.verdict} {'; '.join(parts)}."
