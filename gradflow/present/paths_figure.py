"""The figure of paths: full, direct and rest in a panel per cell, and each gate's ablation."""

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
from gradflow.present.numbers import signed_text
from gradflow.present.palette import INK, Look, SeriesLook, gate_look, gate_name_look
from gradflow.present.theme import (
    Theme,
    describe,
    inches_of,
    text_width,
    theme_context,
)
from gradflow.present.thinning import marker_indices
from gradflow.records.paths import WITHOUT, CellPaths, PathLine

MOST_PANELS, COLUMNS = 12, 3
_DASHES, _DOTS = (0, (3.2, 2.2)), (0, (1.0, 1.4))
_ROOM = 0.85  # of a panel's width, for its verdict
_TICKS = 4.6  # em that the next panel's tick labels take
_APART = 0.006  # share of the axis: lines nearer than that are one line to the eye


def paths_figure(all_paths: Sequence[CellPaths], *, style: str = "screen") -> Figure:
    """Return the figure: a panel per cell with its verdict, on log axes.

    Full is a solid line in the gate value's colour, direct dashed, rest dotted; the full path with
    one gate taken as a constant is a thin line in that gate's colour, drawn where it leaves the
    full one. Exact zeros
    are triangles at the floor. Of many cells the first twelve are shown.
    """
    shown = list(all_paths[:MOST_PANELS])
    with theme_context(style) as theme:
        columns = min(COLUMNS, max(1, len(shown)))
        rows = [shown[start : start + columns] for start in range(0, len(shown), columns)]
        room = (_TICKS if columns > 1 else 0.8) * theme.em
        grid = Grid(rows=max(1, len(rows)), columns=columns, label_room=room)
        left = len(all_paths) - len(shown)
        more = f" The table has {left} more." if left else ""
        texts = Words(
            title="Where the gradient travels",
            subtitle=_subtitle(shown),
            caption=words.answer(all_paths) + more,
        )
        grid = titled_panels(theme, grid, [words.name(paths, short=True) for paths in shown])
        sheet = make_sheet(theme, grid, texts, legend=_legend(shown, theme))
        for row, axes in zip(rows, sheet.axes, strict=False):
            for paths, ax in zip(row, axes, strict=False):
                draw_paths(ax, paths, theme=theme)
            for ax in axes[len(row) :]:
                ax.set_axis_off()
        for ax in sheet.axes[-1]:
            ax.set_xlabel("T (steps)")
        return describe(sheet.figure, _alt(all_paths))


def draw_paths(ax: Axes, paths: CellPaths, *, theme: Theme) -> None:
    """Draw one cell's paths into `ax`, whose y axis then holds log10 values."""
    lines = _drawn(paths)
    zeros = [line for line in lines if _is_zero(line)]
    scale = scale_of([np.zeros(1), *(line.log10_norm for line in lines)], zeros=len(zeros))
    scale.apply(ax)
    last = int(paths.steps[-1])
    ax.set_xlim(0, max(last, 1))
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    title = panel_title(words.name(paths, short=True), inches_of(ax)[0], theme)
    ax.set_title(title, parse_math=False)
    for line in lines:
        _draw_line(ax, paths, line, theme)
    for row, line in enumerate(zeros):
        at = paths.steps[np.isneginf(line.log10_norm)].astype(np.float64)
        kept = at[marker_indices(at, 6)]
        height = scale.row_height(row)
        mark(ax, kept, height=height, marker="v", color=_mark_color(line))
        _name_zero(ax, line, height, theme)
    _write_verdict(ax, paths, scale, theme)


def _is_zero(line: PathLine) -> bool:
    """Return whether the line has zeros that matter: at step 1 there is no detour yet."""
    return bool(np.isneginf(line.log10_norm[1:]).any() or np.isneginf(line.log10_norm).all())


def _name_zero(ax: Axes, line: PathLine, height: float, theme: Theme) -> None:
    """Say beside the marks of zeros which line is zero, and why."""
    kind = "underflows" if line.zero_reason == "underflow" else "exactly zero"
    ax.text(
        0.97,
        height,
        f"{_called(line)}: {kind}",
        transform=ax.transAxes,
        fontsize=theme.small,
        ha="right",
        va="center",
        parse_math=False,
        bbox={"facecolor": "#f1f2f4", "edgecolor": "none", "pad": 0.8},
        zorder=5,
    )


def _called(line: PathLine) -> str:
    """Return how a line is called: rest, or "candidate constant"."""
    if line.path.startswith(WITHOUT):
        return words.constant(line.path.removeprefix(WITHOUT))
    return line.path


def _drawn(paths: CellPaths) -> list[PathLine]:
    """Return the lines to draw: of the ablations those that leave the full path."""
    full = paths.line("full")
    main = [line for name in ("full", "direct", "rest") if (line := paths.line(name)) is not None]
    if full is None:
        return main
    arrays = [line.log10_norm for line in (*main, *words.ablations(paths))]
    scale = scale_of([np.zeros(1), *arrays])
    return [
        *(line for line in words.ablations(paths) if not _same(line, full, scale)),
        *main,
    ]


def _same(one: PathLine, other: PathLine, scale: Scale) -> bool:
    finite = np.isfinite(one.log10_norm)
    if not np.array_equal(finite, np.isfinite(other.log10_norm)):
        return False
    apart = np.abs(one.log10_norm[finite] - other.log10_norm[finite])
    return bool((apart <= _APART * (scale.high - scale.low)).all())


def _draw_line(ax: Axes, paths: CellPaths, line: PathLine, theme: Theme) -> None:
    values = np.where(np.isfinite(line.log10_norm), line.log10_norm, np.nan)
    value = paths.candidate_gain if paths.gate_value is None else paths.gate_value  # an RNN's gain
    style = _style(line, gate_look(value), theme)
    if line.path.startswith(WITHOUT):
        style["markevery"] = marker_indices(paths.steps, 5).tolist()
    ax.plot(paths.steps, values, label=line.path, **style)


def _style(line: PathLine, look: Look, theme: Theme) -> dict[str, Any]:
    """Return how a line is drawn; `look` is that of the panel's gate value."""
    if line.path == "full":
        return {"color": look.color, "linewidth": theme.line * 1.1, "zorder": 3}
    if line.path == "direct":
        width = theme.line * 0.7
        return {"color": look.dark, "linestyle": _DASHES, "linewidth": width, "zorder": 3.5}
    if line.path == "rest":
        return {"color": INK, "linestyle": _DOTS, "linewidth": theme.line, "zorder": 3.2}
    gate = _gate_look(line)
    return {
        "color": gate.color,
        "linewidth": theme.line * 0.6,
        "marker": gate.marker,
        "markersize": theme.marker * 0.8,
        "markeredgecolor": INK,
        "markeredgewidth": 0.4,
        "zorder": 2.5,
    }


def _mark_color(line: PathLine) -> str:
    return _gate_look(line).color if line.path.startswith(WITHOUT) else INK


def _gate_look(line: PathLine) -> SeriesLook:
    return gate_name_look(line.path.removeprefix(WITHOUT))


def _write_verdict(ax: Axes, paths: CellPaths, scale: Scale, theme: Theme) -> None:
    departure = paths.departure
    if departure is None:
        return
    model, verdict = words.model(paths), words.verdict(paths)
    text = {
        "yes": f"{model} is right",
        "in rate": f"{model} has the right rate",
        "no": f"{model} is off by {signed_text(departure)} nats/step",
    }[verdict]
    size = theme.font * 0.95
    if text_width(text, size) > _ROOM * inches_of(ax)[0]:  # beside the line's end
        text, size = text.removeprefix(f"{model} is "), theme.small
    ax.text(
        0.03,
        scale.floor + 0.04,
        text,
        transform=ax.transAxes,
        fontsize=size,
        va="bottom",
        parse_math=False,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
        zorder=5,
    )


def _legend(shown: Sequence[CellPaths], theme: Theme) -> list[tuple[Line2D, str]]:
    """Return what the lines are, for those that are drawn somewhere."""
    drawn = {line.path: line for paths in shown for line in _drawn(paths)}
    named = {
        "full": "full",
        "direct": "direct: product of keep gates",
        "rest": "rest: full less direct",
    }
    order = [path for path in named if path in drawn] + sorted(set(drawn) - set(named))
    legend = []
    for path in order:
        style = {
            key: value
            for key, value in _style(drawn[path], gate_look(None), theme).items()
            if key != "zorder"
        }
        text = named.get(path, f"full, {_called(drawn[path])}")
        legend.append((Line2D([], [], **style), text))
    if any(_is_zero(line) for paths in shown for line in _drawn(paths)):
        legend.append(
            (Line2D([], [], color=INK, linestyle="none", marker="v", mfc="white"), "zero")
        )
    return legend


def _subtitle(shown: Sequence[CellPaths]) -> str:
    if not shown:
        return ""
    first = shown[0]
    states = dict.fromkeys("s" if paths.state == "joint" else paths.state for paths in shown)
    what = " or ".join(f"d{state}_T/d{state}_0" for state in states)
    norm = "spectral" if first.norm == "spectral" else "Frobenius"
    return f"{norm} norm of {what} along each path; T up to {int(first.steps[-1]):,}"


def _alt(all_paths: Sequence[CellPaths]) -> str:
    sentences = [sentence for paths in all_paths if (sentence := words.sentence(paths))]
    return " ".join(
        [
            "Line charts of the gradient's norm by path, on log axes.",
            words.answer(all_paths),
            *sentences,
        ]
    )
