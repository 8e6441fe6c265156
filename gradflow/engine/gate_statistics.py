"""How a trained cell's gates stand over the steps that it really ran: values, biases, units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import CellLike, ForeignCell, Gate, State
from gradflow.cells.stack import output_part
from gradflow.errors import GradflowError

__all__ = ["CellStatistics", "GateStatistics", "cell_statistics"]

SATURATED = 0.01  # a gate within this of 0 or 1 passes next to no gradient to its own weights
NEVER_FORGETS = 0.999
BINS = 40


@dataclass(frozen=True)
class GateStatistics:
    """One gate over all own steps and samples; None where the cell does not tell.

    `values` are counts in `BINS` equal bins from 0 to 1; `time_constants` (units,), for the keep
    gate alone, are -1 / mean ln f in steps.
    """

    name: str
    role: str
    effective_bias_mean: float | None
    value_mean: float | None = None
    value_min: float | None = None
    value_max: float | None = None
    saturated_fraction: float | None = None
    values: tuple[int, ...] = ()
    time_constants: Tensor | None = None


@dataclass(frozen=True)
class CellStatistics:
    """A cell's gates, and which units never move (`dead`) or never forget (by number from 0)."""

    gates: tuple[GateStatistics, ...]
    dead: tuple[int, ...]
    never_forgetting: tuple[int, ...]


def cell_statistics(cell: CellLike, x: Tensor, before: State, own: Tensor) -> CellStatistics:
    """Return how the gates and units of a cell stood over a run.

    Args:
        cell: the cell that ran.
        x: what it read, (time, batch, input).
        before: the state before each position, (time, batch, width) per part.
        own: which steps are a sample's own, (time, batch).

    A unit is dead where what it shows is the same number at every step and sample (to 1e-9),
    though the inputs are not; it never forgets where its keep gate is above 0.999 throughout.
    """
    rows = own.to(x.device)
    fed = x[rows]
    with torch.no_grad():
        step = cell.compute(cell.drive(fed), tuple(part[rows] for part in before))
    shown = step.state[output_part(cell)].double()
    varied = len(fed) > 1 and bool((fed.double().amax(0) - fed.double().amin(0)).max() > 0)
    still = (shown.amax(dim=0) - shown.amin(dim=0)) < 1e-9
    gates = tuple(_gate(cell, gate, step.gates.get(gate.name)) for gate in cell.gates)
    keep = None if cell.keep_gate is None else step.gates.get(cell.keep_gate.name)
    open_units = () if keep is None else _numbers(keep.amin(dim=0) > NEVER_FORGETS)
    return CellStatistics(gates, _numbers(still) if varied else (), open_units)


def effective_bias(cell: CellLike, gate: Gate) -> Tensor | None:
    """Return a gate's effective bias (units,), both vectors added, None where nobody knows."""
    module = cell.module if isinstance(cell, ForeignCell) else cell
    if not isinstance(module, torch.nn.Module):
        return None
    try:
        bias = gate.effective_bias(module)
    except GradflowError:
        return None
    return None if bias is None else bias.detach().double()


def _gate(cell: CellLike, gate: Gate, values: Tensor | None) -> GateStatistics:
    bias = effective_bias(cell, gate)
    mean = None if bias is None else float(bias.mean())
    if values is None or not bool(torch.isfinite(values).all()):
        return GateStatistics(gate.name, gate.role, mean)
    wide = values.double()
    ends = (wide < SATURATED) | (wide > 1.0 - SATURATED)
    is_keep = cell.keep_gate is not None and cell.keep_gate.name == gate.name
    return GateStatistics(
        name=gate.name,
        role=gate.role,
        effective_bias_mean=mean,
        value_mean=float(wide.mean()),
        value_min=float(wide.min()),
        value_max=float(wide.max()),
        saturated_fraction=float(ends.double().mean()),
        values=tuple(int(n) for n in torch.histc(wide, BINS, 0.0, 1.0).tolist()),
        time_constants=_time_constants(wide) if is_keep else None,
    )


def _time_constants(keep: Tensor) -> Tensor:
    """Return -1 / mean ln f of each unit; infinite where the gate rounds to 1."""
    rate = -keep.flatten(0, -2).log().mean(dim=0)
    return torch.where(rate > 0, 1.0 / rate.clamp_min(1e-300), math.inf)


def _numbers(flags: Tensor) -> tuple[int, ...]:
    return tuple(int(index) for index in flags.nonzero().flatten().tolist())
