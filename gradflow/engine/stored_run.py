"""A run that vectors can be pushed and pulled through as often as it takes.

The state before each stretch of about sqrt(T) steps is kept; what lies between is computed again
when it is needed. Where all of it is small it is kept as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization
from gradflow.cells.shapes import Block, State
from gradflow.engine.matrix_powers import scale_by_powers_of_two_
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
                block = through.push(t, block)
                exponents = _keep_in_range(block, exponents)
        return block, exponents

    def pull(self, block: Block, steps: int) -> Scaled:
        """Return P_T^T @ block for T = steps as (block, exponents)."""
        exponents = [0] * block.shape[0]
        for stretch in reversed(range(self._stretches(steps))):
            through = self._stretch(stretch)
            for t in reversed(range(min(through.steps, steps - stretch * self._length))):
                block = through.pull(t, block)
                exponents = _keep_in_range(block, exponents)
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


def _keep_in_range(block: Tensor, exponents: Sequence[int]) -> list[int]:
    """Take powers of two out of a block, in place, where it has become large or small."""
    info = torch.finfo(block.dtype)
    most = 2.0 ** (-math.log2(info.tiny) / 8)
    sizes = torch.linalg.vector_norm(block, dim=(1, 2)).tolist()
    if 1.0 / most < min(sizes) and sum(sizes) < most:
        return list(exponents)
    shifts = [-math.frexp(s)[1] if 0.0 < s < math.inf else 0 for s in sizes]
    scale_by_powers_of_two_(block, shifts)
    return [e - shift for e, shift in zip(exponents, shifts, strict=True)]
