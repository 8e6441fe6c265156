"""A chunk of steps by path: whole, detours, and without each gate, from whatever the cell gives."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization
from gradflow.cells.shapes import Block, State, StepJacobian
from gradflow.engine.generic import (
    GENERIC_CHUNK_ELEMENTS,
    realised_keep_gate,
    step_jacobians,
)
from gradflow.engine.paths.cut_gates import cut_step_jacobians
from gradflow.engine.paths.products import StepPaths
from gradflow.engine.patterns import pattern_of, reached_through
from gradflow.engine.stored_jacobians import StoredJacobians
from gradflow.engine.trajectory import chunk_length
from gradflow.errors import CellLoadError


class PathSteps:
    """Makes the step Jacobians of each path for one chunk after the other.

    Args:
        cell: whose steps.
        cut: gates that are taken as constants along every path.
        each: gates that are, one at a time, taken as constants besides.
        kept: where the kept part lies in the state.
    """

    def __init__(
        self, cell: CellLike, cut: Collection[str], each: Collection[str], *, kept: slice
    ) -> None:
        self.cell, self._cut, self._kept = cell, frozenset(cut), kept
        self.each = list(each)
        self.notes: list[str] = []

    def chunk_length(self, state: State, steps: int) -> int:
        """Return how many steps to take at once."""
        rows, size = state[0].shape[0], sum(part.shape[-1] for part in state)
        stored = GENERIC_CHUNK_ELEMENTS // (rows * size**2 * (1 + len(self.each)))
        return max(1, min(chunk_length(self.cell, rows, steps), stored))

    def take(self, drive: Tensor, states: State) -> StepPaths:
        """Return the step Jacobians at these states.

        Raises:
            CellLoadError: gates of `cut` cannot be taken as constants.
        """
        whole = self.cell.linearize(drive, states, cut=self._cut)
        if whole is None:
            return self._take_dense(drive, states)
        without = {name: self._without(name, drive, states) for name in self.each}
        return StepPaths(whole, whole.detour(), whole.keep, without)

    def take_patterns(self, drive: Tensor, states: State) -> StepPaths | None:
        """Return which entries of the step Jacobians are open by structure, or None if unknown."""
        opened = self.cell.linearize(drive, states, open_gates=True, cut=self._cut)
        if opened is None:
            return None
        without = {
            name: Patterns(self._without(name, drive, states, open_gates=True))
            for name in self.each
        }
        keep = None if opened.keep is None else torch.ones_like(opened.keep)
        return StepPaths(Patterns(opened), Patterns(opened.detour()), keep, without)

    def _without(
        self, name: str, drive: Tensor, states: State, *, open_gates: bool = False
    ) -> Linearization:
        cut = self._cut | {name}
        steps = self.cell.linearize(drive, states, open_gates=open_gates, cut=cut)
        if steps is None:
            raise RuntimeError("the cell gave a closed form before, and gives none now")
        return steps

    def _take_dense(self, drive: Tensor, states: State) -> StepPaths:
        cell = self.cell
        jacobians = (
            cut_step_jacobians(cell, drive, states, self._cut)
            if self._cut
            else step_jacobians(cell, drive, states)
        )
        keep = realised_keep_gate(cell, drive, states)
        whole = StoredJacobians(jacobians, keep=keep, kept=self._kept)
        without: dict[str, Linearization] = {}
        for name in list(self.each):
            try:
                cut = cut_step_jacobians(cell, drive, states, self._cut | {name})
            except CellLoadError as error:
                self.each.remove(name)
                self.notes.append(str(error))
            else:
                without[name] = StoredJacobians(cut)
        return StepPaths(whole, None if keep is None else whole.detour(), keep, without)


class Patterns(Linearization):
    """Which entries of step Jacobians are not zero: products then say what reaches what."""

    def __init__(self, steps: Linearization) -> None:
        self._given, self.steps = steps, steps.steps

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return 1 where an entry of J_t meets one of the tangent, 0 elsewhere."""
        reached = reached_through(self._given.dense(t), tangent)
        return reached if out is None else out.copy_(reached)

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return 1 where an entry of J_t^T meets one of the cotangent, 0 elsewhere."""
        return reached_through(self._given.dense(t).mT, cotangent)

    def dense(self, t: int) -> StepJacobian:
        """Return the pattern of J_t, ones and zeros."""
        return pattern_of(self._given.dense(t))
