"""From measured norms to the curves of the record, each checked by plain autograd."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.config import DecaySettings
from gradflow.engine.autograd_check import autograd_log_norms, independent_twin, readable_steps
from gradflow.engine.jacobian_norms import JacobianNorms
from gradflow.engine.trajectory import zero_input
from gradflow.experiments.held_cells import HeldCell
from gradflow.experiments.rates import fit_rate, half_life
from gradflow.records.base import FloatArray
from gradflow.records.decay import AutogradCheck, DecayCurve

LN10 = math.log(10.0)

# Plain autograd keeps no scale and computes slopes as 1 - tanh^2: over 100 steps its own round-off
# stays within these.
AUTOGRAD_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-3}
# what an estimate by vectors promises
ESTIMATE_TOLERANCE = 1e-6
AUTOGRAD_ELEMENTS = 2**25


def full_curve(
    held: HeldCell, norms: JacobianNorms, row: int, settings: DecaySettings, state: State
) -> DecayCurve:
    """Return the curve of the exact Jacobian of one batch row, checked by autograd."""
    check = _check_by_autograd(held, norms, row, state)
    return curve_of(held, norms, row, settings, norms.log_norm, path="full", autograd=check)


def curve_of(
    held: HeldCell,
    norms: JacobianNorms,
    row: int,
    settings: DecaySettings,
    log_norms: Tensor,
    *,
    path: str,
    autograd: AutogradCheck | None = None,
) -> DecayCurve:
    """Return the curve of one batch row.

    Args:
        held: the cell of the row, and how it was held.
        norms: what was measured.
        row: which row.
        settings: what was asked for.
        log_norms: natural logs of the norms along `path`, (points, batch).
        path: "full" or "direct".
        autograd: the check, where there is one.
    """
    steps = norms.steps.numpy()
    ln_norm = log_norms[:, row].cpu().numpy()
    rate = fit_rate(steps, ln_norm)
    zeros = steps[np.isneginf(ln_norm)]
    trend_rate = None if held.gate_value is None else math.log(held.gate_value)
    # keep gates lead from the kept part to itself alone, and no sigmoid is ever truly shut
    kept = norms.block == "joint" or norms.block[0] == held.cell.kept_part
    reason = norms.zero_reason[row] if path == "full" else "underflow" if kept else "exact"
    return DecayCurve(
        cell=held.name,
        gate_name=held.gate_name,
        gate_value=held.gate_value,
        gate_min=None if norms.keep_min is None else norms.keep_min[row].item(),
        gate_max=None if norms.keep_max is None else norms.keep_max[row].item(),
        candidate_gain=held.candidate_gain,
        state=settings.state or held.cell.kept_part,
        path=path,
        norm=norms.norm,
        steps=steps,
        log10_norm=ln_norm / LN10,
        trend_log10=None if trend_rate is None else steps * trend_rate / LN10,
        rate=rate,
        trend_rate=trend_rate,
        half_life=half_life(rate),
        first_zero_step=int(zeros[0]) if len(zeros) else None,
        zero_reason=reason if len(zeros) else None,
        method=norms.method,
        settled_step=norms.settled_step,
        log10_norm_upper=_upper(norms, row) if path == "full" else None,
        autograd=autograd,
        notes=tuple(f"{_label(held)}: {note}" for note in norms.notes) if path == "full" else (),
    )


def _label(held: HeldCell) -> str:
    gain = held.candidate_gain
    return held.name if gain is None else f"{held.name}, candidate gain {gain:g}"


def _upper(norms: JacobianNorms, row: int) -> FloatArray | None:
    """Return where the intervals of estimated norms end, log10; None for exact ones."""
    if norms.log_norm_upper is None:
        return None
    upper: FloatArray = norms.log_norm_upper[:, row].cpu().numpy() / LN10
    return upper


def _check_by_autograd(
    held: HeldCell, norms: JacobianNorms, row: int, state: State
) -> AutogradCheck:
    cell = held.cell
    module, subject = independent_twin(cell)
    measured = norms.log_norm[:, row].cpu()
    dtype = state[0].dtype
    steps = readable_steps(
        norms.steps,
        measured,
        dtype,
        exact=norms.zero_reason[row] == "exact",
        furthest=autograd_reach(sum(cell.part_sizes)),
    )
    error = None
    if steps:
        twin = autograd_log_norms(
            module,
            zero_input(cell, 1, steps[-1]),
            state,
            parts=cell.parts,
            block=norms.block,
            norm=norms.norm,
            steps=steps,
        ).cpu()
        ours = measured[torch.isin(norms.steps, torch.tensor(steps))]
        both_zero = torch.isneginf(ours) & torch.isneginf(twin)
        error = torch.where(both_zero, 0.0, torch.expm1(ours - twin).abs()).max().item()
    tolerance = AUTOGRAD_TOLERANCE[dtype]
    if norms.converged is not None:
        tolerance = max(tolerance, ESTIMATE_TOLERANCE)
    return AutogradCheck(tuple(steps), error, tolerance, subject)


def autograd_reach(state_size: int) -> int:
    """Return how many steps autograd may unroll as many copies of the state as it has entries.

    Each step keeps about as much as the gates of all copies; the graph stays within a gigabyte.

    >>> autograd_reach(128), autograd_reach(4096)
    (100, 1)
    """
    return max(1, min(100, AUTOGRAD_ELEMENTS // (2 * state_size**2)))
