"""What is read at the end of a stack's run, as the cotangents that a pull begins with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gradflow.cells.stack import Stack, StackRun
from gradflow.engine.blocks import BlockName, locate_block
from gradflow.engine.scaled import Scaled
from gradflow.errors import UnknownNameError, nearest_name

Read = Literal[
    "state",
    "output",
    "forward state",
    "reverse state",
    "forward output",
    "reverse output",
]
DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class DepthTarget:
    """What is read: the last layer's final states, or its output at each sample's last step.

    `directions` are the numbers of those that are read (0 forward, 1 reverse); of several, the
    rows stand one after the other.
    """

    read: Read
    what: Literal["state", "output"]
    block: BlockName
    directions: tuple[int, ...]

    def state_seeds(self, stack: Stack, run: StackRun) -> list[Scaled | None]:
        """Return for each cell the cotangent of its final state; None where it is not read."""
        seeds: list[Scaled | None] = [None] * len(stack.cells)
        if self.what == "output":
            return seeds
        first, top = 0, (stack.layers - 1) * stack.directions
        total = sum(rows.stop - rows.start for rows in self._rows(stack, run))
        for direction, rows in zip(self.directions, self._rows(stack, run), strict=True):
            final = run.final[top + direction]
            matrix = _units(final[0], sum(part.shape[-1] for part in final), rows, total, first)
            seeds[top + direction] = Scaled.of(matrix)
            first += rows.stop - rows.start
        return seeds

    def output_seed(self, stack: Stack, run: StackRun, t: int) -> Scaled | None:
        """Return the cotangent of the last layer's output at position t, None where not read."""
        if self.what == "state":
            return None
        steps = run.output.shape[0]
        if run.lengths is None:
            here = torch.full((run.output.shape[1],), steps == t + 1, device=run.output.device)
        else:
            here = run.lengths == t + 1
        if not bool(here.any()):
            return None
        sizes = stack.output_sizes(stack.layers - 1)
        total, first = sum(sizes[direction] for direction in self.directions), 0
        matrix = run.output.new_zeros(len(here), sum(sizes), total)
        for direction in self.directions:
            rows = slice(sum(sizes[:direction]), sum(sizes[: direction + 1]))
            matrix += _units(run.output[0], sum(sizes), rows, total, first)
            first += sizes[direction]
        return Scaled.of(torch.where(here[:, None, None], matrix, 0.0))

    def _rows(self, stack: Stack, run: StackRun) -> list[slice]:
        """Return where the part that is read stands in the state of each direction's last cell."""
        top = stack.layers - 1
        found = []
        for direction in self.directions:
            final = run.final[top * stack.directions + direction]
            found.append(locate_block(self.block, stack.cell(top, direction).parts, final).rows)
        return found


def depth_target(stack: Stack, *, read: Read, block: BlockName) -> DepthTarget:
    """Return what is to be read.

    Raises:
        UnknownNameError: nothing of this name can be read, or a direction that is not there.
    """
    if read not in get_args(Read):
        raise UnknownNameError(
            f"what is read is the last state or the last output; got {read!r}. "
            f"{nearest_name(str(read), get_args(Read))}"
        )
    direction, _, what = read.rpartition(" ")
    if direction == "reverse" and stack.directions == 1:
        raise UnknownNameError(
            f"this stack reads forward only, so there is no {read!r}. Use {what!r}, or make it "
            "bidirectional."
        )
    numbers = [DIRECTIONS.index(direction)] if direction else range(stack.directions)
    return DepthTarget(read, "state" if what == "state" else "output", block, tuple(numbers))


def _units(like: Tensor, width: int, rows: slice, total: int, first: int) -> Tensor:
    """Return (batch, width, total) with a unit matrix at these rows, in the columns from first."""
    matrix = like.new_zeros(like.shape[0], width, total)
    size = rows.stop - rows.start
    matrix[:, rows, first : first + size] = torch.eye(size, dtype=like.dtype, device=like.device)
    return matrix
