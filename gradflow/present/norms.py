"""The figure of any norms by step or lag: a log axis on which nothing is dropped unseen.

Zeros stand on a floor below the axis, infinities and what is not a number at its top, and each
kind is counted in the legend.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from gradflow.present.end_labels import EndLabel, draw_end_labels
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.log_axis import CEILING, mark, scale_of
from gradflow.present.numbers import number_text
from gradflow.present.palette import INK, hue
from gradflow.present.theme import Theme, describe, text_width, theme_context
from gradflow.present.thinning import line_indices, marker_indices
from gradflow.records.base import FloatArray
from gradflow.records.norms import NormSummary, paired_log10, summarize_norms

BoolArray = NDArray[np.bool_]

DASHES = (0, (3.2, 2.2))
_FIT = "fit to the positive"
_MANY_MARKS = 100
_LISTED = 3


@dataclass(frozen=True)
class NormLabels:
    """What the figure calls things: its title, the norm (y axis) and the step (x axis)."""

    title: str = "Norm by step"
    norm: str = "norm"
    step: str = "step"


def norms_figure(
    steps: ArrayLike,
    norms: ArrayLike,
    *,
    log10: bool = False,
    labels: NormLabels | None = None,
    style: str = "screen",
) -> Figure:
    """Return a figure of norms by step (or lag) on a log axis; needs no display.

    Args:
        steps: the step or lag of each norm, shape (count,).
        norms: the norms, shape (count,), or with `log10` their base-10 logarithms.
        log10: whether `norms` are logarithms (-inf for zero): then no float is too small.
        labels: title and axis names.
        style: "screen" or "paper".

    Raises:
        ShapeError: the two are not one-dimensional and of one length.
    """
    names = labels or NormLabels()
    at, logs, negative = _sorted(steps, norms, log10=log10)
    summary = summarize_norms(steps, norms, log10=log10)
    with theme_context(style) as theme:
        room = _label_room(at, logs, summary, names, theme)
        words = Words(title=names.title, caption=norms_sentence(summary, names.step))
        legend = _legend(_kinds(at, logs, negative), summary, theme)
        sheet = make_sheet(theme, Grid(1, 1, label_room=room), words, legend=legend)
        draw_norms(sheet.axes[0][0], steps, norms, log10=log10, labels=names, theme=theme)
        return describe(sheet.figure, f"{names.title}. {words.caption}")


def draw_norms(
    ax: Axes,
    steps: ArrayLike,
    norms: ArrayLike,
    *,
    log10: bool = False,
    labels: NormLabels,
    theme: Theme,
) -> None:
    """Draw norms into `ax`: values on a log axis, and each other kind at its own place."""
    at, logs, negative = _sorted(steps, norms, log10=log10)
    summary = summarize_norms(steps, norms, log10=log10)
    scale = scale_of([logs], zeros=int(summary.zero > 0))
    _set_steps(ax, at)
    scale.apply(ax)
    _draw_positive(ax, at, logs, theme)
    ends = _draw_fit(ax, at[np.isfinite(logs)], logs[np.isfinite(logs)], summary, theme)
    for x, y in ends:
        label = EndLabel(_fit_text(summary, labels.step), scale.share(y))
        draw_end_labels(ax, [label], size=theme.font * 0.95, x=_share_of_steps(ax, x))
    for kind in _kinds(at, logs, negative):
        height = scale.row_height(0) if kind.name == "zero" else CEILING
        kept = kind.steps[marker_indices(kind.steps, _MANY_MARKS)]
        mark(ax, kept, height=height, marker=kind.marker, color=INK, label=kind.label)
    ax.set_xlabel(labels.step, parse_math=False)
    ax.set_ylabel(f"{labels.norm}  (log scale)", parse_math=False)


def norms_sentence(summary: NormSummary, step: str = "step") -> str:
    """Return what the norms are, in one sentence that counts every kind and names its steps.

    >>> norms_sentence(summarize_norms([0, 1, 2], [1.0, 0.5, 0.0]))
    'Of 3 norms 2 are positive (falling by a factor of 0.5 per step), 1 is zero (step 2).'
    """
    if not summary.count:
        return "No norms."
    factor = summary.factor_per_step
    trend = "falling" if factor is not None and factor < 1 else "growing"
    pace = (
        "" if factor is None else f" ({trend} by a factor of {number_text(factor, 3)} per {step})"
    )
    parts = [f"{_are(summary.positive)} positive{pace}"]
    if summary.zero:
        first = summary.first_zero_step
        where = f"{step} {first:g}" if summary.zero == 1 else f"the first at {step} {first:g}"
        parts.append(f"{_are(summary.zero)} zero ({where})")
    for steps, name in (
        (summary.infinite_steps, "infinite"),
        (summary.nan_steps, "not a number"),
        (summary.negative_steps, "negative, which no norm can be"),
    ):
        if steps:
            parts.append(f"{_are(len(steps))} {name} ({_listed(steps, step)})")
    return f"Of {summary.count:,} norms {', '.join(parts)}."


def _are(count: int) -> str:
    return f"{count:,} {'is' if count == 1 else 'are'}"


def _listed(steps: tuple[float, ...] | FloatArray, step: str) -> str:
    shown = ", ".join(f"{at:g}" for at in steps[:_LISTED])
    return f"{step} {shown}" + (", ..." if len(steps) > _LISTED else "")


@dataclass(frozen=True)
class _Kind:
    """Norms that have no logarithm: what they are called, their mark, and where they are."""

    name: str
    marker: str
    steps: FloatArray

    @property
    def label(self) -> str:
        return f"{self.name}: {len(self.steps):,}"


def _kinds(at: FloatArray, logs: FloatArray, negative: BoolArray) -> list[_Kind]:
    kinds = [
        _Kind("zero", "v", at[np.isneginf(logs)]),
        _Kind("infinite", "^", at[np.isposinf(logs)]),
        _Kind("not a number", "x", at[np.isnan(logs) & ~negative]),
        _Kind("negative", "s", at[negative]),
    ]
    return [kind for kind in kinds if kind.steps.size]


def _sorted(
    steps: ArrayLike, norms: ArrayLike, *, log10: bool
) -> tuple[FloatArray, FloatArray, BoolArray]:
    at, logs, negative = paired_log10(steps, norms, log10=log10)
    order = np.argsort(at, kind="stable")
    return at[order], logs[order], negative[order]


def _set_steps(ax: Axes, at: FloatArray) -> None:
    first, last = (float(at[0]), float(at[-1])) if at.size else (0.0, 1.0)
    ax.set_xlim(first, last if last > first else first + 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter("{x:,.0f}")


def _draw_positive(ax: Axes, at: FloatArray, logs: FloatArray, theme: Theme) -> None:
    values = np.where(np.isfinite(logs), logs, np.nan)
    kept = line_indices(values)
    finite = np.concatenate([[False], np.isfinite(values[kept]), [False]])
    alone = finite[1:-1] & ~finite[:-2] & ~finite[2:]  # between two gaps no line is drawn
    marked = np.flatnonzero(alone) if len(kept) > _MANY_MARKS else np.arange(len(kept))
    ax.plot(
        at[kept],
        values[kept],
        color=hue(0),
        linewidth=theme.line * 0.7,
        marker="o",
        markersize=theme.marker * 0.7,
        markevery=marked.tolist(),
        clip_on=False,
        label=f"positive: {int(np.isfinite(logs).sum()):,}",
    )


def _draw_fit(
    ax: Axes, at: FloatArray, logs: FloatArray, summary: NormSummary, theme: Theme
) -> list[tuple[float, float]]:
    """Draw the line fitted to the positive norms and return its end, if there is a line."""
    slope = summary.log10_slope
    if slope is None:
        return []
    ends = at[[0, -1]]
    line = logs.mean() + slope * (ends - at.mean())
    ax.plot(ends, line, color=INK, linestyle=DASHES, linewidth=theme.line * 0.6, label=_FIT)
    return [(float(ends[-1]), float(line[-1]))]


def _share_of_steps(ax: Axes, step: float) -> float:
    first, last = ax.get_xlim()
    return (step - first) / (last - first)


def _label_room(
    at: FloatArray, logs: FloatArray, summary: NormSummary, labels: NormLabels, theme: Theme
) -> float:
    """Return the inches that the fit's label needs right of the panel; 0 where it ends inside."""
    positive = at[np.isfinite(logs)]
    if summary.log10_slope is None or positive[-1] < at[0] + 0.7 * (at[-1] - at[0]):
        return 0.0
    return text_width(_fit_text(summary, labels.step), theme.font * 0.95) + 1.8 * theme.em


def _legend(kinds: list[_Kind], summary: NormSummary, theme: Theme) -> list[tuple[Line2D, str]]:
    size, width = theme.marker * 0.7, theme.line * 0.7
    line = Line2D([], [], color=hue(0), marker="o", ms=size, lw=width)
    legend = [(line, f"positive: {summary.positive:,}")]
    if summary.log10_slope is not None:
        legend.append((Line2D([], [], color=INK, linestyle=DASHES, lw=theme.line * 0.6), _FIT))
    for kind in kinds:
        mark_only = Line2D([], [], color=INK, linestyle="none", marker=kind.marker, mfc="white")
        legend.append((mark_only, kind.label))
    return legend


def _fit_text(summary: NormSummary, step: str) -> str:
    factor = summary.factor_per_step
    return "" if factor is None else f"\N{MULTIPLICATION SIGN}{factor:.3g} per {step}"
