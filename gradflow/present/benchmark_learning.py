"""The figure of learning curves: validation loss over updates, with the memoryless baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gradflow.present import benchmark_words as words
from gradflow.present.benchmark_looks import ModelLook, legend_of, model_looks
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.palette import INK
from gradflow.present.theme import Theme, describe, theme_context
from gradflow.records.base import FloatArray
from gradflow.records.benchmark import COMPARISONS, BenchmarkResult, BenchmarkRow, TaskFacts
from gradflow.records.benchmark_runs import LearningCurve

BASELINE: tuple[int, tuple[float, float]] = (0, (3.2, 2.2))


def learning_figure(result: BenchmarkResult, *, style: str = "screen") -> Figure:
    """Return learning curves: a row of panels for each delay, a column for each comparison.

    Thick lines are means over seeds, thin ones the seeds; the dashed line is a memoryless model.
    """
    looks = model_looks(result)
    with theme_context(style) as theme:
        legend = legend_of(list(looks.values()), theme, marked=False)
        legend.append((baseline_line(theme), "no memory"))
        texts = Words(words.title(result), words.conditions(result), words.finding(result))
        grid = Grid(len(result.tasks), 2, tick_room=5.2, label_room=0.8 * theme.em)
        sheet = make_sheet(theme, grid, texts, legend=legend)
        for place, (facts, row) in enumerate(zip(result.tasks, sheet.axes, strict=True)):
            for comparison, ax in zip(COMPARISONS, row, strict=True):
                ax.set_title(f"T={facts.delay}, {comparison}", fontsize=theme.font)
                draw_learning(ax, result, facts, comparison, theme=theme)
                if place == len(result.tasks) - 1:
                    ax.set_xlabel("updates")
            row[0].set_ylabel(f"validation {words.loss_name(result)}")
            _share_height(row)
        return describe(sheet.figure, _alt(result))


def draw_learning(
    ax: Axes, result: BenchmarkResult, facts: TaskFacts, comparison: str, *, theme: Theme
) -> None:
    """Draw the curves of one delay and comparison into `ax`."""
    looks = model_looks(result)
    ax.axhline(facts.recall_loss, color=INK, linewidth=theme.line * 0.55, linestyle=BASELINE)
    top = facts.recall_loss
    for row in result.compared(comparison):
        if row.delay == facts.delay:
            top = max(top, _draw_model(ax, result, row, looks[row.cell, row.init], theme))
    ax.set_ylim(0.0, min(1.15 * top, 2.0 * facts.recall_loss))
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _share_height(row: Sequence[Axes]) -> None:
    """Give the panels of a row one height, which the first of them names."""
    top = max(ax.get_ylim()[1] for ax in row)
    for place, ax in enumerate(row):
        ax.set_ylim(0.0, top)
        ax.tick_params(labelleft=place == 0)


def baseline_line(theme: Theme) -> Line2D:
    """Return the legend's line of a memoryless model."""
    return Line2D([], [], color=INK, linewidth=theme.line * 0.55, linestyle=BASELINE)


def mean_curve(curves: Sequence[LearningCurve], name: str) -> tuple[FloatArray, FloatArray]:
    """Return updates and the mean of a score over runs; a run that ended keeps its last value."""
    updates = np.unique(np.concatenate([curve.updates for curve in curves])).astype(np.float64)
    values = [
        np.interp(updates, curve.updates.astype(np.float64), getattr(curve, name))
        for curve in curves
    ]
    return updates, np.mean(values, axis=0)


def _draw_model(
    ax: Axes, result: BenchmarkResult, row: BenchmarkRow, look: ModelLook, theme: Theme
) -> float:
    """Draw one model; return the highest value of its mean."""
    curves = [run.curve for run in result.chosen_runs(row) if run.curve is not None]
    if not curves:
        return 0.0
    if len(curves) > 1:
        for curve in curves:
            ax.plot(
                curve.updates, curve.recall_loss, color=look.color, lw=theme.line * 0.3, alpha=0.45
            )
    updates, mean = mean_curve(curves, "recall_loss")
    ax.plot(updates, mean, label=look.name, zorder=3, **look.line(theme))
    return float(mean.max())


def _alt(result: BenchmarkResult) -> str:
    return (
        f"Validation {words.loss_name(result)} over updates for each delay, at the same width and "
        f"at the nearest parameter count, beside a model without memory. {words.finding(result)}"
    )
