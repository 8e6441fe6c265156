"""The figure of timings: seconds of every method over the width, on log axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullLocator

from gradflow.present.cell_titles import cell_title
from gradflow.present.end_labels import EndLabel, draw_end_labels
from gradflow.present.layout import Grid, Words, make_sheet, panel_title, titled_panels
from gradflow.present.palette import INK, hue, readable
from gradflow.present.speed_words import finding, seconds_text
from gradflow.present.theme import Theme, describe, inches_of, text_width, theme_context
from gradflow.records.speed import SpeedCase, SpeedResult, SpeedRow

# colour, marker and dashes of each method: the floor is a limit and no way
_LOOKS: dict[str, tuple[str, str, str]] = {
    "restart": (hue(7), "P", "-"),
    "chain": (hue(0), "o", "-"),
    "chain-vmap": (hue(1), "s", "-"),
    "unroll": (hue(3), "D", ":"),
    "gradflow": (hue(2), "^", "-"),
    "floor": (INK, "", "--"),
}
_ROOM = 0.12  # of the decades, above and below


def speed_figure(result: SpeedResult, *, style: str = "screen") -> Figure:
    """Return the figure: a panel for each cell, T, dtype and number of threads.

    Args:
        result: the timings.
        style: "screen" or "paper".
    """
    groups = list(panels_of_timings(result).values())
    with theme_context(style) as theme:
        columns = min(theme.most_columns, len(groups))
        room = max(text_width(method, theme.font) for method in _LOOKS) + 2.0 * theme.em
        if columns > 1:  # the times beside the next panel
            room += text_width("100 ms", theme.font) + 1.5 * theme.em
        grid = Grid(
            rows=math.ceil(len(groups) / columns),
            columns=columns,
            label_room=room,
            tall=1.2,
            between=6.4,
        )
        words = Words(
            title="How long the norms of a recurrent Jacobian take",
            subtitle="Frobenius norm of the joint ds_T/ds_0; medians of rounds in turns",
            caption=" ".join(finding(result, _widest(groups))),
        )
        grid = titled_panels(theme, grid, list(panels_of_timings(result)))
        sheet = make_sheet(theme, grid, words)
        panels = [ax for row in sheet.axes for ax in row]
        for index, (ax, rows) in enumerate(zip(panels, groups, strict=False)):
            draw_timings(ax, rows, theme=theme)
            ax.set_ylabel("time" if index % columns == 0 else "")
        for ax in panels[len(groups) :]:
            ax.set_axis_off()
        alt = "Line plot of seconds over hidden units for each method. " + words.caption
        return describe(sheet.figure, alt)


def panels_of_timings(result: SpeedResult) -> dict[str, list[SpeedRow]]:
    """Return the rows of each panel by its title: a cell, T, dtype and number of threads."""
    groups: dict[str, list[SpeedRow]] = {}
    for row in result.rows:
        groups.setdefault(_title(row.case), []).append(row)
    return groups


def _widest(groups: Sequence[Sequence[SpeedRow]]) -> list[SpeedCase]:
    """Return the widest case of each panel, for the words below."""
    return [max((row.case for row in rows), key=lambda case: case.hidden) for rows in groups]


def _title(case: SpeedCase) -> str:
    word = "thread" if case.threads == 1 else "threads"
    cell = cell_title(case.cell)
    return f"{cell}, T = {case.steps:,}, {case.dtype}, {case.threads} {word}"


def draw_timings(ax: Axes, rows: Sequence[SpeedRow], *, theme: Theme) -> None:
    """Draw the timings of one cell, T, dtype and number of threads into `ax`."""
    ends = {}
    for method in dict.fromkeys(row.method for row in rows):
        chosen = sorted((row.case.hidden, row.seconds) for row in rows if row.method == method)
        widths, seconds = zip(*chosen, strict=True)
        color, marker, line = _LOOKS[method]
        ax.plot(
            widths,
            seconds,
            color=color,
            marker=marker or ("_" if len(widths) == 1 else ""),
            linestyle=line,
            linewidth=theme.line,
            markersize=theme.marker,
            label=method,
        )
        ends[method] = seconds[-1]
    _set_axes(ax, rows)
    low, high = (math.log10(limit) for limit in ax.get_ylim())
    labels = [
        EndLabel(method, (math.log10(seconds) - low) / (high - low), readable(_LOOKS[method][0]))
        for method, seconds in ends.items()
    ]
    draw_end_labels(ax, labels, size=theme.font)
    ax.set_title(panel_title(_title(rows[0].case), inches_of(ax)[0], theme))


def _set_axes(ax: Axes, rows: Sequence[SpeedRow]) -> None:
    widths = sorted({row.case.hidden for row in rows})
    logs = [math.log10(row.seconds) for row in rows]
    pad = _ROOM * (max(logs) - min(logs)) + 0.1
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_ylim(10 ** (min(logs) - pad), 10 ** (max(logs) + pad))
    ax.set_xlim(widths[0] / 2**0.25, widths[-1] * 2**0.25)
    ax.xaxis.set_major_locator(FixedLocator(widths))
    ax.xaxis.set_major_formatter(FixedFormatter([f"{width:,}" for width in widths]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds_text(value)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("hidden units")
