"""Checks of what a cell is called with: rank, width, rows and dtype, each named with both sides."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.errors import DtypeError, ShapeError


def require_tensor(name: str, tensor: object, shape: tuple[int, int], dtype: torch.dtype) -> None:
    """Raise unless this is a tensor of this shape and dtype; the message names both sides.

    Args:
        name: the argument's name: "x", or the name of a part of the state.
        tensor: what came.
        shape: (batch rows, width) as the cell and the other arguments have them.
        dtype: the cell's.
    """
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a torch.Tensor; got {type(tensor).__name__}.")
    axes = "(batch, input)" if name == "x" else "(batch, width)"
    if tensor.dim() != 2:
        raise ShapeError(
            f"{name} must have 2 axes, {axes}, here {shape}; "
            f"got {tensor.dim()}: shape {tuple(tensor.shape)}."
        )
    if tensor.shape[1] != shape[1]:
        raise ShapeError(
            f"{name} must be {shape[1]} wide, as the cell is; got {tensor.shape[1]}: "
            f"shape {tuple(tensor.shape)}."
        )
    if tensor.shape[0] != shape[0]:
        raise ShapeError(
            f"{name} must have as many batch rows as the rest: {shape[0]}; "
            f"got {tensor.shape[0]}: shape {tuple(tensor.shape)}."
        )
    if tensor.dtype != dtype:
        raise DtypeError(
            f"{name} must have the cell's dtype {dtype}; got {tensor.dtype}. "
            f"Convert one of them: {name}.to({dtype}), or cell.to({tensor.dtype})."
        )


def require_state(cell: CellLike, state: object, *, batch: int | None = None) -> None:
    """Raise unless `state` has one (batch, width) tensor of the cell's dtype per part.

    Args:
        cell: whose state it should be.
        state: what came.
        batch: how many rows it must have; the first part's where None.
    """
    if not isinstance(state, tuple | list) or len(state) != len(cell.parts):
        got = str(len(state)) if isinstance(state, tuple | list) else f"a {type(state).__name__}"
        raise ShapeError(
            f"the state of a {cell.kind} is a tuple with one tensor per part, "
            f"({', '.join(cell.parts)}{',' if len(cell.parts) == 1 else ''}): "
            f"{len(cell.parts)}; got {got}."
        )
    first = state[0]
    rows = first.shape[0] if batch is None and isinstance(first, Tensor) and first.dim() else batch
    for part, width, tensor in zip(cell.parts, cell.part_sizes, state, strict=True):
        require_tensor(part, tensor, (1 if rows is None else rows, width), cell.dtype)
