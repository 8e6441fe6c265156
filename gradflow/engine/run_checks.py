"""Checks of the input that a cell is run on."""

from __future__ import annotations

from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.errors import DtypeError, ShapeError


def require_run(cell: CellLike, x: Tensor, state: State) -> None:
    """Raise unless x is (time, batch, input) with at least one step, for this cell and state."""
    rows = state[0].shape[0]
    if x.dim() != 3 or x.shape[0] < 1:
        raise ShapeError(
            f"x must be (time, batch, input) with at least one step; got shape {tuple(x.shape)}."
        )
    if x.shape[1] != rows or x.shape[2] != cell.input_size:
        raise ShapeError(
            f"x must be (time, {rows}, {cell.input_size}): as many rows as the state, as wide as "
            f"the cell's input; got {tuple(x.shape)}."
        )
    if x.dtype != cell.dtype:
        raise DtypeError(f"x must have the cell's dtype {cell.dtype}; got {x.dtype}.")
