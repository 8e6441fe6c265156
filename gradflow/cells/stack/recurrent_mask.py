"""Dropping parts of the old h where a cell reads it, and nowhere else."""

from __future__ import annotations

import copy

from torch import Tensor

from gradflow.cells.base import Cell
from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.errors import CellLoadError


def require_maskable(cell: CellLike) -> Cell:
    """Return the cell, if it tells where it reads the old h.

    Raises:
        CellLoadError: a user's cell, which does not.
    """
    if not isinstance(cell, Cell):
        raise CellLoadError(
            "recurrent dropout acts on the old h where the gates read it, and only a built-in cell "
            f"tells where that is; this is a {cell.kind}. Use dropout between layers, or put the "
            "mask into the cell."
        )
    return cell


def advance_masked(cell: Cell, drive: Tensor, state: State, mask: Tensor) -> State:
    """Return the new state where gates and candidate read h * mask; what is kept is kept whole.

    Args:
        cell: a built-in cell.
        drive: (batch, gates), from `cell.drive`.
        state: the old state.
        mask: factors (batch, hidden).
    """
    place = cell.parts.index("h")
    old = state[place]
    read = (*state[:place], old * mask, *state[place + 1 :])
    step = cell.compute(drive, read)
    keep = cell.keep_gate
    if keep is None or cell.kept_part != "h":
        return step.state
    # z (h * mask) + (1 - z) n lacks z (h - h * mask)
    whole = step.state[place] + step.gates[keep.name] * (old - read[place])
    return (*step.state[:place], whole, *step.state[place + 1 :])


def with_recurrent_mask(cell: Cell, mask: Tensor) -> Cell:
    """Return the cell as it is under a mask: U (mask * h) is (U diag(mask)) h, row by row.

    It is an ensemble in its recurrent weights (see `stack_cells`), shares all else, and its
    closed-form derivative is the derivative of `advance_masked`. It carries no gradient to the
    weights.

    Args:
        cell: a built-in cell.
        mask: factors (batch, hidden).
    """
    view = copy.copy(cell)
    register = {name: value for name, value in cell._parameters.items() if name != "weight_hh"}
    view.__dict__["_parameters"] = register
    view.__dict__["weight_hh"] = cell.weight_hh.detach() * mask.unsqueeze(-2)
    return view
