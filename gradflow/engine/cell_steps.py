"""One cell's steps, pulled back: what reaches the old state and what reaches the input.

    to state:  (ds_t/ds_{t-1})^T v        to input:  (ds_t/dx_t)^T v

In closed form where the cell has one, else by torch.func; as numbers, or as patterns of zeros and
ones that tell whether any path leads there at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from gradflow.cells.base import Cell
from gradflow.cells.protocol import CellLike, Linearization
from gradflow.cells.shapes import State
from gradflow.cells.stack.dropout import mask_at
from gradflow.cells.stack.recurrent_mask import (
    advance_masked,
    require_maskable,
    with_recurrent_mask,
)
from gradflow.engine.generic import step_jacobians
from gradflow.engine.patterns import pattern_of, reached_through

Pulled = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class CellSpan:
    """Some positions of one cell's run: what it read there, and the state before each.

    `inputs` (time, batch, input), `before` (time, batch, width) per part; `recurrent_mask` are
    factors on the h that is read, (time or 1, batch, hidden).
    """

    cell: CellLike
    inputs: Tensor
    before: State
    recurrent_mask: Tensor | None = None


@runtime_checkable  # so that tests can check it where it is annotated
class CellSteps(Protocol):
    """The steps of a span as operators on cotangents (batch, state, columns)."""

    def pull(self, t: int, cotangent: Tensor) -> Pulled:
        """Return what reaches the old state and the input, (batch, width, columns) each."""


def cell_steps(span: CellSpan, *, closed_form: bool = True, pattern: bool = False) -> CellSteps:
    """Return the steps of a span, in closed form where there is one.

    Args:
        span: which steps.
        closed_form: False ignores the cell's closed form.
        pattern: give zeros and ones (with every gate and slope open) in place of numbers.
    """
    if closed_form and has_closed_form(span):
        steps = ClosedSteps(span, open_gates=pattern)
        return PatternOfClosed(steps) if pattern else steps
    jacobians = input_and_state_jacobians(span)
    if pattern:
        jacobians = pattern_of(jacobians)
    return StoredSteps(jacobians, clamped=pattern)


def has_closed_form(span: CellSpan) -> bool:
    """Return whether the cell gives its derivative, and reads its input through W_ih alone."""
    cell = span.cell
    if not isinstance(cell, Cell) or type(cell).drive is not Cell.drive:
        return False
    first = tuple(part[:1] for part in span.before)
    own = cell.linearize(cell.drive(span.inputs[:1]), first)
    return own is not None and type(own).pull_drive is not Linearization.pull_drive


class ClosedSteps:
    """Steps of a built-in cell; under fresh recurrent masks each step has weights of its own."""

    def __init__(self, span: CellSpan, *, open_gates: bool = False) -> None:
        cell = require_maskable(span.cell)
        self.weight = cell.weight_ih.detach()
        drive, masks = cell.drive(span.inputs), span.recurrent_mask
        self._by_step: list[Linearization] = []
        if masks is None or len(masks) == 1:
            view = cell if masks is None else with_recurrent_mask(cell, masks[0])
            self._all = view.linearize(drive, span.before, open_gates=open_gates)
            return
        for t, mask in enumerate(masks):
            before = tuple(part[t : t + 1] for part in span.before)
            view = with_recurrent_mask(cell, mask)
            self._by_step.append(view.linearize(drive[t : t + 1], before, open_gates=open_gates))

    def at(self, t: int) -> tuple[Linearization, int]:
        """Return the linearization that holds step t, and its number there."""
        return (self._by_step[t], 0) if self._by_step else (self._all, t)

    def pull(self, t: int, cotangent: Tensor) -> Pulled:
        """Return what reaches the old state and the input."""
        steps, place = self.at(t)
        to_drive = steps.pull_drive(place, cotangent)
        return steps.pull(place, cotangent), torch.matmul(self.weight.mT, to_drive)


class PatternOfClosed:
    """Where anything of a cotangent can arrive: products of patterns, zeros and ones."""

    def __init__(self, steps: ClosedSteps) -> None:
        self._steps = steps
        self._weight = steps.weight.mT

    def pull(self, t: int, cotangent: Tensor) -> Pulled:
        """Return 1 where a path leads, 0 where none does."""
        steps, place = self._steps.at(t)
        batch, size, _ = cotangent.shape
        units = torch.eye(size, dtype=cotangent.dtype, device=cotangent.device)
        to_drive = steps.pull_drive(place, units.repeat(batch, 1, 1))
        reached = reached_through(to_drive, cotangent)
        to_state = reached_through(steps.dense(place).mT, cotangent)
        return to_state, reached_through(self._weight, reached)


class StoredSteps:
    """Steps as stored matrices (time, batch, state, state + input)."""

    def __init__(self, jacobians: Tensor, *, clamped: bool = False) -> None:
        self._jacobians, self._clamped = jacobians, clamped

    def pull(self, t: int, cotangent: Tensor) -> Pulled:
        """Return what reaches the old state and the input."""
        size = self._jacobians.shape[-2]
        pulled = torch.matmul(self._jacobians[t].mT, cotangent)
        pulled = pattern_of(pulled) if self._clamped else pulled
        return pulled[:, :size], pulled[:, size:]


def input_and_state_jacobians(span: CellSpan) -> Tensor:
    """Return (ds_t/ds_{t-1}, ds_t/dx_t) side by side, (time, batch, state, state + input)."""
    states = (*span.before, span.inputs)
    masks = span.recurrent_mask
    steps = len(span.inputs)
    fed = span.inputs if masks is None else masks.expand(steps, -1, -1)
    jacobians = step_jacobians(_InputInState(span.cell, masked=masks is not None), fed, states)
    size = sum(part.shape[-1] for part in span.before)
    return jacobians[..., :size, :]


class _InputInState:
    """A recurrence whose state has the input as one more part, so that one vjp gives both."""

    def __init__(self, cell: CellLike, *, masked: bool) -> None:
        self._cell, self._masked = cell, masked

    @property
    def hidden_size(self) -> int:
        return self._cell.hidden_size

    def drive(self, x: Tensor) -> Tensor:
        return x

    def advance(self, drive: Tensor, state: State) -> State:
        """Return the new state and the input as it was; `drive` is the mask where there is one."""
        *old, x = state
        entering = self._cell.drive(x)
        if self._masked:
            cell = require_maskable(self._cell)
            return (*advance_masked(cell, entering, tuple(old), drive), x)
        return (*self._cell.advance(entering, tuple(old)), x)


def without_padded_rows(pulled: Pulled, cotangent: Tensor, own: Tensor) -> Pulled:
    """Return what a step pulls in the rows that own it; a padded step hands all to the old state.

    Args:
        pulled: from `CellSteps.pull`.
        cotangent: what was pulled.
        own: (batch,) bool.
    """
    rows = own[:, None, None]
    zero = torch.zeros((), dtype=cotangent.dtype, device=cotangent.device)
    return torch.where(rows, pulled[0], cotangent), torch.where(rows, pulled[1], zero)


def span_at(span: CellSpan, positions: slice) -> CellSpan:
    """Return some of the positions of a span."""
    masks = span.recurrent_mask
    return replace(
        span,
        inputs=span.inputs[positions],
        before=tuple(part[positions] for part in span.before),
        recurrent_mask=masks if masks is None or len(masks) == 1 else masks[positions],
    )


def masked_rows(block: Tensor, mask: Tensor | None, t: int) -> Tensor:
    """Return a block (batch, width, columns) with its rows times a mask's factors at step t."""
    return block if mask is None else block * mask_at(mask, t).unsqueeze(-1)
