"""Pulling cotangents down a stack: through time in every cell, and from layer to layer.

With A_t^(l) = d target / d s_t^(l) (transposed) and G_t^(l) = d target / d y_t^(l):

    A_t^(l)   = (ds_{t+1}^(l)/ds_t^(l))^T A_{t+1}^(l) + G_t^(l) in the rows of h
    G_t^(l-1) = dropout * (ds_t^(l)/dx_t^(l))^T A_t^(l), summed over directions, + G_t^(l) by a link

A reversed cell goes the other way through time. Nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gradflow.cells.stack import Stack, StackRun, output_part
from gradflow.cells.stack.layer_run import states_before
from gradflow.engine.cell_steps import (
    CellSpan,
    CellSteps,
    masked_rows,
    span_at,
    without_padded_rows,
)
from gradflow.engine.depth_target import DepthTarget
from gradflow.engine.scaled import Scaled, add, placed, rows_of

CHUNK = 64  # positions of one direction that are linearized at once
Blocks = list[Scaled | None]


@runtime_checkable  # so that tests can check it where it is annotated
class Visitor(Protocol):
    """Who is shown each block on the way; None is a block that nothing reaches."""

    def state(self, layer: int, direction: int, t: int, block: Scaled | None) -> None:
        """The cotangent of a layer's state after it read position t (from 0)."""

    def start(self, layer: int, direction: int, block: Scaled | None) -> None:
        """The cotangent of a layer's first state."""

    def input(self, t: int, block: Scaled | None) -> None:
        """The cotangent of the input at position t."""


@dataclass(frozen=True)
class Ways:
    """How the steps of a span are made into operators, and how a block is kept in range."""

    steps: Callable[[CellSpan], CellSteps]
    tidy: Callable[[Scaled], Scaled]


class DepthPull:
    """One pull of a target through a stack's run, from the last layer and its end.

    A stack of one direction is pulled a chunk of time at a time; with two, a layer needs all that
    the one above wants of it first, so all positions are one chunk.
    """

    def __init__(self, stack: Stack, run: StackRun, target: DepthTarget, ways: Ways) -> None:
        self._stack, self._run, self._target, self._ways = stack, run, target, ways
        self._carried = target.state_seeds(stack, run)
        own = run.valid
        self._padded = [False] * len(run.output) if own is None else (~own).any(1).tolist()

    def advance(self, visitor: Visitor) -> Iterator[int]:
        """Pull everything, showing each block to the visitor; yield how many steps are done."""
        steps = len(self._run.output)
        length = CHUNK if self._stack.directions == 1 else steps
        for stop in range(steps, 0, -length):
            positions = range(max(0, stop - length), stop)
            above: Blocks = [self._target.output_seed(self._stack, self._run, t) for t in positions]
            for layer in reversed(range(self._stack.layers)):
                above = self._through_layer(layer, positions, above, visitor)
                yield len(positions) * self._stack.directions
            for t, block in zip(positions, above, strict=True):
                visitor.input(t, block)
        for index, block in enumerate(self._carried):
            visitor.start(*divmod(index, self._stack.directions), block)

    def _through_layer(
        self, layer: int, positions: range, above: Blocks, visitor: Visitor
    ) -> Blocks:
        below: Blocks = list(above) if self._stack.has_link(layer) else [None] * len(above)
        for direction in range(self._stack.directions):
            for t, to_input in self._through_cell(layer, direction, positions, above, visitor):
                below[t - positions.start] = self._tidy(add(below[t - positions.start], to_input))
        return below

    def _through_cell(
        self, layer: int, direction: int, positions: range, above: Blocks, visitor: Visitor
    ) -> Iterator[tuple[int, Scaled | None]]:
        """Pull one cell back along its own time; yield what reaches the layer's input, by step."""
        index = layer * self._stack.directions + direction
        steps = self._ways.steps(self._span(index, slice(positions.start, positions.stop)))
        place = self._places(layer, direction)
        drop = None if self._run.masks is None else self._run.masks.between[layer]
        for t in positions if direction == 1 else reversed(positions):
            shown = rows_of(above[t - positions.start], place.shown)
            into = placed(shown, first=place.first, width=place.width)
            node = self._tidy(add(self._carried[index], into))
            visitor.state(layer, direction, t, node)
            self._carried[index] = node
            if node is None:
                continue
            pulled = steps.pull(t - positions.start, node.matrix)
            if self._padded[t] and self._run.valid is not None:
                pulled = without_padded_rows(pulled, node.matrix, self._run.valid[t])
            self._carried[index] = Scaled(pulled[0], node.exponent)
            yield t, Scaled(masked_rows(pulled[1], drop, t), node.exponent)

    def _span(self, index: int, positions: slice) -> CellSpan:
        run, stack = self._run, self._stack
        before = states_before(
            run.states[index], run.start[index], reverse=stack.is_reversed(index)
        )
        layer, direction = divmod(index, stack.directions)
        whole = CellSpan(
            stack.cell(layer, direction),
            run.inputs[layer],
            before,
            None if run.masks is None else run.masks.recurrent[index],
        )
        return span_at(whole, positions)

    def _places(self, layer: int, direction: int) -> _Places:
        cell = self._stack.cell(layer, direction)
        sizes, part = self._stack.output_sizes(layer), output_part(cell)
        shown = slice(sum(sizes[:direction]), sum(sizes[: direction + 1]))
        return _Places(shown, sum(cell.part_sizes[:part]), sum(cell.part_sizes))

    def _tidy(self, block: Scaled | None) -> Scaled | None:
        return None if block is None else self._ways.tidy(block)


@dataclass(frozen=True)
class _Places:
    """Where a cell's h stands: in the layer's output, and from which row on in its own state."""

    shown: slice
    first: int
    width: int


def ones_of(block: Scaled) -> Scaled:
    """Return 1 where a block is not zero: what a pattern is kept in range by."""
    return Scaled.of((block.matrix != 0).to(block.matrix.dtype))
