"""Step Jacobians of any cell, by torch.func, for cells that give no closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.base import CellLike, Linearization
from gradflow.cells.shapes import Block, State, StepJacobian

GENERIC_CHUNK_ELEMENTS = 2**22  # 32 MB of float64 step Jacobians at once


class GenericLinearization(Linearization):
    """Stored step Jacobians, (time, batch, state, state), from `torch.func.jacrev` under `vmap`.

    Where the cell cannot be vmapped (it branches on values, or writes in place) each step is
    differentiated by plain autograd instead, a row of the Jacobian per copy of the state.
    """

    def __init__(self, cell: CellLike, drive: Tensor, states: State) -> None:
        self._jacobians = step_jacobians(cell, drive, states)
        self.steps = self._jacobians.shape[0]
        self.keep = realised_keep_gate(cell, drive, states)

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent."""
        return torch.matmul(self._jacobians[t], tangent, out=out)

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent."""
        return torch.matmul(self._jacobians[t].mT, cotangent)

    def dense(self, t: int) -> StepJacobian:
        """Return J_t."""
        return self._jacobians[t]


def linearize(cell: CellLike, drive: Tensor, states: State) -> Linearization:
    """Return the cell's own closed form, or the generic one where it has none."""
    own = cell.linearize(drive, states)
    return GenericLinearization(cell, drive, states) if own is None else own


def step_jacobians(cell: CellLike, drive: Tensor, states: State) -> Tensor:
    """Return every step's Jacobian, (time, batch, state, state).

    Args:
        cell: any cell whose batch rows do not see each other.
        drive: (time, batch, ...), from `cell.drive`.
        states: the states before each step, one (time, batch, width) tensor per part.
    """
    time, batch = states[0].shape[:2]
    widths = [part.shape[-1] for part in states]
    joint = torch.cat(states, dim=-1).flatten(0, 1)
    inputs = drive.flatten(0, 1)

    def one_step(vector: Tensor, row: Tensor) -> Tensor:
        parts = tuple(part.unsqueeze(0) for part in vector.split(widths))
        return torch.cat(cell.advance(row.unsqueeze(0), parts), dim=-1).squeeze(0)

    try:
        jacobian = torch.func.vmap(torch.func.jacrev(one_step))(joint, inputs)
    except (RuntimeError, NotImplementedError):
        jacobian = _jacobians_by_copies(cell, inputs, joint, widths)
    return jacobian.detach().unflatten(0, (time, batch))


def _jacobians_by_copies(
    cell: CellLike, inputs: Tensor, joint: Tensor, widths: list[int]
) -> Tensor:
    """Return each row's Jacobian by running as many copies of the state as it has entries.

    Copy j gives the gradient of entry j of the new state: rows of a batch do not see each other,
    so one backward pass of their sum is the whole Jacobian.
    """
    size = joint.shape[-1]
    jacobians = []
    for row, vector in zip(inputs, joint, strict=True):
        with torch.enable_grad():
            copies = vector.detach().expand(size, size).clone().requires_grad_()
            parts = tuple(copies.split(widths, dim=-1))
            new = torch.cat(cell.advance(row.expand(size, *row.shape), parts), dim=-1)
            (jacobian,) = torch.autograd.grad(new.diagonal().sum(), copies)
        jacobians.append(jacobian)
    return torch.stack(jacobians)


def realised_keep_gate(cell: CellLike, drive: Tensor, states: State) -> Tensor | None:
    """Return the keep gate's value at each state, (time, batch, hidden), or None if unknown."""
    keep = next((gate for gate in cell.gates if gate.role == "keep"), None)
    if keep is None:
        return None
    time, batch = states[0].shape[:2]
    flat = tuple(part.flatten(0, 1) for part in states)
    with torch.no_grad():
        gates = cell.compute(drive.flatten(0, 1), flat).gates
    value = gates.get(keep.name)
    return None if value is None else value.detach().unflatten(0, (time, batch))
