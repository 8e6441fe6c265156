"""Any step function `new_state = step(x_t, state)` as a subject of the engine.

The function is torch code; `torch.func` differentiates it. It is given the state in the form that
its user gave it, a tensor or a tuple, with a batch axis or without.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization, Recurrence, Step
from gradflow.cells.shapes import Block, State, StepJacobian
from gradflow.engine.generic import step_jacobians
from gradflow.engine.stored_jacobians import StoredJacobians
from gradflow.errors import DtypeError, ShapeError

StepFunctionLike = Callable[[Any, Any], Any]
GivenState = Tensor | tuple[Tensor, ...] | list[Tensor]

# From this width on, pushing a few tangents is cheaper than a whole step Jacobian.
WIDE, FEW = 64, 8


class StepFunction:
    """A step function with the few methods that running and differentiating a cell needs.

    Args:
        function: called as `function(x_t, state)`, with None for x_t where there is no input; it
            returns the new state in the form of `state`.
        state: the first state: one tensor or a tuple of them, each (batch, width); or (width,)
            or a single number, where there is one trajectory without a batch axis.
        driven: whether there is an input.
    """

    def __init__(self, function: StepFunctionLike, state: GivenState, *, driven: bool) -> None:
        parts = tuple(state) if isinstance(state, list | tuple) else (state,)
        for part in parts:
            if not isinstance(part, Tensor) or not part.is_floating_point():
                got = part.dtype if isinstance(part, Tensor) else type(part).__name__
                raise DtypeError(f"the state must be floating-point tensors; got {got}.")
        _require_plain_shapes(parts)
        self._function, self._driven = function, driven
        self._single = isinstance(state, Tensor)
        self._shapes = None if parts[0].dim() >= 2 else [part.shape for part in parts]
        single = self._shapes is not None
        self.start: State = tuple(part.reshape(1, -1) if single else part for part in parts)
        self.hidden_size = sum(part.shape[-1] for part in self.start)

    def input_rows(self, x: Tensor) -> Tensor:
        """Return the input as (time, batch, ...), whichever form the state has."""
        return x if self._shapes is None else x.unsqueeze(1)

    def drive(self, x: Tensor) -> Tensor:
        """Return x: the function alone knows what becomes of it."""
        return x

    def advance(self, drive: Tensor, state: State) -> State:
        """Return the new state, one (batch, width) tensor per part."""
        if self._shapes is None:
            return self._call(drive, state)
        rows = [self._call_alone(x, row) for x, *row in zip(drive, *state, strict=True)]
        return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))

    def _call_alone(self, x: Tensor, row: list[Tensor]) -> State:
        """Call for one row, as the function knows its state: without a batch axis."""
        shapes = self._shapes or []
        given = tuple(part.reshape(shape) for part, shape in zip(row, shapes, strict=True))
        return tuple(part.reshape(-1) for part in self._call(x, given))

    def _call(self, x: Tensor, given: State) -> State:
        new = self._function(x if self._driven else None, given[0] if self._single else given)
        state = new.state if isinstance(new, Step) else new
        parts = tuple(state) if isinstance(state, list | tuple) else (state,)
        _require_like(parts, given)
        return parts


def _require_plain_shapes(parts: tuple[Tensor, ...]) -> None:
    shapes = [tuple(part.shape) for part in parts]
    alike = len({len(shape) == 2 for shape in shapes}) == 1
    if not alike or any(len(shape) > 2 for shape in shapes):
        raise ShapeError(
            "the state is one tensor or a tuple of them, all (batch, width) or all without a "
            f"batch axis; got shapes {shapes}."
        )
    if len({shape[0] for shape in shapes if len(shape) == 2}) > 1 or not all(
        part.numel() for part in parts
    ):
        raise ShapeError(
            "each part of the state has the same batch rows, one or more, of at least one number; "
            f"got shapes {shapes}."
        )


def _require_like(parts: tuple[Any, ...], given: State) -> None:
    """Raise unless a step returned what can be a state again."""
    for part in parts:
        if not isinstance(part, Tensor) or not part.is_floating_point():
            got = part.dtype if isinstance(part, Tensor) else type(part).__name__
            raise DtypeError(
                "a step returns a state like the one it was given, of floating-point tensors; "
                f"got {got}."
            )
    shapes = [tuple(part.shape) for part in parts]
    if shapes != [tuple(part.shape) for part in given]:
        raise ShapeError(
            "a step returns a state like the one it was given, because it is given it again; "
            f"got shapes {shapes} for {[tuple(part.shape) for part in given]}."
        )


class PushedTangents(Linearization):
    """Step Jacobians as forward derivatives, column by column: for few columns of many."""

    def __init__(self, subject: Recurrence, drive: Tensor, states: State) -> None:
        self._subject, self._drive = subject, drive
        self._joint = torch.cat(states, dim=-1)
        self._widths = [part.shape[-1] for part in states]
        self.steps = drive.shape[0]

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent."""
        joint = self._joint[t]

        def new_state(old: Tensor) -> Tensor:
            parts = torch.split(old, self._widths, dim=-1)
            return torch.cat(self._subject.advance(self._drive[t], parts), dim=-1)

        def along(column: Tensor) -> Tensor:
            moved: Tensor = torch.func.jvp(new_state, (joint,), (column,))[1]
            return moved

        pushed = torch.func.vmap(along, in_dims=-1, out_dims=-1)(tangent.to(joint.dtype))
        product: Tensor = pushed.detach().to(tangent.dtype)
        return product if out is None else out.copy_(product)

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent, from the whole Jacobian."""
        return torch.matmul(self.dense(t).mT, cotangent)

    def dense(self, t: int) -> StepJacobian:
        """Return J_t."""
        states = torch.split(self._joint[t : t + 1], self._widths, dim=-1)
        jacobians = step_jacobians(self._subject, self._drive[t : t + 1], states)
        return jacobians[0].to(torch.float64)


def differentiate(
    subject: Recurrence, drive: Tensor, states: State, *, columns: int
) -> Linearization:
    """Return the step Jacobians of a subject without a closed form.

    Args:
        subject: the function or the user's cell.
        drive: (time, batch, ...).
        states: the states before each step, one (time, batch, width) tensor per part.
        columns: how many tangents will be pushed.
    """
    size = sum(part.shape[-1] for part in states)
    if size >= WIDE and columns * FEW <= size:
        pushed = PushedTangents(subject, drive, states)
        try:
            with warnings.catch_warnings():  # torch's own, when it first loads forward derivatives
                warnings.simplefilter("ignore", DeprecationWarning)
                pushed.push(0, torch.cat(states, dim=-1)[0].new_ones(drive.shape[1], size, 1))
        except (RuntimeError, NotImplementedError):  # no forward derivative of something inside
            pass
        else:
            return pushed
    return StoredJacobians(step_jacobians(subject, drive, states).to(torch.float64))
