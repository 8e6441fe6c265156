"""One panel of the decay figure: the curves of one cell and candidate gain."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from gradflow.present import decay_words as words
from gradflow.present.decay_words import Panel
from gradflow.present.end_labels import EndLabel, draw_end_labels
from gradflow.present.layout import panel_title
from gradflow.present.log_axis import CEILING, Scale, mark, scale_of
from gradflow.present.numbers import counted
from gradflow.present.palette import Look, gate_look
from gradflow.present.theme import Theme, inches_of
from gradflow.present.thinning import line_indices, marker_indices
from gradflow.records import DecayCurve
from gradflow.records.base import FloatArray

DASHES = (0, (3.2, 2.2))
_APART = 0.01  # share of the axis: nearer lines are one line to the eye


def panel_scale(panels: Sequence[Panel]) -> Scale:
    """Return y limits that hold every finite value and trend of the panels, and 10^0."""
    arrays: list[FloatArray] = [np.zeros(1)]
    for panel in panels:
        for curve in (*panel.full, *panel.others):
            reference = words.reference_log10(curve)
            arrays += [curve.log10_norm] if reference is None else [curve.log10_norm, reference]
    zeros = max((sum(_has_zero(curve) for curve in panel.full) for panel in panels), default=0)
    return scale_of(arrays, zeros=zeros)


def draw_panel(ax: Axes, panel: Panel, *, theme: Theme, scale: Scale) -> None:
    """Draw one panel into `ax`, whose y axis then holds log10 values."""
    last = max((int(curve.steps[-1]) for curve in panel.full if curve.steps.size), default=1)
    ax.set_xlim(0, last)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    scale.apply(ax)
    ax.set_title(panel_title(panel.title, inches_of(ax)[0], theme), parse_math=False)
    labels: list[EndLabel] = []
    for index, curve in enumerate(panel.full):
        height = scale.row_height(sum(_has_zero(other) for other in panel.full[:index]))
        _draw_trend(ax, curve, theme)
        _draw_measured(ax, curve, theme, shift=index / len(panel.full))
        _mark_beyond(ax, curve, zero_height=height)
        labels += _labels(curve, scale, zero_height=height)
    labels += [_draw_path(ax, curve, scale) for curve in drawn_paths(panel, scale)]
    draw_end_labels(ax, labels, size=theme.font * 0.95)
    _write_zero_note(ax, panel, theme, scale)


def drawn_paths(panel: Panel, scale: Scale) -> list[DecayCurve]:
    """Return the other paths that the eye can tell from the full curve and from the trend."""
    return [
        curve
        for curve in panel.others
        if not _is_on_full(curve, panel, scale)
        and not _is_on_trend(curve, scale)
        and np.isfinite(curve.log10_norm).any()
    ]


def paths_on_trend(panel: Panel, scale: Scale) -> list[DecayCurve]:
    """Return the other paths that leave the full curve and lie on the trend."""
    return [
        curve
        for curve in panel.others
        if not _is_on_full(curve, panel, scale) and _is_on_trend(curve, scale)
    ]


def end_text(curve: DecayCurve) -> str:
    """Return the label of a curve: its value, and what one step multiplies the norm by."""
    name = words.curve_name(curve)
    end = float(curve.log10_norm[-1])
    if end == -math.inf:
        return f"{name}: zero"
    if math.isnan(end):
        return f"{name}: nan"
    factor = curve.factor_per_step
    return name if factor is None else f"{name}: \N{MULTIPLICATION SIGN}{factor:.3g}"


def _same_line(one: FloatArray, other: FloatArray, scale: Scale) -> bool:
    """Return whether two curves are one line to the eye: finite at the same steps, and near."""
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return False
    apart = np.abs(one[finite] - other[finite])
    return bool((apart <= _APART * (scale.high - scale.low)).all())


def _is_on_full(curve: DecayCurve, panel: Panel, scale: Scale) -> bool:
    value = words.curve_value(curve)
    return any(
        _same_line(curve.log10_norm, full.log10_norm, scale)
        for full in panel.full
        if words.curve_value(full) == value and len(full.steps) == len(curve.steps)
    )


def _is_on_trend(curve: DecayCurve, scale: Scale) -> bool:
    reference = words.reference_log10(curve)
    return reference is not None and _same_line(curve.log10_norm, reference, scale)


def _draw_trend(ax: Axes, curve: DecayCurve, theme: Theme) -> None:
    reference = words.reference_log10(curve)
    if reference is None or not curve.steps.size:
        return
    ax.plot(
        [0, *curve.steps[[0, -1]]],  # a straight line from g^0 = 1: its ends say it all
        [0.0, *reference[[0, -1]]],
        linestyle=DASHES,
        linewidth=theme.line * 0.6,
        color=_look(curve).dark,
        zorder=3,
        label=f"trend {words.curve_name(curve)}",
    )


def _draw_measured(ax: Axes, curve: DecayCurve, theme: Theme, *, shift: float) -> None:
    look = _look(curve)
    values = _finite(curve)
    kept = np.union1d(line_indices(values), marker_indices(curve.steps, shift=shift))
    marked = np.searchsorted(kept, marker_indices(curve.steps, shift=shift))
    ax.plot(
        curve.steps[kept],
        values[kept],
        linewidth=theme.line,
        color=look.color,
        marker=look.marker,
        markevery=marked.tolist(),
        markerfacecolor=look.face,
        markeredgecolor=look.dark,
        markeredgewidth=0.7,
        clip_on=False,
        zorder=2.5,
        label=words.curve_name(curve),
    )


def _draw_path(ax: Axes, curve: DecayCurve, scale: Scale) -> EndLabel:
    values = _finite(curve)
    kept = line_indices(values)
    name = f"{words.curve_name(curve)}, {curve.path}"
    color = _look(curve).dark
    ax.plot(curve.steps[kept], values[kept], linestyle=":", color=color, zorder=2.7, label=name)
    return EndLabel(
        name, _end_height(curve, scale, zero_height=scale.row_height(0)), color=color, spare=True
    )


def _mark_beyond(ax: Axes, curve: DecayCurve, *, zero_height: float) -> None:
    """Mark zeros at the floor, infinities and what is not a number at the ceiling."""
    color = _look(curve).dark
    values, steps = curve.log10_norm, curve.steps
    for chosen, marker, height in (
        (np.isneginf(values), "v", zero_height),
        (np.isposinf(values), "^", CEILING),
        (np.isnan(values), "x", CEILING),
    ):
        at = steps[chosen].astype(np.float64)
        if at.size:
            kept = marker_indices(at)
            mark(ax, at[kept], height=height, marker=marker, color=color)


def _labels(curve: DecayCurve, scale: Scale, *, zero_height: float) -> list[EndLabel]:
    """Return the label of a curve's end and, where it ends elsewhere, of its trend's."""
    if not curve.steps.size:
        return []
    height = _end_height(curve, scale, zero_height=zero_height)
    labels = [EndLabel(end_text(curve), height)]
    reference, value = words.reference_log10(curve), words.curve_value(curve)
    if reference is not None and value is not None:
        trend = scale.share(float(reference[-1]))
        if abs(trend - height) > 2 * _APART:
            labels.append(EndLabel(trend_text(value), trend, color=_look(curve).dark, spare=True))
    return labels


def trend_text(value: float) -> str:
    """Return a trend's name as mathtext: the value to the power T."""
    return rf"${value:g}^{{\,T}}$"


def _end_height(curve: DecayCurve, scale: Scale, *, zero_height: float) -> float:
    end = float(curve.log10_norm[-1])
    if end == -math.inf:
        return zero_height
    return scale.share(end) if math.isfinite(end) else CEILING


def zero_note(panel: Panel) -> str:
    """Return what of a panel is zero, from which step on and why; empty where nothing is."""
    zeros = [curve for curve in panel.full if _has_zero(curve)]
    silent = [curve for curve in panel.others if np.isneginf(curve.log10_norm).all()]
    if not zeros:
        return f"the {silent[0].path} path is exactly zero" if silent else ""
    first = min(int(curve.steps[np.isneginf(curve.log10_norm)][0]) for curve in zeros)
    exact = all(curve.zero_reason == "exact" for curve in zeros)
    kind = "exactly zero" if exact else "zero by underflow"
    return f"{len(zeros)} of {counted(len(panel.full), 'curve')} {kind} from T={first}"


def _write_zero_note(ax: Axes, panel: Panel, theme: Theme, scale: Scale) -> None:
    height = scale.floor - 0.02 if scale.zeros else 0.08
    size = theme.font * 0.9
    ax.text(0.01, height, zero_note(panel), transform=ax.transAxes, fontsize=size, va="top")


def _has_zero(curve: DecayCurve) -> bool:
    return bool(np.isneginf(curve.log10_norm).any())


def _finite(curve: DecayCurve) -> FloatArray:
    values = np.where(np.isfinite(curve.log10_norm), curve.log10_norm, np.nan)
    return np.asarray(values, dtype=np.float64)


def _look(curve: DecayCurve) -> Look:
    return gate_look(words.curve_value(curve))
