"""Why a norm is zero: because nothing connects the two states, or because a number underflowed."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockPlace
from gradflow.engine.trajectory import chunk_length, run_in_chunks

ZeroReason = Literal["exact", "underflow"]


def zero_reason(
    cell: CellLike, x: Tensor, state: State, *, block: BlockPlace, step: int, row: int
) -> ZeroReason:
    """Return why the block of P_step is zero in one batch row.

    "exact": the product of the step Jacobians' patterns of non-zero entries, with every gate and
    slope open (a sigmoid or tanh is never truly flat), is zero too: no path leads there.
    "underflow": a path leads there, but its number was too small for the dtype.

    A cell without a closed form is asked for its slopes as they are, so a slope that underflowed
    inside it reads as exact.
    """
    reached: Tensor | None = None
    length = min(step, chunk_length(cell, state[0].shape[0], step))
    for chunk in run_in_chunks(cell, x[:step], state, length):
        linearization = cell.linearize(chunk.drive, chunk.states, open_gates=True)
        if linearization is None:
            return "exact"
        for t in range(linearization.steps):
            pattern = (linearization.dense(t)[row] != 0).to(torch.float32)
            if reached is None:
                reached = torch.eye(len(pattern)).to(pattern)[:, block.columns]
            reached = ((pattern @ reached) > 0).to(torch.float32)
    return "exact" if reached is None or not bool(reached[block.rows].any()) else "underflow"


def explain_zeros(
    cell: CellLike, x: Tensor, state: State, place: BlockPlace, points: Tensor, measured: Tensor
) -> tuple[tuple[int | None, ...], tuple[ZeroReason | None, ...]]:
    """Return from which of the points on each batch row is zero, and why; None where it is not.

    Args:
        points: the steps that were measured.
        measured: ln of the norms there, (points, batch).
    """
    first: list[int | None] = []
    reasons: list[ZeroReason | None] = []
    for row in range(measured.shape[1]):
        zeros = points[torch.isneginf(measured[:, row])]
        step = int(zeros[0]) if len(zeros) else None
        first.append(step)
        reasons.append(
            None if step is None else zero_reason(cell, x, state, block=place, step=step, row=row)
        )
    return tuple(first), tuple(reasons)
