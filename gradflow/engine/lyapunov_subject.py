"""What a Lyapunov spectrum is measured of: a cell or any step function, its state and its input."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from gradflow.cells.arguments import require_state
from gradflow.cells.protocol import CellLike, Linearization, Recurrence
from gradflow.cells.shapes import State
from gradflow.engine.generic import GENERIC_CHUNK_ELEMENTS
from gradflow.engine.jacobian_norms import require_run
from gradflow.engine.step_functions import (
    GivenState,
    StepFunction,
    StepFunctionLike,
    differentiate,
)
from gradflow.engine.trajectory import Chunk, chunk_length, constant_input, zero_input
from gradflow.errors import ShapeError


@dataclass(frozen=True)
class Subject:
    """A recurrence, its first state (batch, width) per part and its input (time, batch, ...).

    `closed_form` is a float64 copy of the cell where it gives its own derivative: a small
    exponent then keeps its digits whatever dtype the trajectory is in.
    """

    recurrence: Recurrence
    closed_form: CellLike | None
    state: State
    x: Tensor

    @property
    def rows(self) -> int:
        """The number of trajectories."""
        return self.state[0].shape[0]

    @property
    def state_size(self) -> int:
        """The width of all parts of the state together."""
        return sum(part.shape[-1] for part in self.state)

    @property
    def resolution(self) -> float:
        """The relative precision of the step Jacobians: half the distance from 1 to the next."""
        dtype = torch.float64 if self.closed_form is not None else self.state[0].dtype
        return float(torch.finfo(dtype).eps) / 2

    def chunk_length(self, steps: int) -> int:
        """Return how many steps to take at once."""
        own = chunk_length(cast(Any, self.recurrence), self.rows, steps)
        if self.closed_form is not None:
            return own
        return max(1, min(own, GENERIC_CHUNK_ELEMENTS // (self.rows * self.state_size**2)))

    def drive_and_states(self, chunk: Chunk) -> tuple[Tensor, State]:
        """Return the chunk's drive and states in the dtype that they are differentiated in."""
        if self.closed_form is None:
            return chunk.drive, chunk.states
        inputs = self.x[chunk.start : chunk.start + chunk.steps].to(torch.float64)
        states = tuple(part.to(torch.float64) for part in chunk.states)
        return self.closed_form.drive(inputs), states

    def linearize(self, drive: Tensor, states: State, *, columns: int) -> Linearization:
        """Return the step Jacobians, for pushing so many tangents."""
        if self.closed_form is None:
            return differentiate(self.recurrence, drive, states, columns=columns)
        return cast(Linearization, self.closed_form.linearize(drive, states))


def make_subject(step: CellLike | StepFunctionLike, state: GivenState, x: Tensor | int) -> Subject:
    """Return the subject, after checking that step, state and x fit each other.

    Raises:
        ShapeError, DtypeError: they do not.
    """
    if isinstance(x, int) and x < 1:
        raise ShapeError(f"x as a number is the steps of a run without input, 1 or more; got {x}.")
    if isinstance(step, CellLike):
        return _cell_subject(step, state, x)
    if isinstance(step, nn.Module) and isinstance(x, int):
        raise ShapeError(
            "a torch module reads an input at every step; got a number of steps for x. "
            "Give (time, batch, input), zeros for a run without input."
        )
    function = StepFunction(step, state, driven=isinstance(x, Tensor))
    rows, first = function.start[0].shape[0], function.start[0]
    if isinstance(x, int):
        inputs = constant_input(first.new_empty(rows, 0), x)
    else:
        inputs = function.input_rows(x)
        if x.dim() < 1 or x.shape[0] < 1:
            raise ShapeError(f"x has the steps on its first axis; got shape {tuple(x.shape)}.")
    with torch.no_grad():
        function.advance(inputs[0], function.start)  # what does not fit fails here, not halfway
    return Subject(function, None, function.start, inputs)


def _cell_subject(cell: CellLike, state: GivenState, x: Tensor | int) -> Subject:
    given = (state,) if isinstance(state, Tensor) else tuple(state)
    require_state(cell, given)
    inputs = zero_input(cell, given[0].shape[0], x) if isinstance(x, int) else x
    require_run(cell, inputs, given)
    first = tuple(part.unsqueeze(0) for part in given)
    with torch.no_grad():
        closed = cell.linearize(cell.drive(inputs[:1]), first) is not None
    wide = copy.deepcopy(cast(nn.Module, cell)).to(torch.float64) if closed else None
    return Subject(cell, cast(CellLike | None, wide), given, inputs)
