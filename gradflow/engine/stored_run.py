"""A run that vectors can be pushed and pulled through as often as it takes.

The state before each stretch of about sqrt(T) steps is kept; what lies between is computed again
when it is needed. Where all of it is small it is kept as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization
from gradflow.cells.shapes import Block, State
from gradflow.engine.log_norms import LN2, log_norm
from gradflow.engine.matrix_powers import scale_by_powers_of_two_
from gradflow.engine.norm_readers import SafeRange
from gradflow.engine.trajectory import Chunk, run_in_chunks

KEPT_ELEMENTS = 2**24  # step coefficients that are kept, about 128 MB of float64
COEFFICIENTS = 12  # numbers per unit and step that a linearization holds, about
SHORTEST = 16

Scaled = tuple[Tensor, list[int]]


class StoredRun:
    """A run of a cell with a closed form, for products with its Jacobian P_T and its transpose.

    Memory beside the weights is O(sqrt(T) H), or up to 128 MB where all coefficients fit in it.

    Args:
        cell: a cell or an ensemble that gives its own step Jacobians.
        x: (time, batch, input).
        state: the state before the first step.
    """

    def __init__(self, cell: CellLike, x: Tensor, state: State) -> None:
        self._cell, self._x = cell, x
        steps, batch = x.shape[:2]
        self._length = min(steps, max(SHORTEST, math.isqrt(steps) + 1))
        elements = steps * batch * sum(cell.part_sizes) * COEFFICIENTS
        self._keeps_all = elements <= KEPT_ELEMENTS
        self._kept: list[Linearization] = []
        self._starts: list[State] = []
        self.final_state = state

    def follow(self) -> Iterator[tuple[Chunk, Linearization]]:
        """Run once from beginning to end, before the first product; yield every stretch."""
        state = self.final_state
        for chunk in run_in_chunks(self._cell, self._x, state, self._length):
            self._starts.append(state)
            steps = self._linearize(chunk)
            if self._keeps_all:
                self._kept.append(steps)
            state = self.final_state = chunk.last
            yield chunk, steps

    def push(self, block: Block, steps: int) -> Scaled:
        """Return P_T @ block for T = steps as (block, exponents): times 2**exponent each."""
        exponents = [0] * block.shape[0]
        for stretch in range(self._stretches(steps)):
            through = self._stretch(stretch)
            for t in range(min(through.steps, steps - stretch * self._length)):
                block, exponents = _take(partial(through.push, t), block, exponents)
        return block, exponents

    def pull(self, block: Block, steps: int) -> Scaled:
        """Return P_T^T @ block for T = steps as (block, exponents)."""
        exponents = [0] * block.shape[0]
        for stretch in reversed(range(self._stretches(steps))):
            through = self._stretch(stretch)
            for t in reversed(range(min(through.steps, steps - stretch * self._length))):
                block, exponents = _take(partial(through.pull, t), block, exponents)
        return block, exponents

    def _stretches(self, steps: int) -> int:
        return -(-steps // self._length)

    def _stretch(self, index: int) -> Linearization:
        if self._keeps_all:
            return self._kept[index]
        first = index * self._length
        x = self._x[first : first + self._length]
        (chunk,) = run_in_chunks(self._cell, x, self._starts[index], self._length)
        return self._linearize(chunk)

    def _linearize(self, chunk: Chunk) -> Linearization:
        steps = self._cell.linearize(chunk.drive, chunk.states)
        if steps is None:
            raise RuntimeError("the cell lost its closed form while it was measured")
        return steps


def _take(
    move: Callable[[Block], Block], block: Block, exponents: list[int]
) -> tuple[Block, list[int]]:
    """Return move(block) near the middle of the numbers, and its exponents.

    A step that leaves the range where squares are safe is taken again, from a block that was
    scaled towards it: weights of 1e-200 leave nothing of an ordinary block but its exponent.
    """
    safe, most = SafeRange(block.dtype), 2.0 ** (-math.log2(torch.finfo(block.dtype).tiny) / 8)
    moved = move(block)
    sizes = torch.linalg.vector_norm(moved, dim=(1, 2)).tolist()
    if 1.0 / most < min(sizes) and sum(sizes) < most:
        return moved, exponents
    if not safe.holds(sizes):
        far = int(math.log2(torch.finfo(block.dtype).max)) // 2
        shifts = [far * (size <= safe.low) - far * (not size < safe.high) for size in sizes]
        again = move(scale_by_powers_of_two_(block.clone(), shifts))
        # where a slope is zero a larger block may leave the numbers before it meets it
        better = torch.isfinite(again).flatten(1).all(dim=1)
        moved = torch.where(better[:, None, None], again, moved)
        shifts = [shift * taken for shift, taken in zip(shifts, better.tolist(), strict=True)]
        exponents = [e - shift for e, shift in zip(exponents, shifts, strict=True)]
    logs = log_norm(moved).tolist()
    shifts = [-round(log / LN2) if math.isfinite(log) else 0 for log in logs]
    scale_by_powers_of_two_(moved, shifts)
    return moved, [e - shift for e, shift in zip(exponents, shifts, strict=True)]
