"""A stack's states in torch's form: h, or (h, c), with one row per cell in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.errors import ShapeError


def pack_states(cells: Sequence[CellLike], states: tuple[State, ...]) -> Any:
    """Return states as h or (h, c), each (cells, batch, width), where the cells are alike."""
    if not _alike(cells):
        return states
    parts = tuple(torch.stack(rows) for rows in zip(*states, strict=True))
    return parts[0] if len(parts) == 1 else parts


def unpack_states(cells: Sequence[CellLike], given: Any) -> tuple[State, ...]:
    """Return the state of each cell, from torch's form or from a tuple of them.

    Raises:
        ShapeError: another number of parts or of cells.
    """
    if not isinstance(given, Tensor | tuple | list):
        raise ShapeError(
            f"the state of a stack is h, or a tuple such as (h, c); got a {type(given).__name__}."
        )
    if not _alike(cells):
        return tuple(given)
    parts = (given,) if isinstance(given, Tensor) else tuple(given)
    names = cells[0].parts
    shapes = [tuple(getattr(part, "shape", ())) for part in parts]
    if len(parts) != len(names) or any(shape[:1] != (len(cells),) for shape in shapes):
        raise ShapeError(
            f"the state of this stack is {', '.join(names)}, each (cells, batch, width) with "
            f"{len(cells)} cells, a row for each layer and direction; got {shapes}."
        )
    return tuple(zip(*parts, strict=True))


def _alike(cells: Sequence[CellLike]) -> bool:
    return len({(cell.parts, cell.part_sizes) for cell in cells}) == 1
