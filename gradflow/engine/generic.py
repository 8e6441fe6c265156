"""Step Jacobians of any cell, by torch.func, for cells that give no closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization, Recurrence
from gradflow.cells.shapes import State
from gradflow.engine.autograd_check import rows_by_copies
from gradflow.engine.blocks import locate_block
from gradflow.engine.stored_jacobians import StoredJacobians

GENERIC_CHUNK_ELEMENTS = 2**22  # 32 MB of float64 step Jacobians at once


class GenericLinearization(StoredJacobians):
    """Stored step Jacobians, (time, batch, state, state), from `torch.func.jacrev` under `vmap`.

    Where the cell cannot be vmapped (it branches on values, or writes in place) each step is
    differentiated by plain autograd instead, a row of the Jacobian per copy of the state.
    """

    def __init__(self, cell: CellLike, drive: Tensor, states: State) -> None:
        super().__init__(
            step_jacobians(cell, drive, states),
            keep=realised_keep_gate(cell, drive, states),
            kept=locate_block((cell.kept_part, cell.kept_part), cell.parts, states).rows,
        )


def linearize(cell: CellLike, drive: Tensor, states: State) -> Linearization:
    """Return the cell's own closed form, or the generic one where it has none."""
    own = cell.linearize(drive, states)
    return GenericLinearization(cell, drive, states) if own is None else own


def step_jacobians(cell: Recurrence, drive: Tensor, states: State) -> Tensor:
    """Return every step's Jacobian, (time, batch, state, state).

    Args:
        cell: any cell whose batch rows do not see each other.
        drive: (time, batch, ...), from `cell.drive`.
        states: the states before each step, one (time, batch, width) tensor per part.
    """
    widths = [part.shape[-1] for part in states]
    joint = torch.cat(states, dim=-1)
    units = torch.eye(joint.shape[-1], dtype=joint.dtype, device=joint.device)

    def one_step(vector: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        def new_state(old: Tensor) -> Tensor:
            return torch.cat(cell.advance(row, torch.split(old, widths, dim=-1)), dim=-1)

        # All rows at once, as the cell is called: row b of an ensemble needs the weights of b.
        new, pull, *_ = torch.func.vjp(new_state, vector)
        rows: Tensor = torch.func.vmap(lambda unit: pull(unit.expand_as(vector))[0])(units)
        return rows, new

    try:
        found: tuple[Tensor, Tensor] = torch.func.vmap(one_step)(joint, drive)
        jacobian, new = found[0].transpose(1, 2), found[1]
    except (RuntimeError, NotImplementedError):
        by_row, new = _jacobians_by_copies(cell, drive.flatten(0, 1), joint.flatten(0, 1), widths)
        jacobian, new = by_row.reshape(*joint.shape, -1), new.reshape(joint.shape)
    # autograd takes the slope of relu at nan for 1: what is no number has no derivative
    lost = (torch.isnan(joint) | torch.isnan(new)).any(dim=-1)
    return jacobian.detach().masked_fill(lost[..., None, None], torch.nan)


def _jacobians_by_copies(
    cell: Recurrence, inputs: Tensor, joint: Tensor, widths: list[int]
) -> tuple[Tensor, Tensor]:
    """Return each row's Jacobian and new state, from as many copies of the state as it has entries.

    Copy j gives the gradient of entry j of the new state: rows of a batch do not see each other,
    so one backward pass of their sum is the whole Jacobian.
    """
    size = joint.shape[-1]
    jacobians, news = [], []
    for row, vector in zip(inputs, joint, strict=True):
        with torch.enable_grad():
            copies = vector.detach().expand(size, size).clone().requires_grad_()
            parts = torch.split(copies, widths, dim=-1)
            new = torch.cat(cell.advance(row.expand(size, *row.shape), parts), dim=-1)
            jacobians.append(rows_by_copies(new, copies))
            news.append(new[0].detach())
    return torch.stack(jacobians), torch.stack(news)


def realised_keep_gate(cell: CellLike, drive: Tensor, states: State) -> Tensor | None:
    """Return the keep gate's value at each state, (time, batch, hidden), or None if unknown."""
    keep = next((gate for gate in cell.gates if gate.role == "keep"), None)
    if keep is None:
        return None
    with torch.no_grad():
        steps = zip(drive, *states, strict=True)
        gates = [cell.compute(row, tuple(parts)).gates.get(keep.name) for row, *parts in steps]
    known = [value for value in gates if value is not None]
    return torch.stack(known) if len(known) == len(gates) else None
