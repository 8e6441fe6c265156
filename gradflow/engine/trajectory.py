"""Running a cell and keeping the states, a chunk of steps at a time.

The measurement needs every state once, never all at once: memory is that of one chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gradflow.cells.base import Cell
from gradflow.cells.protocol import CellLike, Recurrence
from gradflow.cells.recurrence import run_by_steps
from gradflow.cells.shapes import State

LONGEST_CHUNK = 512
CHUNK_ELEMENTS = 2**20  # about 8 MB of float64 per stored part
CHUNK_FLOPS = 10**11  # about a second of products with the whole matrix: progress is seen


@dataclass(frozen=True)
class Chunk:
    """Some steps of a run: step number `start` + k (from 0) reads `states[..][k]`.

    `drive` is (time, batch, gates); `states` holds the state *before* each step and `last` the
    state after the final one.
    """

    start: int
    drive: Tensor
    states: State
    last: State

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.drive.shape[0]


def chunk_length(cell: Recurrence, batch: int, steps: int) -> int:
    """Return how many steps of this cell to keep at once."""
    stored = CHUNK_ELEMENTS // (batch * cell.hidden_size)
    worked = CHUNK_FLOPS // (8 * batch * cell.hidden_size**3)
    return max(1, min(steps, LONGEST_CHUNK, stored, max(8, worked)))


def run_in_chunks(cell: Recurrence, x: Tensor, state: State, length: int) -> Iterator[Chunk]:
    """Run the cell over x (time, batch, input) from `state`, and yield it chunk by chunk.

    Under a constant input a state that one step leaves as it is stays so for ever: the rest of
    the run is that state, and is not computed again.
    """
    settled = False
    for start in range(0, x.shape[0], length):
        drive = _drive(cell, x[start : start + length])
        if settled:
            before = tuple(part.expand(drive.shape[0], *part.shape) for part in state)
        else:
            run = cell.run if isinstance(cell, Cell) else partial(run_by_steps, cell)
            states = run(drive, state)
            state = tuple(part[-1] for part in states)
            before = tuple(part[:-1] for part in states)
            settled = _is_constant(x) and all(torch.equal(p[-1], p[-2]) for p in states)
        yield Chunk(start=start, drive=drive, states=before, last=state)


def _is_constant(inputs: Tensor) -> bool:
    """Return whether all steps are one and the same memory: its stride in time is 0."""
    return inputs.stride(0) == 0 and inputs.shape[0] > 1


def _drive(cell: Recurrence, inputs: Tensor) -> Tensor:
    """Return the input's share of the pre-activations, once where the input is constant."""
    if _is_constant(inputs):
        once = cell.drive(inputs[:1])
        return once.expand(inputs.shape[0], *once.shape[1:])
    return cell.drive(inputs)


def constant_input(value: Tensor, steps: int) -> Tensor:
    """Return one step's input (batch, input) as a run (time, batch, input) that costs no memory."""
    return value.unsqueeze(0).expand(steps, *value.shape)


def zero_input(cell: CellLike, batch: int, steps: int) -> Tensor:
    """Return `steps` steps of zero input for the cell, (time, batch, input)."""
    zeros = torch.zeros(batch, cell.input_size, dtype=cell.dtype, device=cell.device)
    return constant_input(zeros, steps)
