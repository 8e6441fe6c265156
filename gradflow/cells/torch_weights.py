"""Copying weights between our cells and torch's, which share names, shapes and row order."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn

from gradflow.cells.base import Cell
from gradflow.errors import ShapeError

CellT = TypeVar("CellT", bound=Cell)
ModuleT = TypeVar("ModuleT", bound=nn.RNNCellBase)


def torch_options(module: nn.RNNCellBase) -> dict[str, Any]:
    """Return bias, dtype and device of a torch cell, as arguments for one of ours."""
    weight = module.weight_hh
    return {"bias": module.bias, "dtype": weight.dtype, "device": weight.device}


def copy_weights(module: nn.RNNCellBase, cell: CellT) -> CellT:
    """Copy every parameter of a torch cell into `cell` and return it.

    They are read as attributes: a weight that is computed (weight norm) comes as it is now.
    """
    names = [name for name, _ in cell.named_parameters()]
    cell.load_state_dict({name: getattr(module, name).detach() for name in names})
    return cell


def load_torch_cell(torch_type: type[ModuleT], cell: Cell, **options: Any) -> ModuleT:
    """Return a torch cell of this type with a copy of our cell's parameters.

    Raises:
        ShapeError: the cell is an ensemble, which torch's cells cannot hold.
    """
    if cell.weight_hh.dim() != 2:
        raise ShapeError(
            "an ensemble has its own weights for every batch row, which a torch cell cannot hold; "
            "convert its members one by one."
        )
    module = torch_type(
        cell.input_size,
        cell.hidden_size,
        bias=cell.bias_ih is not None,
        dtype=cell.dtype,
        device=cell.device,
        **options,
    )
    with torch.no_grad():
        module.load_state_dict(cell.state_dict())
    return module
