"""How far a live candidate takes the decay from its trend: the rate over the candidate's gain.

Marks are measured rates, lines the exact rate ln rho of a step at the zero state (from the record),
dashed lines the trend, which knows nothing of the candidate. The axis is the factor per step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gradflow.present import departure_words as words
from gradflow.present.decay_words import curve_name, curve_symbol
from gradflow.present.departure_words import Sweep, SweepLine
from gradflow.present.end_labels import EndLabel, draw_end_labels
from gradflow.present.layout import Grid, Words, make_sheet, panel_title, titled_panels
from gradflow.present.log_axis import Scale, scale_of
from gradflow.present.palette import INK, QUIET, gate_look
from gradflow.present.theme import (
    Theme,
    describe,
    inches_of,
    text_width,
    theme_context,
)
from gradflow.records import DecayResult
from gradflow.records.base import FloatArray

_DASHES = (0, (3.2, 2.2))
_LN10 = math.log(10.0)


def departure_figure(result: DecayResult, *, style: str = "screen") -> Figure:
    """Return the figure of a sweep over candidate gains: a panel per cell, a colour per gate value.

    Args:
        result: what `gradflow decay` measured, at three candidate gains or more.
        style: "screen" or "paper".
    """
    sweeps = words.sweeps_of(result)
    with theme_context(style) as theme:
        scale = departure_scale(sweeps)
        columns = min(theme.most_columns, max(1, len(sweeps)))
        room = max((text_width(text, theme.font * 0.95) for text in _end_texts(sweeps)), default=0)
        grid = Grid(
            rows=max(1, math.ceil(len(sweeps) / columns)),
            columns=columns,
            label_room=room + 1.6 * theme.em,
            tall=1.15,
            between=5.6,
        )
        texts = Words(words.TITLE, words.conditions(result), words.caption_of(result))
        grid = titled_panels(theme, grid, [sweep.title for sweep in sweeps])
        sheet = make_sheet(theme, grid, texts, legend=_legend(sweeps, theme))
        axes = [ax for row in sheet.axes for ax in row]
        for index, (ax, sweep) in enumerate(zip(axes, sweeps, strict=False)):
            draw_departure(ax, sweep, theme=theme, scale=scale)
            if index % columns:
                ax.set_ylabel("")
                ax.tick_params(labelleft=False)
        for ax in axes[len(sweeps) :]:
            ax.set_axis_off()
        return describe(sheet.figure, words.alt_of(result))


def departure_scale(sweeps: Sequence[Sweep]) -> Scale:
    """Return y limits (log10 of the factor per step) that hold all rates, trends and 1."""
    rates: list[FloatArray] = [np.zeros(1)]
    for line in (line for sweep in sweeps for line in sweep.lines):
        rates += [line.rates, np.array([line.trend_rate])]
        rates += [] if line.exact is None else [line.exact.rate]
    return scale_of([rate / _LN10 for rate in rates])


def draw_departure(ax: Axes, sweep: Sweep, *, theme: Theme, scale: Scale) -> None:
    """Draw one cell's sweep into `ax`, whose y axis then holds log10 of the factor per step."""
    gains = np.concatenate([line.gains for line in sweep.lines])
    low, high = float(gains.min()), float(gains.max())
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    scale.apply(ax)
    ax.set_title(panel_title(sweep.title, inches_of(ax)[0], theme), parse_math=False)
    ax.axhline(0.0, color=QUIET, linewidth=theme.line * 0.5, zorder=1.5)
    labels = []
    for line in sweep.lines:
        _draw_line(ax, line, theme, ends=(low, high))
        last = line.rates[-1] if line.exact is None else line.exact.rate[-1]
        if math.isfinite(last):
            labels.append(EndLabel(curve_name(line.curves[0]), scale.share(last / _LN10)))
    draw_end_labels(ax, labels, size=theme.font * 0.95)
    ax.set_xlabel("candidate gain")
    ax.set_ylabel("factor per step  (log scale)")


def _draw_line(ax: Axes, line: SweepLine, theme: Theme, *, ends: tuple[float, float]) -> None:
    look = gate_look(line.gate_value)
    name = curve_name(line.curves[0])
    ax.plot(
        ends,
        [line.trend_rate / _LN10] * 2,
        color=look.dark,
        linestyle=_DASHES,
        linewidth=theme.line * 0.6,
        zorder=2,
        label=f"trend {name}",
    )
    if line.exact is not None:
        rate = np.where(np.isfinite(line.exact.rate), line.exact.rate, np.nan)
        ax.plot(
            line.exact.candidate_gain,
            rate / _LN10,
            color=look.color,
            linewidth=theme.line,
            zorder=2.5,
            label=f"exact {name}",
        )
    ax.plot(
        line.gains,
        line.rates / _LN10,
        color=look.color,
        linestyle="none" if line.exact is not None else ":",
        marker=look.marker,
        markersize=theme.marker * 1.2,
        markerfacecolor=look.face,
        markeredgecolor=look.dark,
        markeredgewidth=0.7,
        clip_on=False,
        zorder=3,
        label=name,
    )


def _end_texts(sweeps: Sequence[Sweep]) -> list[str]:
    return [curve_name(line.curves[0]) for sweep in sweeps for line in sweep.lines]


def _legend(sweeps: Sequence[Sweep], theme: Theme) -> list[tuple[Line2D, str]]:
    lines = [line for sweep in sweeps for line in sweep.lines]
    mark = Line2D([], [], color=INK, linestyle="none", marker="o", ms=theme.marker * 1.2)
    legend = [(mark, "measured")]
    exact = dict.fromkeys(words.exact_formula(sweep) for sweep in sweeps if sweep.is_exact)
    if exact:
        solid = Line2D([], [], color=INK, lw=theme.line)
        legend.append((solid, f"exact at the zero state: {', '.join(exact)}"))
    symbols = ", ".join(dict.fromkeys(f"${curve_symbol(line.curves[0])}$" for line in lines))
    dashed = Line2D([], [], color=INK, linestyle=_DASHES, lw=theme.line * 0.6)
    return [*legend, (dashed, f"trend: {symbols}")]
