"""Stacks by what a user writes after `--cell`: a cell's name, a file's cell, or a whole layer."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from gradflow.cells import CellLike, Stack
from gradflow.cells.stack import output_part
from gradflow.checkpoints.user_cells import load_cell, make_from_place
from gradflow.checkpoints.user_files import is_place
from gradflow.errors import CellLoadError


def load_stack(
    spec: str,
    input_size: int,
    hidden_size: int,
    *,
    layers: int,
    bidirectional: bool,
    dtype: torch.dtype,
    device: torch.device | str,
    **options: Any,
) -> tuple[Stack, bool]:
    """Return a stack of new cells without links, and whether it came whole.

    A name or a file's cell is stacked: made once for every layer and direction, each as wide as
    what the layer below shows. A file that makes a torch layer (nn.LSTM, nn.GRU or nn.RNN) or a
    `Stack` gives it whole, with its own layers, directions and weights. The file is read for every
    cell: one that seeds torch when it is read gives all layers the same weights.

    Args:
        spec: as in `load_cell`.
        input_size, hidden_size: the widths asked for.
        layers, bidirectional: how many cells, where they are stacked here.
        dtype, device: what the cells are converted to.
        **options: for factories that take them by name.

    Raises:
        UnknownNameError: there is no cell of this name.
        CellLoadError: the file does not load, or makes something else.
        ShapeError: the cell's own width does not fit on itself.
    """
    if is_place(spec):
        made = _made(spec, {"input_size": input_size, "hidden_size": hidden_size}, options)
        if isinstance(made, nn.RNNBase | Stack):
            whole = copy.deepcopy(made).to(dtype=dtype, device=device)
            return (whole if isinstance(whole, Stack) else Stack.from_torch(whole)), True
    cells: list[CellLike] = []
    width = input_size
    for _ in range(layers):
        level = [
            load_cell(spec, width, hidden_size, dtype=dtype, device=device, **options)
            for _ in range(2 if bidirectional else 1)
        ]
        cells += level
        width = sum(cell.part_sizes[output_part(cell)] for cell in level)
    return Stack(cells, bidirectional=bidirectional), False


def _made(spec: str, asked: dict[str, int], options: dict[str, Any]) -> object:
    try:
        return make_from_place(spec, asked, options)[0]
    except CellLoadError as error:
        raise CellLoadError(f"--cell {spec}: {error}") from error
