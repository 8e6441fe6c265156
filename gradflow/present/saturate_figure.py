"""The saturation map: a tile per cell, dtype and magnitude, with the gravest verdict of its trials.

A verdict is told by a sign, a hatch and a lightness as well as by its colour: x for a fault (the
darkest), an infinity for an honest overflow (hatched), a percentage where all is finite.
"""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from gradflow.present import saturate_words as words
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.palette import INK, QUIET
from gradflow.present.saturate_words import Tile
from gradflow.present.theme import Theme, describe, shortened, text_width, theme_context
from gradflow.records import SaturateResult

FAULT, OVERFLOW, FULL, NOTHING = "#a01a00", "#ffc65c", "#9fb4cf", "#ffffff"
_TILE_HEIGHT = 2.3  # em
_WIDEST_LABEL = 18.0  # em


def saturate_figure(result: SaturateResult, *, style: str = "screen") -> Figure:
    """Return the map: a panel per dtype, a row per cell and implementation, magnitudes across.

    Args:
        result: what `gradflow saturate` found.
        style: "screen" or "paper".
    """
    subjects, dtypes = words.subjects_of(result), words.dtypes_of(result)
    with theme_context(style) as theme:
        labels = _labels(result, theme)
        columns = max(1, min(len(dtypes), 4 if len(words.magnitudes_of(result)) <= 4 else 2))
        grid = Grid(
            rows=max(1, math.ceil(len(dtypes) / columns)),
            columns=columns,
            tick_room=_label_room(labels, theme),
            height=max(1, len(subjects)) * _TILE_HEIGHT * theme.em,
        )
        texts = Words(
            title="What stays finite when gates, inputs and states are huge",
            subtitle=words.conditions(result),
            caption=" ".join(filter(None, [words.summary(result), words.first_fault(result)])),
        )
        sheet = make_sheet(theme, grid, texts, legend=_legend(result))
        axes = [ax for row in sheet.axes for ax in row]
        for index, (dtype, ax) in enumerate(zip(dtypes, axes, strict=False)):
            draw_saturation(ax, result, dtype, theme=theme)
            if index % columns:
                ax.set_yticklabels([])
        for ax in axes[: max(0, len(dtypes) - columns)]:
            ax.set_xlabel("")
        for ax in axes[len(dtypes) :]:
            ax.set_axis_off()
        return describe(sheet.figure, _alt(result))


def draw_saturation(ax: Axes, result: SaturateResult, dtype: str, *, theme: Theme) -> None:
    """Draw the tiles of one dtype into `ax`, a row per cell and implementation."""
    subjects, magnitudes = words.subjects_of(result), words.magnitudes_of(result)
    ax.set_title(dtype)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlim(-0.5, max(1, len(magnitudes)) - 0.5)
    ax.set_ylim(max(1, len(subjects)) - 0.5, -0.5)
    ax.set_xticks(range(len(magnitudes)), [words.magnitude_title(m) for m in magnitudes])
    ax.set_yticks(range(len(subjects)), _labels(result, theme))
    ax.set_xlabel("magnitude put in")
    ax.tick_params(axis="x", pad=theme.font)
    for label in ax.get_xticklabels():
        label.set_verticalalignment("baseline")  # 10^2 and max on one line
    for row, subject in enumerate(subjects):
        for column, magnitude in enumerate(magnitudes):
            tile = words.tile_of(result, subject, dtype, magnitude)
            if tile is not None:
                _draw_tile(ax, tile, at=(column, row), theme=theme)


def _labels(result: SaturateResult, theme: Theme) -> list[str]:
    widest = _WIDEST_LABEL * theme.em
    titles = [words.subject_title(subject) for subject in words.subjects_of(result)]
    return [shortened(title, widest, theme.font) for title in titles]


def _draw_tile(ax: Axes, tile: Tile, *, at: tuple[int, int], theme: Theme) -> None:
    column, row = at
    patch = Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, **_look(tile))
    patch.set_label(tile.text)
    ax.add_patch(patch)
    ax.text(
        column,
        row,
        _sign(tile),
        ha="center",
        va="center",
        fontsize=theme.small,
        color="white" if tile.verdict == "fault" else INK,
        fontweight="bold" if tile.verdict == "fault" else "normal",
        bbox={"facecolor": OVERFLOW, "edgecolor": "none", "pad": 0.8}
        if tile.verdict == "overflow"
        else None,
    )


def _look(tile: Tile) -> dict[str, Any]:
    """Return fill, edge and hatch of a tile."""
    if tile.verdict == "fault":
        return {"facecolor": FAULT, "edgecolor": FAULT, "linewidth": 0.6}
    if tile.verdict == "overflow":
        return {"facecolor": OVERFLOW, "edgecolor": "#c98a1a", "hatch": "////", "linewidth": 0.6}
    if tile.verdict == "not applicable":
        return {"facecolor": NOTHING, "edgecolor": "#d5d8dc", "linestyle": ":", "linewidth": 0.8}
    return {"facecolor": _shade(tile.zero_share), "edgecolor": FULL, "linewidth": 0.6}


def _shade(share: float | None) -> str:
    """Return the fill of a finite tile: the more derivatives are zero, the darker."""
    part = 0.0 if share is None else share
    pairs = zip(to_rgb("#f4f7fb"), to_rgb(FULL), strict=True)
    red, green, blue = ((1 - part) * light + part * dark for light, dark in pairs)
    return to_hex((red, green, blue))


def _sign(tile: Tile) -> str:
    if tile.verdict == "fault":
        return f"\N{MULTIPLICATION SIGN} {tile.count}"
    if tile.verdict == "overflow":
        return f"\N{INFINITY} {tile.count}"
    if tile.verdict == "not applicable":
        return "n/a"
    return "ok" if tile.zero_share is None else words.percent(tile.zero_share)


def _legend(result: SaturateResult) -> list[tuple[Patch, str]]:
    """Return what the tiles mean, for those that occur."""
    found = {row.verdict for row in result.rows}
    shown = any(row.zero_slope_fraction is not None for row in result.rows)
    share = "; %: gate derivatives exactly zero (saturated, not broken)" if shown else ""
    entries: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("ok", {"facecolor": _shade(0.5), "edgecolor": FULL}, f"all finite{share}"),
        (
            "fault",
            {"facecolor": FAULT},
            "\N{MULTIPLICATION SIGN} fault: the true value fits (1/6: in one of six trials)",
        ),
        (
            "overflow",
            {"facecolor": OVERFLOW, "edgecolor": "#c98a1a", "hatch": "////"},
            "\N{INFINITY} honest overflow: the true value does not fit (1/6: in one of six trials)",
        ),
        (
            "not applicable",
            {"facecolor": NOTHING, "edgecolor": QUIET, "linestyle": ":"},
            "n/a: the dtype has no such number, or does not run",
        ),
    )
    return [(Patch(**look), text) for verdict, look, text in entries if verdict in found]


def _label_room(labels: list[str], theme: Theme) -> float:
    """Return the em that the names of the subjects need."""
    widest = max((text_width(label, theme.font) for label in labels), default=0.0)
    return widest / theme.em + 1.6


def _alt(result: SaturateResult) -> str:
    """Return the alt text: the kind of chart, and each subject's tiles that are not all finite."""
    parts = []
    for subject in words.subjects_of(result):
        troubles = [
            f"{dtype} {magnitude or 'as given'} {tile.text}"
            for dtype in words.dtypes_of(result)
            for magnitude in words.magnitudes_of(result)
            if (tile := words.tile_of(result, subject, dtype, magnitude)) is not None
            and tile.verdict in ("fault", "overflow")
        ]
        parts.append(f"{words.subject_title(subject)}: {', '.join(troubles) or 'all finite'}.")
    what = "Map of verdicts by cell, number format and magnitude."
    return " ".join([what, words.summary(result), *parts])
