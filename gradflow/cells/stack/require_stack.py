"""What cells must be to make a stack, and what a stack must be given."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gradflow.cells.protocol import CellLike
from gradflow.cells.stack.dropout import Dropout
from gradflow.cells.stack.layer_run import output_part
from gradflow.cells.stack.recurrent_mask import require_maskable
from gradflow.errors import CellLoadError, DtypeError, ShapeError


def require_layers(cells: Sequence[CellLike], *, directions: int, dropout: Dropout) -> None:
    """Raise unless the cells are torch modules that fit on each other, and can be masked.

    Raises:
        CellLoadError: a cell that is no torch module, or recurrent dropout of a user's cell.
        ShapeError: no cells, half a layer, or a layer that cannot read the one below.
    """
    if not cells or len(cells) % directions:
        each = "two cells a layer, forward and reversed" if directions == 2 else "a cell a layer"
        raise ShapeError(f"a stack needs at least one layer, {each}; got {len(cells)} cells.")
    for cell in cells:
        if not isinstance(cell, nn.Module):
            raise CellLoadError(
                f"a stack is a torch module and so are its cells; got a {type(cell).__name__}. "
                "Wrap a module of your own as gradflow.cells.ForeignCell(module)."
            )
        if dropout.recurrent:
            require_maskable(cell)
    width = cells[0].input_size
    for layer in range(len(cells) // directions):
        own = cells[layer * directions : (layer + 1) * directions]
        for cell in own:
            if cell.input_size != width:
                raise ShapeError(_misfit(layer, cell.input_size, width))
        width = sum(cell.part_sizes[output_part(cell)] for cell in own)


def _misfit(layer: int, own: int, width: int) -> str:
    if layer == 0:
        return (
            "both directions of layer 1 read the same input, so they are equally wide; "
            f"got {width} and {own}."
        )
    return (
        f"layer {layer + 1} must read what layer {layer} shows, {width} numbers (both directions "
        f"side by side); its cell reads {own}. Make it with input_size={width}."
    )


def require_links(widths: Sequence[tuple[int, int]]) -> None:
    """Raise unless a residual link is possible around one of the layers, (input, output) wide."""
    if not any(read == shown for read, shown in widths):
        sizes = ", ".join(f"{read} to {shown}" for read, shown in widths)
        raise ShapeError(
            "a residual link adds a layer's input to its output, so both must be equally wide; "
            f"no layer is: {sizes}. Add a layer, or make input_size and hidden_size equal."
        )


def require_input(x: object, *, width: int, dtype: torch.dtype) -> None:
    """Raise unless x is (time, batch, input) of this width and dtype, with a step."""
    if not isinstance(x, Tensor):
        raise ShapeError(
            f"x must be a padded tensor (time, batch, input); got a {type(x).__name__}. "
            "Of a PackedSequence, give pad_packed_sequence(x)[0] and its lengths=."
        )
    if x.dim() != 3 or x.shape[0] < 1 or x.shape[2] != width:
        raise ShapeError(
            f"x must be (time, batch, {width}) with at least one step; got shape {tuple(x.shape)}."
        )
    if x.dtype != dtype:
        raise DtypeError(f"x must have the stack's dtype {dtype}; got {x.dtype}. Convert one.")
