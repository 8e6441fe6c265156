"""Why a norm is zero: because nothing connects the two states, or because a number underflowed."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockPlace
from gradflow.engine.patterns import reached_through
from gradflow.engine.trajectory import chunk_length, run_in_chunks

ZeroReason = Literal["exact", "underflow"]


def explain_zeros(
    cell: CellLike, x: Tensor, state: State, place: BlockPlace, points: Tensor, measured: Tensor
) -> tuple[tuple[int | None, ...], tuple[ZeroReason | None, ...]]:
    """Return from which of the points on each batch row is zero, and why; None where it is not.

    "exact": the product of the step Jacobians' patterns of non-zero entries, with every gate and
    slope open (a sigmoid or tanh is never truly flat), is zero too: no path leads there.
    "underflow": a path leads there, but its number was too small for the dtype.

    A cell without a closed form is asked for its slopes as they are, so a slope that underflowed
    inside it reads as exact.

    Args:
        cell, x, state: the run that was measured.
        place: the block.
        points: the steps that were measured, ascending.
        measured: ln of the norms there, (points, batch).
    """
    zero = torch.isneginf(measured).cpu()
    first = [int(points[column.int().argmax()]) if column.any() else None for column in zero.T]
    last = max((step for step in first if step is not None), default=0)
    if last == 0:
        return tuple(first), tuple(None for _ in first)
    reached = _reached_by_structure(cell, x[:last], state, place, first)
    reasons: list[ZeroReason | None] = [
        None if step is None else "underflow" if row in reached else "exact"
        for row, step in enumerate(first)
    ]
    return tuple(first), tuple(reasons)


def _reached_by_structure(
    cell: CellLike, x: Tensor, state: State, place: BlockPlace, first: list[int | None]
) -> set[int]:
    """Return the batch rows whose block has an entry, by pattern, at the step of `first`."""
    rows_at: dict[int, list[int]] = {}
    for row, step in enumerate(first):
        if step is not None:
            rows_at.setdefault(step, []).append(row)
    batch = state[0].shape[0]
    units = torch.eye(place.state_size, device=x.device, dtype=x.dtype)
    product = units[:, place.columns].expand(batch, -1, -1)
    found: set[int] = set()
    for chunk in run_in_chunks(cell, x, state, chunk_length(cell, batch, len(x))):
        opened = cell.linearize(chunk.drive, chunk.states, open_gates=True)
        if opened is None:
            return set()
        for t in range(opened.steps):
            product = reached_through(opened.dense(t), product)
            for row in rows_at.get(chunk.start + t + 1, ()):
                if bool(product[row, place.rows].any()):
                    found.add(row)
    return found
