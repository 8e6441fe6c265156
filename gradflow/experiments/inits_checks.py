"""What a comparison of initializations must show, and what a reader should know of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gradflow.cells import State
from gradflow.cells.base import Cell
from gradflow.config import InitsSettings
from gradflow.engine.autograd_check import autograd_log_norms, independent_twin, readable_steps
from gradflow.engine.jacobian_norms import JacobianNorms
from gradflow.inits.biases import chrono_mean
from gradflow.records.base import Check
from gradflow.records.decay import AutogradCheck
from gradflow.records.inits import InitFlow
from gradflow.settings.schemes import read_scheme

# An untrained cell may be chaotic: two ways of rounding part by e^(0.2 t), and not far in 30 steps.
_AUTOGRAD_STEPS = 30
_AUTOGRAD_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-3}
_ROUNDING = {"float64": 1e-12, "float32": 1e-5}  # of sums of a few thousand numbers of order 1


def check_by_autograd(cell: Cell, norms: JacobianNorms, x: Tensor, state: State) -> AutogradCheck:
    """Read the norms of the first draw again by torch.autograd on torch's own cell.

    Args:
        cell: the first draw.
        norms: of all draws; row 0 is compared.
        x, state: the input (time, 1, input) and the first state, of one row.
    """
    module, subject = independent_twin(cell)
    early = norms.steps <= _AUTOGRAD_STEPS
    at, measured = norms.steps[early], norms.log_norm[early, 0].cpu()
    exact = norms.zero_reason[0] == "exact"
    steps = readable_steps(at, measured, cell.dtype, exact=exact)
    error = None
    if steps:
        twin = autograd_log_norms(
            module,
            x,
            state,
            parts=cell.parts,
            block=norms.block,
            norm=norms.norm,
            steps=steps,
        ).cpu()
        ours = measured[torch.isin(at, torch.tensor(steps))]
        both_zero = torch.isneginf(ours) & torch.isneginf(twin)
        error = torch.where(both_zero, 0.0, torch.expm1(ours - twin).abs()).max().item()
    return AutogradCheck(tuple(steps), error, _AUTOGRAD_TOLERANCE[cell.dtype], subject)


def inits_checks(flows: Sequence[InitFlow], settings: InitsSettings) -> tuple[Check, ...]:
    """Return the checks: autograd, finite numbers, biases and singular values as asked for."""
    rounding = _ROUNDING[settings.dtype]
    return (
        _autograd_check(flows),
        _finite_check(flows),
        *_bias_checks(flows, rounding),
        *_orthogonal_checks(flows, rounding),
    )


def inits_notes(flows: Sequence[InitFlow], settings: InitsSettings) -> tuple[str, ...]:
    """Return what a reader should know: what the snippet sets, what chrono gives, what survives."""
    notes = []
    for flow in flows:
        name, number = read_scheme(flow.init)[-1]
        keep = flow.keep_gate
        if name == "as-commonly-copied":
            notes.append(f"{flow.cell}, {flow.init}: {'; '.join(flow.what[1:])}.")
        if name == "chrono" and number is not None and keep is not None and keep.at_rest:
            notes.append(
                f"{flow.cell}, {flow.init}: mean keep gate at rest {keep.at_rest.mean:.4f}, "
                f"expected {chrono_mean(number):.6f} = 1 - ln({number:g}/2) / ({number:g} - 2)."
            )
    kept = [flow for flow in flows if flow.horizons.median is None]
    if kept:
        names = ", ".join(f"{flow.cell} {flow.init}" for flow in kept)
        notes.append(
            f"Not gone within {settings.steps} steps (the norm stays above "
            f"{settings.threshold:g}): {names}."
        )
    return tuple(notes)


def _autograd_check(flows: Sequence[InitFlow]) -> Check:
    checks = [flow.autograd for flow in flows if flow.autograd is not None]
    read = [check for check in checks if check.max_relative_error is not None]
    errors = [check.max_relative_error or 0.0 for check in read]
    passed = all(error <= check.tolerance for error, check in zip(errors, read, strict=True))
    detail = (
        f"largest relative error {max(errors):.1e} (tolerance {read[0].tolerance:g}) over "
        f"{len(read)} of {len(flows)} initializations, first draw, up to step {_AUTOGRAD_STEPS}; "
        f"differentiated: {', '.join(dict.fromkeys(check.subject for check in read))}"
        if read
        else "no step at which plain autograd's own numbers are normal; nothing to compare"
    )
    return Check("autograd agrees", passed, detail)


def _finite_check(flows: Sequence[InitFlow]) -> Check:
    broken = [
        f"{flow.cell} {flow.init}"
        for flow in flows
        if np.isnan(flow.log10_norm).any()
        or np.isposinf(flow.log10_high).any()
        or (np.isneginf(flow.log10_low).any() and flow.zero_reason is None)
        or not np.isfinite(flow.singular_values).all()
    ]
    return Check(
        "every number is finite or a known zero",
        not broken,
        f"not so in {', '.join(broken)}" if broken else f"{len(flows)} initializations",
    )


def _bias_checks(flows: Sequence[InitFlow], rounding: float) -> list[Check]:
    """Check that b_ih + b_hh of the keep gate is the value asked for, and not twice that."""
    checks = []
    for flow in flows:
        name, number = read_scheme(flow.init)[-1]
        keep = flow.keep_gate
        if name != "forget-bias" or number is None or keep is None:
            continue
        off = max(abs(keep.bias.least - number), abs(keep.bias.greatest - number))
        checks.append(
            Check(
                f"{flow.cell}, {flow.init}: the effective bias of the {keep.name} gate",
                off <= rounding * max(1.0, abs(number)),
                f"{keep.bias.mean:.6g}, so the gate is {_sigmoid(keep.bias.mean):.6f} at rest",
            )
        )
    return checks


def _orthogonal_checks(flows: Sequence[InitFlow], rounding: float) -> list[Check]:
    """Check the singular values of orthogonal blocks: g each, or g^2 / gates on average."""
    checks = []
    for flow in flows:
        (name, gain), gates = read_scheme(flow.init)[0], flow.gates
        if name == "orthogonal-per-gate" and gain is not None:
            off = max(
                max(abs(gate.recurrent_least - abs(gain)), abs(gate.recurrent_greatest - abs(gain)))
                for gate in gates
            )
            text, what = f"all {abs(gain):g} within {off:.1e}", "singular values of each gate"
        elif name == "orthogonal-stacked" and gain is not None:
            mean = sum(gate.recurrent_mean_square for gate in gates) / len(gates)
            off = abs(mean - gain**2 / len(gates))
            what = "mean squared singular value over gates"
            text = f"{mean:.12g}, {gain**2:g}/{len(gates)} within {off:.1e}"
        else:
            continue
        passed = off <= rounding * max(1.0, (gain or 0.0) ** 2)
        checks.append(Check(f"{flow.cell}, {flow.init}: {what}", passed, text))
    return checks


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value)) if value > -700 else 0.0
