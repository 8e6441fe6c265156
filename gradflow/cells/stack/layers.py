"""The shape of a stack: which cell reads what, how wide each layer is, where the links are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import nn

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.cells.stack.dropout import Dropout
from gradflow.cells.stack.layer_run import output_part
from gradflow.cells.stack.require_stack import require_cells, require_layers, require_links

States = tuple[State, ...]


class Layers(nn.Module):
    """Cells in layers and directions; `Stack` runs them.

    Args: see `Stack`.
    """

    def __init__(
        self,
        cells: Sequence[CellLike],
        *,
        bidirectional: bool = False,
        residual: bool = False,
        dropout: float | Dropout = 0.0,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        self.directions = 2 if bidirectional else 1
        self.dropout = dropout if isinstance(dropout, Dropout) else Dropout(between=dropout)
        self.residual, self.batch_first = residual, batch_first
        require_cells(cells)
        require_layers(cells, directions=self.directions, dropout=self.dropout)
        self.cells = nn.ModuleList(cast(Sequence[nn.Module], cells))
        if residual:
            require_links(
                [(self.cell(k).input_size, sum(self.output_sizes(k))) for k in range(self.layers)]
            )

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self.cells) // self.directions

    @property
    def input_size(self) -> int:
        """Width of x."""
        return self.cell(0).input_size

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the first cell computes in."""
        return self.cell(0).dtype

    def cell(self, layer: int, direction: int = 0) -> CellLike:
        """Return a cell; layers count from 0, direction 1 is the reversed one."""
        return cast(CellLike, self.cells[layer * self.directions + direction])

    def cells_of(self, layer: int) -> list[CellLike]:
        """Return the cells of a layer, one for each direction."""
        return [self.cell(layer, direction) for direction in range(self.directions)]

    def output_sizes(self, layer: int) -> list[int]:
        """Return how wide each direction's share of a layer's output is."""
        return [cell.part_sizes[output_part(cell)] for cell in self.cells_of(layer)]

    def has_link(self, layer: int) -> bool:
        """Return whether a residual link leads around a layer."""
        wide = sum(self.output_sizes(layer)) == self.cell(layer).input_size
        return self.residual and wide

    def initial_state(self, batch: int = 1) -> States:
        """Return every cell's first state, in torch's order."""
        return tuple(cast(CellLike, cell).initial_state(batch) for cell in self.cells)

    def extra_repr(self) -> str:
        """Return what a printed stack says beside its cells."""
        return f"bidirectional={self.directions == 2}, residual={self.residual}, {self.dropout}"

    def all_cells(self) -> list[CellLike]:
        """Return the cells in torch's order."""
        return [cast(CellLike, cell) for cell in self.cells]

    def is_reversed(self, index: int) -> bool:
        """Return whether a cell, by its number in torch's order, reads from the end."""
        return self.directions == 2 and index % 2 == 1
