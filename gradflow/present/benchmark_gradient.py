"""The figure of gradient flow: log10 ||dL/dh_t|| over t, at three moments of training.

L is the loss on the answering steps: that is what has to come back over the delay.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gradflow.present import benchmark_words as words
from gradflow.present.benchmark_looks import legend_of, model_looks
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.log_axis import Scale, mark, scale_of
from gradflow.present.theme import Theme, describe, theme_context
from gradflow.records.base import FloatArray
from gradflow.records.benchmark import WIDTH, BenchmarkResult, BenchmarkRow

MOMENTS = ("start", "middle", "end")
SHOWN_PART = "h"


def gradient_figure(result: BenchmarkResult, *, style: str = "screen") -> Figure:
    """Return the profiles: a row for each delay, a column for each moment, a line for each model.

    The mean over seeds of the logarithm, for the hidden state and the common width. A gradient
    that is exactly zero is marked on a floor below.
    """
    looks = model_looks(result)
    with theme_context(style) as theme:
        texts = Words(
            f"How much of the answers' loss each state feels: {words.task_words(result)}",
            f"same width, mean over seeds of log10; {words.conditions(result)}",
            _caption(result),
        )
        legend = legend_of(list(looks.values()), theme, marked=False)
        grid = Grid(len(result.tasks), 3, tick_room=5.6, label_room=0.4 * theme.em)
        sheet = make_sheet(theme, grid, texts, legend=legend)
        for place, (facts, row) in enumerate(zip(result.tasks, sheet.axes, strict=True)):
            scale = _scale(result, facts.delay)
            for moment, ax in zip(MOMENTS, row, strict=True):
                ax.set_title(f"T={facts.delay}, {moment} of training", fontsize=theme.font)
                draw_profiles(ax, result, facts.delay, moment, scale=scale, theme=theme)
                if place == len(result.tasks) - 1:
                    ax.set_xlabel("step t")
            for ax in row[1:]:
                ax.tick_params(labelleft=False)
            row[0].set_ylabel(r"$\|\partial L\,/\,\partial h_t\|$  (log scale)")
        return describe(sheet.figure, f"Gradient norm over steps. {_caption(result)}")


def draw_profiles(
    ax: Axes, result: BenchmarkResult, delay: int, moment: str, *, scale: Scale, theme: Theme
) -> None:
    """Draw the profiles of one delay at one moment."""
    looks = model_looks(result)
    scale.apply(ax)
    for row in _rows(result, delay):
        values = mean_profile(result, row, moment)
        if values is None:
            continue
        look = looks[row.cell, row.init]
        steps = np.arange(1, len(values) + 1, dtype=np.float64)
        shown = np.where(np.isfinite(values), values, np.nan)
        ax.plot(steps, shown, label=look.name, **look.line(theme))
        zero = np.isneginf(values)
        if zero.any():
            mark(ax, steps[zero], height=0.04, marker="v", color=look.color)
    ax.set_xlim(1, max(2, result.at(delay).steps))
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))


def mean_profile(result: BenchmarkResult, row: BenchmarkRow, moment: str) -> FloatArray | None:
    """Return the mean over seeds of log10 ||dL/dh_t||, L on the answers; None without a profile.

    Of a cell without a part h, its first part's.
    """
    found = []
    for run in result.chosen_runs(row):
        for profile in run.profiles:
            if profile.moment == moment:
                part = next(iter(profile.recall_norms))
                part = SHOWN_PART if SHOWN_PART in profile.recall_norms else part
                found.append(profile.recall_norms[part])
    return np.mean(found, axis=0) if found else None


def _rows(result: BenchmarkResult, delay: int) -> list[BenchmarkRow]:
    return [row for row in result.compared(WIDTH) if row.delay == delay]


def _scale(result: BenchmarkResult, delay: int) -> Scale:
    """Return one scale for the moments of a delay."""
    found = [
        values
        for row in _rows(result, delay)
        for moment in MOMENTS
        if (values := mean_profile(result, row, moment)) is not None
    ]
    zeros = any(bool(np.isneginf(values).any()) for values in found)
    return scale_of(found, zeros=int(zeros))


def _caption(result: BenchmarkResult) -> str:
    """Return what of the gradient reaches the first step, at the longest delay."""
    longest = result.tasks[-1].delay
    parts = []
    for row in _rows(result, longest):
        ends = [mean_profile(result, row, moment) for moment in ("start", "end")]
        if ends[0] is None or ends[1] is None:
            continue
        first, last = (_reach(values) for values in ends if values is not None)
        parts.append(f"{words.row_name(row)} {first} at the start, {last} at the end")
    if not parts:
        return ""
    return f"At T={longest}, of the last step's gradient the first feels: {'; '.join(parts)}."


def _reach(values: FloatArray) -> str:
    """Return the first number's share of the last, from log10 of both.

    >>> _reach(np.array([-4.16, 0.0])), _reach(np.array([-579.4, -1.5]))
    ('10^-4.2', '10^-578')
    """
    share = float(values[0] - values[-1])
    if not np.isfinite(share):
        return "nothing"
    return f"10^{share:.0f}" if abs(share) >= 10.0 else f"10^{share:.2g}"
