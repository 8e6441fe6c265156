"""Running one cell along a padded batch, from either end."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.base import Cell
from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.cells.stack.dropout import mask_at
from gradflow.cells.stack.recurrent_mask import advance_masked, require_maskable


def output_part(cell: CellLike) -> int:
    """Return which part of the state a layer hands on: h, else the first."""
    return cell.parts.index("h") if "h" in cell.parts else 0


def run_cell(
    cell: CellLike,
    x: Tensor,
    start: State,
    *,
    reverse: bool = False,
    valid: Tensor | None = None,
    recurrent_mask: Tensor | None = None,
) -> State:
    """Return the state after reading each position, one (time, batch, width) tensor per part.

    A padded step leaves the state as it is, so a reversed cell starts at each sample's own end.

    Args:
        cell: any cell.
        x: (time, batch, input), with padded steps zeroed.
        start: the state before the first step that is read.
        reverse: read from the last position to the first.
        valid: (time, batch) bool, which steps are a sample's own; all where None.
        recurrent_mask: factors on the old h where it is read, (time or 1, batch, hidden).
    """
    drive = cell.drive(x)
    plain = valid is None and recurrent_mask is None
    if plain and isinstance(cell, Cell) and not torch.is_grad_enabled():
        states = cell.run(drive.flip(0) if reverse else drive, start)
        return tuple(part[1:].flip(0) if reverse else part[1:] for part in states)
    padded = [] if valid is None else (~valid).any(dim=1).tolist()
    order = reversed(range(x.shape[0])) if reverse else range(x.shape[0])
    visited: list[State] = []
    state = start
    for t in order:
        new = _advance(cell, drive[t], state, recurrent_mask, t)
        if valid is not None and padded[t]:
            own = valid[t].unsqueeze(-1)
            new = tuple(torch.where(own, n, old) for n, old in zip(new, state, strict=True))
        state = new
        visited.append(state)
    visited = visited[::-1] if reverse else visited
    return tuple(torch.stack(parts) for parts in zip(*visited, strict=True))


def states_before(states: State, start: State, *, reverse: bool) -> State:
    """Return the state before reading each position, (time, batch, width) per part."""
    if reverse:
        pairs = zip(states, start, strict=True)
        return tuple(torch.cat([part[1:], first.unsqueeze(0)]) for part, first in pairs)
    pairs = zip(states, start, strict=True)
    return tuple(torch.cat([first.unsqueeze(0), part[:-1]]) for part, first in pairs)


def _advance(
    cell: CellLike, drive: Tensor, state: State, recurrent_mask: Tensor | None, t: int
) -> State:
    if recurrent_mask is None:
        return cell.advance(drive, state)
    return advance_masked(require_maskable(cell), drive, state, mask_at(recurrent_mask, t))
