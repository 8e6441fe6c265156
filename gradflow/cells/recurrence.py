"""The one product of a step that must wait for the state, `base + U h`, in memory given once.

Running a cell is a loop of small operations: at H = 64 most of its time is what torch spends on
calls and on new tensors. Here the loop writes into memory that was made before it began.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import Recurrence
from gradflow.cells.shapes import State


class StepProduct:
    """Multiplies one step's state by the recurrent weights: `multiply(base, h, weight, out=...)`.

    In an ensemble, where each batch row has weights of its own, the rows become (batch, 1, width),
    so that a batched product can take them.
    """

    def __init__(self, weight: Tensor) -> None:
        self.shared = weight.dim() == 2
        self.weight = weight.mT
        self.multiply = torch.addmm if self.shared else torch.baddbmm

    def rows(self, run: Tensor) -> Tensor:
        """Return (time, batch, width) in the shape that `multiply` takes step by step."""
        return run if self.shared else run.unsqueeze(-2)


def room_for_run(steps: int, state: State) -> State:
    """Return (steps + 1, batch, width) for each part, the given state in the first place."""
    rooms = tuple(part.new_empty(steps + 1, *part.shape) for part in state)
    for room, part in zip(rooms, state, strict=True):
        room[0] = part
    return rooms


@torch.no_grad()
def run_by_steps(cell: Recurrence, drive: Tensor, state: State) -> State:
    """Return every state of a run, step by step through `advance`: (time + 1, batch, width) each.

    Args:
        cell: anything that steps.
        drive: (time, batch, ...), from its `drive`.
        state: the state before the first step.
    """
    rooms = room_for_run(drive.shape[0], state)
    for t, row in enumerate(drive.unbind(0)):
        state = cell.advance(row, state)
        for room, part in zip(rooms, state, strict=True):
            room[t + 1] = part
    return rooms


def add_bias(drive: Tensor, bias: Tensor | None) -> Tensor:
    """Return drive + bias; a drive that is one step expanded (stride 0 in time) stays one step.

    Args:
        drive: (time, batch, gates).
        bias: (gates,) or (batch, gates).
    """
    if bias is None:
        return drive
    if drive.stride(0) == 0 and drive.shape[0] > 1:
        return (drive[0] + bias).expand_as(drive)
    return drive + bias


def times_columns(weight: Tensor, columns: Tensor) -> Tensor:
    """Return weight @ columns for a block of few columns, (batch, width, columns).

    As (columns^T weight^T)^T: a row of the product for each column, which BLAS reads the weights
    once for; the plain product of a large matrix and a few columns can be ten times slower.
    """
    if weight.dim() == 2 and columns.shape[0] == 1:
        return torch.mm(columns[0].t(), weight.t()).t().unsqueeze(0)
    return torch.matmul(columns.mT, weight.mT).mT
