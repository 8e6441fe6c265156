"""The blocks of the joint Jacobian beside the direct path: which part of the state feels which.

For an LSTM they are four: h and c at T by h and c at 0. Gate products know of one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gradflow.present import paths_words as words
from gradflow.present.layout import Grid, Words, make_sheet, panel_title, titled_panels
from gradflow.present.log_axis import Scale, mark, scale_of
from gradflow.present.numbers import log10_text
from gradflow.present.palette import INK, block_look, gate_look
from gradflow.present.theme import Theme, describe, inches_of, theme_context
from gradflow.present.thinning import marker_indices
from gradflow.records.paths import BLOCK, CellPaths, PathLine

MOST_PANELS, COLUMNS = 9, 3
_DASHES = (0, (3.2, 2.2))
_MARKS = 5
JOINT = "joint"


def blocks_of(paths: CellPaths) -> list[PathLine]:
    """Return the blocks of a cell's joint Jacobian, without the whole; none of one-part states."""
    blocks = [line for line in paths.lines if line.path.startswith(BLOCK)]
    return [line for line in blocks if line.path != BLOCK + JOINT]


def with_blocks(all_paths: Sequence[CellPaths]) -> list[CellPaths]:
    """Return the cells whose state has several parts."""
    return [paths for paths in all_paths if len(blocks_of(paths)) > 1]


def blocks_figure(all_paths: Sequence[CellPaths], *, style: str = "screen") -> Figure:
    """Return the figure: a panel per cell, a line with its own mark per block, direct dashed.

    Args:
        all_paths: the paths of a decay; cells without blocks are left out.
        style: "screen" or "paper".
    """
    fitting = with_blocks(all_paths)
    shown = fitting[:MOST_PANELS]
    with theme_context(style) as theme:
        columns = min(COLUMNS, max(1, len(shown)))
        rows = [shown[start : start + columns] for start in range(0, len(shown), columns)]
        room = (4.6 if columns > 1 else 0.8) * theme.em
        grid = Grid(rows=max(1, len(rows)), columns=columns, label_room=room)
        left = len(fitting) - len(shown)
        more = f" The table has {left} more." if left else ""
        texts = Words(
            "Which part of the state feels which",
            "norm of each block of ds_T/ds_0, s = (h, c)",
            _caption(shown) + more,
        )
        names = [words.name(paths, short=True) for paths in shown]
        grid = titled_panels(theme, grid, names)
        sheet = make_sheet(theme, grid, texts, legend=_legend(shown, theme))
        for row, axes in zip(rows, sheet.axes, strict=False):
            for paths, ax in zip(row, axes, strict=False):
                draw_blocks(ax, paths, theme=theme)
            for ax in axes[len(row) :]:
                ax.set_axis_off()
        for ax in sheet.axes[-1][: len(rows[-1]) if rows else 0]:
            ax.set_xlabel("T (steps)")
        alt = "Line charts of the blocks of the joint Jacobian over T, on log axes."
        return describe(sheet.figure, " ".join([alt, *map(_sentence, shown)]))


def draw_blocks(ax: Axes, paths: CellPaths, *, theme: Theme) -> None:
    """Draw one cell's blocks into `ax`, whose y axis then holds log10 values."""
    blocks = blocks_of(paths)
    direct = paths.line("direct")
    zeros = [line for line in blocks if np.isneginf(line.log10_norm[1:]).any()]
    arrays = [line.log10_norm for line in (*blocks, *([] if direct is None else [direct]))]
    scale = scale_of([np.zeros(1), *arrays], zeros=len(zeros))
    scale.apply(ax)
    ax.set_xlim(0, max(int(paths.steps[-1]), 1))
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    title = panel_title(words.name(paths, short=True), inches_of(ax)[0], theme)
    ax.set_title(title, parse_math=False)
    for index, line in enumerate(blocks):
        values = np.where(np.isfinite(line.log10_norm), line.log10_norm, np.nan)
        style = {
            **_style(line, theme),
            "markevery": marker_indices(
                paths.steps, _MARKS, shift=index / max(1, len(blocks))
            ).tolist(),
        }
        ax.plot(paths.steps, values, label=block_name(line), zorder=2.5, **style)
    if direct is not None:
        values = np.where(np.isfinite(direct.log10_norm), direct.log10_norm, np.nan)
        dark = gate_look(paths.gate_value).dark
        ax.plot(
            paths.steps,
            values,
            color=dark,
            linestyle=_DASHES,
            linewidth=theme.line * 0.7,
            zorder=3,
            label="direct",
        )
    _mark_zeros(ax, paths, zeros, scale)


def block_name(line: PathLine) -> str:
    """Return a block as mathtext: which part at T by which part at 0."""
    row, column = line.path.removeprefix(BLOCK).split(",")
    return rf"$\partial {row}_T\,/\,\partial {column}_0$"


def _mark_zeros(ax: Axes, paths: CellPaths, zeros: Sequence[PathLine], scale: Scale) -> None:
    """Mark where a block is zero at the floor, each in a row of its own."""
    for row, line in enumerate(zeros):
        at = paths.steps[np.isneginf(line.log10_norm)].astype(np.float64)
        height = scale.row_height(row)
        color = block_look(line.path.removeprefix(BLOCK)).color
        mark(ax, at[marker_indices(at, 6)], height=height, marker="v", color=color)


def _style(line: PathLine, theme: Theme) -> dict[str, Any]:
    look = block_look(line.path.removeprefix(BLOCK))
    return {
        "color": look.color,
        "linestyle": look.line,
        "linewidth": theme.line * 0.8,
        "marker": look.marker,
        "markersize": theme.marker * 0.9,
        "markeredgecolor": INK,
        "markeredgewidth": 0.4,
    }


def _legend(shown: Sequence[CellPaths], theme: Theme) -> list[tuple[Line2D, str]]:
    drawn = {line.path: line for paths in shown for line in blocks_of(paths)}
    legend = [(Line2D([], [], **_style(line, theme)), block_name(line)) for line in drawn.values()]
    if any(paths.line("direct") is not None for paths in shown):
        dashed = Line2D([], [], color=INK, linestyle=_DASHES, lw=theme.line * 0.7)
        legend.append((dashed, "direct: product of keep gates"))
    every = [line for paths in shown for line in blocks_of(paths)]
    if any(np.isneginf(line.log10_norm[1:]).any() for line in every):
        zero = Line2D([], [], color=INK, linestyle="none", marker="v", mfc="white")
        legend.append((zero, "exactly zero"))
    return legend


def _caption(shown: Sequence[CellPaths]) -> str:
    """Return the finding: what the product of keep gates leaves out, where it leaves out most."""
    judged = [paths for paths in shown if paths.departure is not None]
    if not judged:
        return ""
    worst = max(judged, key=lambda paths: abs(paths.departure or 0.0))
    return f"The product of keep gates speaks of dc_T/dc_0 alone. {_sentence(worst)}"


def _sentence(paths: CellPaths) -> str:
    """Return the log10 norms of a cell's blocks at the last step."""
    ends = [
        f"{line.path.removeprefix(BLOCK)} {log10_text(float(line.log10_norm[-1]), 4)}"
        for line in blocks_of(paths)
    ]
    return f"{words.name(paths)}, log10 at T={int(paths.steps[-1])}: {', '.join(ends)}."
