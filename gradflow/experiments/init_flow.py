"""One initialization on one cell: several draws of it, run and measured together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from gradflow.cells import State, make_cell, stack_cells
from gradflow.cells.base import Cell
from gradflow.config import InitsSettings
from gradflow.engine.blocks import BlockName
from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.trajectory import zero_input
from gradflow.experiments.held_cells import start_state
from gradflow.experiments.init_gates import gate_flows, gate_values, time_constants
from gradflow.experiments.inits_checks import check_by_autograd
from gradflow.experiments.rates import fit_rate, report_points
from gradflow.inits import InitReport, apply_, torch_default_
from gradflow.inits.draws import normal
from gradflow.records.base import FloatArray, IntArray
from gradflow.records.distributions import PerSeed
from gradflow.records.inits import InitFlow

LN10 = math.log(10.0)


def draw_cells(
    name: str, scheme: str, settings: InitsSettings
) -> tuple[list[Cell], tuple[InitReport, ...]]:
    """Return one cell for each draw, and what the last one's initialization reported.

    A cell begins as torch makes it; the draws of all schemes begin alike, so that what a scheme
    leaves as it was is the same in all of them.

    Raises:
        GateValueError: the cell has no gate that the scheme could set.
    """
    root = torch.Generator().manual_seed(settings.seed)
    cells: list[Cell] = []
    reports: tuple[InitReport, ...] = ()
    for seed in torch.randint(2**62, (settings.seeds,), generator=root).tolist():
        cell = make_cell(
            name,
            settings.input_size,
            settings.hidden,
            dtype=getattr(torch, settings.dtype),
            device=settings.device,
            reset=settings.reset,
        )
        cell = cast(Cell, cell)  # the settings take built-in cells alone
        # from one seed twice, so that torch's default is the ground that the others build on
        torch_default_(cell, generator=torch.Generator().manual_seed(seed))
        reports = apply_(cell, scheme, generator=torch.Generator().manual_seed(seed))
        cells.append(cell)
    return cells, reports


def measure_flow(
    name: str,
    scheme: str,
    settings: InitsSettings,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> InitFlow:
    """Draw, run and measure one initialization.

    Args:
        name: the cell.
        scheme: the initialization.
        settings: how wide, how long, on which input.
        progress: called as `progress(steps done, steps in all)`.

    Raises:
        GateValueError: as in `draw_cells`.
    """
    cells, reports = draw_cells(name, scheme, settings)
    ensemble = stack_cells(cells)
    one_x, one_state = common_run(cells[0], settings)
    x = one_x.expand(-1, len(cells), -1)
    state = tuple(part.expand(len(cells), -1) for part in one_state)
    part = settings.state or ensemble.kept_part
    block: BlockName = "joint" if part == "joint" else (part, part)
    norms = jacobian_norms(
        ensemble,
        x,
        state,
        block,
        settings.norm,
        at=report_points(settings.steps, None),
        progress=progress,
    )
    jacobian = first_jacobian(ensemble, x, state)
    values = gate_values(ensemble, x, state)
    keep = None if ensemble.keep_gate is None else values[ensemble.keep_gate.name]
    return InitFlow(
        cell=name,
        init=scheme,
        what=tuple(text for report in reports for text in (report.what, *report.notes)),
        state=part,
        norm=settings.norm,
        **_curves(norms, settings.threshold),
        spectral_radii=PerSeed(tuple(spectral_radius(jacobian).tolist())),
        singular_values=torch.linalg.svdvals(jacobian).mean(dim=0).cpu().numpy(),
        gates=gate_flows(cells, values),
        time_constant=None if keep is None else time_constants(keep),
        autograd=check_by_autograd(cells[0], norms, one_x, one_state),
    )


def common_run(cell: Cell, settings: InitsSettings) -> tuple[Tensor, State]:
    """Return the input (time, 1, input) and the first state, the same for every initialization."""
    state = start_state(cell, settings)
    if settings.input == "zero":
        return zero_input(cell, 1, settings.steps), state
    generator = torch.Generator().manual_seed(settings.seed)
    drawn = normal(settings.steps, settings.input_size, 1.0, generator)
    return drawn.unsqueeze(1).to(state[0]), state


def first_jacobian(cell: Cell, x: Tensor, state: State) -> Tensor:
    """Return the first step's Jacobian of the joint state, (batch, state, state), in float64."""
    with torch.no_grad():
        before = tuple(part.unsqueeze(0) for part in state)
        steps = cell.linearize(cell.drive(x[:1]), before)
        jacobian: Tensor = steps.dense(0).to(torch.float64)
    return jacobian


def spectral_radius(matrix: Tensor) -> Tensor:
    """Return the largest modulus of an eigenvalue of each (..., n, n) matrix.

    >>> round(spectral_radius(torch.tensor([[0.0, 2.0], [-2.0, 0.0]])).item(), 6)
    2.0
    """
    largest: Tensor = torch.linalg.eigvals(matrix).abs().amax(dim=-1)
    return largest


def horizon(steps: IntArray, log10_norm: FloatArray, threshold: float) -> int | None:
    """Return the first step at which the norm is at the threshold or below; None without one.

    Between reported steps that are not neighbours the logarithm is taken as straight.

    >>> horizon(np.array([1, 2, 3]), np.log10(np.array([0.1, 0.01, 0.001])), 0.01)
    2
    """
    limit = math.log10(threshold)
    below = np.flatnonzero(log10_norm <= limit + 1e-12)  # 0.1^3 in logs is not quite -3
    if not below.size:
        return None
    first = int(below[0])
    step, before = int(steps[first]), int(steps[max(first - 1, 0)])
    if step - before <= 1 or not math.isfinite(log10_norm[first]):
        return step
    high, low = float(log10_norm[first - 1]), float(log10_norm[first])
    return math.ceil(before + (high - limit) / (high - low) * (step - before))


def _curves(norms: JacobianNorms, threshold: float) -> dict[str, Any]:
    """Return the curves over draws, and rate and horizon of each draw."""
    steps = norms.steps.numpy()
    ln_norm = norms.log_norm.cpu().numpy()
    draws = [ln_norm[:, row] for row in range(ln_norm.shape[1])]
    zeros = [step for step in norms.first_zero_step if step is not None]
    reasons = [reason for reason in norms.zero_reason if reason is not None]
    return {
        "steps": steps,
        "log10_norm": np.quantile(ln_norm, 0.5, axis=1, method="lower") / LN10,
        "log10_low": ln_norm.min(axis=1) / LN10,
        "log10_high": ln_norm.max(axis=1) / LN10,
        "rates": PerSeed(tuple(fit_rate(steps, draw) for draw in draws)),
        "horizons": PerSeed(tuple(horizon(steps, draw / LN10, threshold) for draw in draws)),
        "first_zero_step": min(zeros, default=None),
        "zero_reason": reasons[0] if reasons else None,
    }
