"""What a Lyapunov spectrum is measured of: a cell or any step function, its state and its input."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from gradflow.cells.arguments import require_state
from gradflow.cells.protocol import CellLike, Linearization, Recurrence
from gradflow.cells.shapes import State
from gradflow.engine.generic import GENERIC_CHUNK_ELEMENTS
from gradflow.engine.lyapunov.step_functions import (
    GivenState,
    StepFunction,
    StepFunctionLike,
    differentiate,
)
from gradflow.engine.run_checks import require_run
from gradflow.engine.trajectory import Chunk, chunk_length, constant_input, zero_input
from gradflow.errors import ShapeError, SubjectError


@dataclass(frozen=True)
class Subject:
    """A recurrence, its first state (batch, width) per part and its input (time, batch, ...).

    `recurrence` runs; `measured` is differentiated: the same, or its copy in float64, so that a
    small exponent keeps its digits whatever dtype the trajectory is in. `closed_form` tells whether
    it gives its own derivative.
    """

    recurrence: Recurrence
    measured: Recurrence
    closed_form: bool
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
    def dtype(self) -> torch.dtype:
        """The dtype in which the steps are differentiated."""
        return self.state[0].dtype if self.measured is self.recurrence else torch.float64

    @property
    def resolution(self) -> float:
        """The relative precision of the step Jacobians: half the distance from 1 to the next."""
        return float(torch.finfo(self.dtype).eps) / 2

    def chunk_length(self, steps: int) -> int:
        """Return how many steps to take at once."""
        own = chunk_length(self.recurrence, self.rows, steps)
        if self.closed_form:
            return own
        return max(1, min(own, GENERIC_CHUNK_ELEMENTS // (self.rows * self.state_size**2)))

    def drive_and_states(self, chunk: Chunk) -> tuple[Tensor, State]:
        """Return the chunk's drive and states in the dtype that they are differentiated in."""
        if self.measured is self.recurrence:
            return chunk.drive, chunk.states
        inputs = self.x[chunk.start : chunk.start + chunk.steps].to(self.dtype)
        states = tuple(part.to(self.dtype) for part in chunk.states)
        return self.measured.drive(inputs), states

    def linearize(self, drive: Tensor, states: State, *, columns: int) -> Linearization:
        """Return the step Jacobians, for pushing so many tangents."""
        if self.closed_form and isinstance(self.measured, CellLike):
            return cast(Linearization, self.measured.linearize(drive, states))
        return differentiate(self.measured, drive, states, columns=columns)


def make_subject(step: CellLike | StepFunctionLike, state: GivenState, x: Tensor | int) -> Subject:
    """Return the subject, after checking that step, state and x fit each other.

    Raises:
        ShapeError, DtypeError: they do not.
    """
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
        if x.dim() < 1 or x.shape[0] < 1:
            raise ShapeError(f"x has the steps on its first axis; got shape {tuple(x.shape)}.")
        inputs = function.input_rows(x)
    with torch.no_grad():
        function.advance(inputs[0], function.start)  # what does not fit fails here, not halfway
    wide = _widened(step, inputs, function.start) if isinstance(step, nn.Module) else None
    measured = function if wide is None else StepFunction(wide, state, driven=True)
    return Subject(function, measured, closed_form=False, state=function.start, x=inputs)


def require_step_and_input(step: object, x: object) -> None:
    """Raise unless `step` may be a cell or a step function, and x an input or a number of steps.

    Raises:
        SubjectError: `step` does not step.
        ShapeError: x is neither.
    """
    _require_step(step)
    if isinstance(x, Tensor) and x.layout == torch.strided:
        return
    if not isinstance(x, int) or isinstance(x, bool) or x < 1:
        got = f"a tensor of layout {x.layout}" if isinstance(x, Tensor) else _shown(x)
        raise ShapeError(
            "x is the input of a run, a plain torch.Tensor with the steps on its first axis; or "
            f"the steps of a run without input, a whole number, 1 or more; got {got}."
        )


def _shown(x: object) -> str:
    return repr(x) if x is None or isinstance(x, int | float) else f"a {type(x).__name__}"


def _require_step(step: object) -> None:
    if isinstance(step, nn.RNNBase):
        raise SubjectError(
            f"a spectrum is measured of one step; got the whole layer {type(step).__name__}. "
            "gradflow.from_torch(layer) gives its cells."
        )
    if not callable(step) and not isinstance(step, CellLike):
        raise SubjectError(
            "a spectrum is measured of a cell, or of a function step(x, state) that returns the "
            f"new state; got {type(step).__name__}."
        )


def _cell_subject(cell: CellLike, state: GivenState, x: Tensor | int) -> Subject:
    given = tuple(state) if isinstance(state, list | tuple) else (state,)
    require_state(cell, given)
    inputs = zero_input(cell, given[0].shape[0], x) if isinstance(x, int) else x
    require_run(cell, inputs, given)
    first = tuple(part.unsqueeze(0) for part in given)
    with torch.no_grad():
        closed = cell.linearize(cell.drive(inputs[:1]), first) is not None
    wide = _widened(cell, inputs, given) if isinstance(cell, nn.Module) else None
    measured = wide if isinstance(wide, CellLike) else cell
    return Subject(cell, measured, closed_form=closed, state=given, x=inputs)


def _widened(module: nn.Module, x: Tensor, state: State) -> nn.Module | None:
    """Return a float64 copy of a module in a narrower dtype, or None where that does not step."""
    if state[0].dtype == torch.float64:
        return None
    try:
        wide = copy.deepcopy(module).to(torch.float64)
        parts = tuple(part.to(torch.float64) for part in state)
        with torch.no_grad():
            new = wide(x[0].to(torch.float64), parts[0] if len(parts) == 1 else parts)
    except Exception:  # constants of its own dtype, a device without float64: measured as it is
        return None
    first = new if isinstance(new, Tensor) else next(iter(new))
    return wide if first.dtype == torch.float64 else None
