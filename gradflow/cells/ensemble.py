"""Many cells as one: row b of the batch runs on the weights of cell b.

Curves for many gate values, gains or seeds then cost one batched run and not a loop.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

from gradflow.cells.base import Cell
from gradflow.errors import ShapeError

CellT = TypeVar("CellT", bound=Cell)


def stack_cells(cells: Sequence[CellT]) -> CellT:
    """Return one cell whose batch row b uses the weights of `cells[b]`.

    Args:
        cells: cells of one kind, widths, dtype and variant (such as the GRU's reset place).

    Returns:
        A cell with parameters (batch, gates, width); its states must have `len(cells)` rows.

    Raises:
        ShapeError: no cells, or cells that differ in more than their weights.
    """
    if not cells:
        raise ShapeError("an ensemble needs at least one cell; got none.")
    first = cells[0]
    for number, cell in enumerate(cells):
        if _form(cell) != _form(first):
            raise ShapeError(
                "the cells of an ensemble differ in their weights alone; "
                f"cell 0 is {_form(first)}, cell {number} is {_form(cell)}."
            )
    ensemble = copy.deepcopy(first)
    with torch.no_grad():
        for name, _ in first.named_parameters():
            stacked = torch.stack([cell.get_parameter(name) for cell in cells])
            setattr(ensemble, name, nn.Parameter(stacked))
    return ensemble


def _form(cell: Cell) -> tuple[object, ...]:
    """Return all that must agree: class, sizes, dtype, variant, which parameters exist."""
    variant = getattr(cell, "reset", getattr(cell, "nonlinearity", None))
    names = tuple(name for name, _ in cell.named_parameters())
    sizes = (cell.input_size, cell.hidden_size)
    return (cell.kind, *sizes, str(cell.dtype), str(cell.device), variant, *names)
