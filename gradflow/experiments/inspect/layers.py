"""The record of one inspected layer and direction, from what its cell did."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gradflow.cells import CellLike, State
from gradflow.cells.stack import output_part
from gradflow.checkpoints.layers import FoundLayer
from gradflow.engine.gate_statistics import CellStatistics, GateStatistics, cell_statistics
from gradflow.engine.lag_norms import LagNorms, lag_norms
from gradflow.engine.lag_windows import BUDGET, Windows, choose_windows
from gradflow.engine.lyapunov import lyapunov_spectrum
from gradflow.engine.memory import memory_of
from gradflow.engine.state_gradients import StateGradients
from gradflow.engine.unrolled import CellTrace, joined_calls
from gradflow.errors import GradflowError
from gradflow.records.base import FloatArray, finite_or_none
from gradflow.records.inspect import Curve, InspectedGate, InspectedLayer

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Gradients:
    """The loss's gradients at one cell's states, call after call, in float64 and as trained."""

    wide: tuple[StateGradients, ...]
    own: tuple[StateGradients, ...] | None = None


@dataclass(frozen=True)
class Measured:
    """One layer and direction, measured: the record, and the tensors that findings look at."""

    record: InspectedLayer
    found: FoundLayer
    traces: tuple[CellTrace, ...]
    gradients: Gradients | None
    finite: bool


def measure_layer(
    found: FoundLayer,
    traces: Sequence[CellTrace],
    gradients: Gradients | None,
    *,
    fused_gap: float | None,
    budget: float = BUDGET,
    progress: Progress | None = None,
) -> Measured:
    """Measure one cell along its longest run, and gather its gradients over all calls.

    Args:
        found: the layer.
        traces: what its cell did, call by call.
        gradients: the loss's, at every state.
        fused_gap: how far the unrolled layer was from the fused one.
        budget: multiply-adds for the curve by lag.
        progress: called as `progress(steps done, steps in all)`.
    """
    trace = max(joined_calls(traces), key=lambda each: len(each.states))
    x, before, own = trace.inputs, trace.before, trace.own
    lengths = own.sum(dim=0)
    cell = found.cell
    finite = all(bool(torch.isfinite(part).all()) for part in (x, *before))
    finite = finite and not found.nonfinite
    by_lag = None
    if finite:
        windows = choose_windows(cell, lengths, budget=budget)
        by_lag = lag_norms(
            cell, x, before, windows, lengths=lengths, reverse=trace.reverse, progress=progress
        )
    statistics = cell_statistics(cell, x, before, own)
    record = InspectedLayer(
        name=found.name,
        kind=found.kind,
        layer=found.layer,
        direction=found.direction,
        input_size=found.input_size,
        hidden_size=found.hidden_size,
        projection=found.projection,
        parameters=found.parameters,
        dtype=found.dtype,
        gates=tuple(map(_gate, statistics.gates)),
        **_lag_fields(by_lag),
        lyapunov=_lyapunov(cell, trace, lengths) if finite else None,
        dead_units=statistics.dead,
        never_forgetting_units=statistics.never_forgetting,
        fused_difference=fused_gap,
        **_gradient_fields(cell, gradients),
        notes=_notes(found, statistics, finite=finite),
        before=found.before,
        after=found.after,
    )
    return Measured(record, found, tuple(traces), gradients, finite)


def curve(values: FloatArray | Tensor) -> Curve:
    """Return numbers as a record holds them: what is not finite is None."""
    return tuple(finite_or_none(float(value)) for value in values)


def _lag_fields(found: LagNorms | None) -> dict[str, Any]:
    """Return the fields of a record that come from the curve by lag."""
    if found is None:
        nothing: dict[str, Any] = dict.fromkeys(
            ("direct_log10_norm", "kept_log10_norm", "half_life", "horizon")
        )
        empty = dict.fromkeys(
            ("lag", "log10_norm", "low", "high", "windows", "log10_norm_error"), ()
        )
        return {
            **nothing,
            **empty,
            "horizon_range": (None, None),
            "sampled": False,
            "sampling": "not measured",
            "method": "none",
        }
    lags = found.lags.double().numpy()
    joint = found.log10_norm.numpy()
    mean, low, high = _spread(joint)
    memory = memory_of(lags, mean)
    windows = found.windows
    count = (~np.isnan(joint)).sum(axis=1)
    return {
        "lag": tuple(int(lag) for lag in found.lags.tolist()),
        "log10_norm": curve(mean),
        "low": curve(low),
        "high": curve(high),
        "windows": tuple(int(n) for n in count),
        "log10_norm_error": _errors(joint, mean, count),
        "horizon_range": tuple(memory_of(lags, edge).horizon for edge in (low, high)),
        "direct_log10_norm": None if found.direct is None else curve(_spread(found.direct)[0]),
        "kept_log10_norm": None if found.kept is None else curve(_spread(found.kept)[0]),
        "half_life": finite_or_none(memory.half_life),
        "horizon": memory.horizon,
        "sampled": windows.is_sample,
        "sampling": _sampling(windows, len(lags)),
        "method": found.method,
    }


def _spread(values: FloatArray | Tensor) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, least and greatest over the windows that have such a lag."""
    array = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(array)
    count = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, array, 0.0).sum(axis=1) / count
    low = np.where(known, array, math.inf).min(axis=1)
    high = np.where(known, array, -math.inf).max(axis=1)
    return mean, low, high


def _errors(joint: FloatArray, mean: FloatArray, count: NDArray[np.int64]) -> Curve:
    """Return the standard error of the mean over windows by lag, None where one window tells."""
    with np.errstate(invalid="ignore"):  # of a norm of zero
        squares = np.where(np.isnan(joint), 0.0, (joint - mean[:, None]) ** 2).sum(axis=1)
        errors = np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1))
    return curve(np.where(count > 1, errors, math.nan))


def _sampling(windows: Windows, lags: int) -> str:
    """Say in a sentence which windows were followed, and what tells their error."""
    steps = windows.steps
    each = f"{steps[0]} steps each" if len(set(steps)) == 1 else f"{min(steps)} to {max(steps)}"
    cut = f"; longer lags than {max(steps)} would be too dear" if windows.is_cut else ""
    return (
        f"{len(steps)} of {windows.available} windows (from a step of a sample on, {each} steps), "
        f"{lags} lags{cut}; the error of the mean is log10_norm_error, the range is low to high"
    ).replace("steps each steps", "steps each")


def _lyapunov(cell: CellLike, trace: CellTrace, lengths: Tensor) -> float | None:
    """Return the leading exponent in nats per step along the longest samples, second half."""
    longest = int(lengths.max())
    rows = (lengths == longest).nonzero().flatten()[:4]
    x = trace.inputs[:longest, rows]
    before: State = tuple(part[:longest, rows] for part in trace.before)
    if trace.reverse:
        x, before = x.flip(0), tuple(part.flip(0) for part in before)
    if longest < 4:
        return None
    start = tuple(part[0] for part in before)
    try:
        found = lyapunov_spectrum(cell, start, x, 1, warmup=longest // 2)
    except (GradflowError, RuntimeError):
        return None
    return finite_or_none(float(found.exponents[0]))


def _gradient_fields(cell: CellLike, gradients: Gradients | None) -> dict[str, Any]:
    names = ("log10_dL_dh", "log10_dL_dc", "log10_dL_dh_own_precision")
    if gradients is None:
        return dict.fromkeys(names)
    part = output_part(cell)
    kept = cell.parts.index("c") if "c" in cell.parts else None
    own = gradients.own
    return {
        names[0]: curve(joined(gradients.wide, part)),
        names[1]: None if kept is None else curve(joined(gradients.wide, kept)),
        names[2]: None if own is None else curve(joined(own, part)),
    }


def joined(gradients: Sequence[StateGradients], part: int) -> Tensor:
    """Return log10 norms over the whole batch by step, call after call."""
    return torch.cat([each.total[part] for each in gradients])


def _gate(found: GateStatistics) -> InspectedGate:
    times = found.time_constants
    return InspectedGate(
        name=found.name,
        role=found.role,
        effective_bias_mean=found.effective_bias_mean,
        value_mean=found.value_mean,
        value_min=found.value_min,
        value_max=found.value_max,
        saturated_fraction=found.saturated_fraction,
        histogram=found.values,
        time_constant_median=None if times is None else finite_or_none(float(times.median())),
        time_constant_max=None if times is None else finite_or_none(float(times.max())),
    )


def _notes(found: FoundLayer, statistics: CellStatistics, *, finite: bool) -> tuple[str, ...]:
    notes = list(found.notes)
    if finite and found.cell.gates and all(gate.value_mean is None for gate in statistics.gates):
        notes.append("The cell declares gates and does not tell their values (gate_values).")
    return tuple(notes)
