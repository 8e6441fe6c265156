"""Checks of what a measurement is made of: a cell, the input of its run and its first state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradflow.cells.arguments import require_state
from gradflow.cells.protocol import CellLike
from gradflow.errors import DtypeError, ShapeError, SubjectError


def require_run(cell: object, x: object, state: object) -> None:
    """Raise unless this is a cell, with a first state and at least one step of input for it.

    Args:
        cell: should follow the protocol of a cell.
        x: should be (time, batch, input).
        state: should have a (batch, width) tensor per part.

    Raises:
        SubjectError: what came is no cell.
        ShapeError, DtypeError: x or state do not fit it.
    """
    if not isinstance(cell, CellLike):
        raise SubjectError(_no_cell(cell))
    require_state(cell, state)
    first: Tensor = state[0]  # type: ignore[index]  # require_state has seen to it
    _require_input(cell, x, rows=first.shape[0])
    for name, tensor in zip(("x", *cell.parts), (x, *state), strict=True):  # type: ignore[misc]
        _require_plain(name, tensor, cell.device)


def _no_cell(given: object) -> str:
    kind = type(given).__name__
    if isinstance(given, nn.Module):
        return (
            "this is measured of a cell, whose gates and state are known by name; got the torch "
            f"module {kind}. gradflow.from_torch(module) gives the cells of torch's recurrent "
            "modules; gradflow.cells.ForeignCell is for a module of your own that steps."
        )
    return f"this is measured of a cell, such as gradflow.cells.LSTM(3, 8); got a {kind}."


def _require_input(cell: CellLike, x: object, *, rows: int) -> None:
    if not isinstance(x, Tensor):
        raise ShapeError(
            f"x must be a torch.Tensor, (time, batch, input); got {type(x).__name__}. "
            "torch.as_tensor makes one of numbers."
        )
    if x.dim() != 3 or x.shape[0] < 1:
        raise ShapeError(
            f"x must be (time, batch, input) with at least one step; got shape {tuple(x.shape)}."
        )
    if rows < 1:
        raise ShapeError(
            "a run has at least one batch row; got none: the first part of the state has shape "
            f"(0, {cell.part_sizes[0]})."
        )
    if x.shape[1] != rows or x.shape[2] != cell.input_size:
        raise ShapeError(
            f"x must be (time, {rows}, {cell.input_size}): as many rows as the state, as wide as "
            f"the cell's input; got {tuple(x.shape)}."
        )
    if x.dtype != cell.dtype:
        raise DtypeError(f"x must have the cell's dtype {cell.dtype}; got {x.dtype}.")


def _require_plain(name: str, tensor: Tensor, device: torch.device) -> None:
    if tensor.layout != torch.strided:
        raise DtypeError(
            f"{name} must be a plain tensor; got layout {tensor.layout}. Use {name}.to_dense()."
        )
    if tensor.device != device:
        raise DtypeError(
            f"{name} must be where the cell is, on {device}; got {tensor.device}. "
            f"Use {name}.to({str(device)!r})."
        )
    if device.type == "meta":
        raise DtypeError(
            "a measurement needs numbers, and tensors on the meta device have none. "
            "Load the weights first."
        )
