"""What cells must be to make a stack, and what a stack must be given."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from gradflow.cells.protocol import CellLike
from gradflow.cells.registry import find_factory
from gradflow.cells.stack.dropout import Dropout, DropoutMasks
from gradflow.cells.stack.layer_run import output_part
from gradflow.cells.stack.recurrent_mask import require_maskable
from gradflow.errors import (
    CellLoadError,
    DtypeError,
    ShapeError,
    UnknownNameError,
    nearest_name,
)


def require_cells(cells: object) -> None:
    """Raise unless these are several cells, all torch modules, that compute in one dtype.

    Raises:
        CellLoadError: no list, or something in it that is no cell.
        DtypeError: two dtypes.
    """
    if not isinstance(cells, Sequence | nn.ModuleList):
        raise CellLoadError(
            "a stack takes a list of cells, layer by layer (gradflow.Stack.build makes them); "
            f"got a {type(cells).__name__}."
        )
    for cell in cells:
        if not isinstance(cell, nn.Module) or not isinstance(cell, CellLike):
            raise CellLoadError(
                f"a stack is a torch module and so are its cells; got a {type(cell).__name__}. "
                "Wrap a module of your own as gradflow.cells.ForeignCell(module)."
            )
    dtypes = list(dict.fromkeys(str(cell.dtype) for cell in cells))
    if len(dtypes) > 1:
        raise DtypeError(
            "each layer reads what the one below shows, so all compute in one dtype; got "
            f"{' and '.join(dtypes)}. Convert the cells: cell.to(...)."
        )


def require_layers(cells: Sequence[CellLike], *, directions: int, dropout: Dropout) -> None:
    """Raise unless the cells fit on each other, and can be masked.

    Raises:
        CellLoadError: recurrent dropout of a user's cell.
        ShapeError: no cells, half a layer, or a layer that cannot read the one below.
    """
    if not cells or len(cells) % directions:
        each = "two cells a layer, forward and reversed" if directions == 2 else "a cell a layer"
        raise ShapeError(f"a stack needs at least one layer, {each}; got {len(cells)} cells.")
    for cell in cells:
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


def require_count(name: str, value: object) -> None:
    """Raise unless this counts something, from 1 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ShapeError(f"{name} is a whole number and at least 1; got {value!r}.")


def require_options(cell: str, options: Iterable[str]) -> None:
    """Raise unless a cell could have these options; those of other built-in cells are left out.

    Raises:
        UnknownNameError: no such cell or option.
    """
    takes = inspect.signature(find_factory(cell)).parameters
    known = {*takes, "bias", "device", "dtype", "nonlinearity", "reset"}
    known -= {"input_size", "hidden_size"}
    anything = any(taken.kind is taken.VAR_KEYWORD for taken in takes.values())
    unknown = [] if anything else [name for name in options if name not in known]
    if unknown:
        instead = " Use layers=." if unknown[0] == "num_layers" else ""
        raise UnknownNameError(
            f"a stack of {cell} cells has no option {unknown[0]!r}.{instead} "
            f"{nearest_name(unknown[0], known)}"
        )


def require_torch_layer(layer: object) -> None:
    """Raise unless this is one of torch's recurrent layers."""
    if not isinstance(layer, nn.RNNBase):
        raise CellLoadError(
            f"only nn.LSTM, nn.GRU and nn.RNN are stacks of layers; got a {type(layer).__name__}. "
            "Of single cells make a list: gradflow.Stack([gradflow.cells.LSTM.from_torch(cell)])."
        )


def require_masks(
    masks: object, layers: Sequence[int], hidden: Sequence[int], *, steps: int, batch: int
) -> None:
    """Raise unless dropout masks have a row for each sample and a width for each layer and cell.

    Args:
        masks: what came.
        layers: how wide the input of each layer is.
        hidden: how wide the h of each cell is.
        steps, batch: of the input.
    """
    if not isinstance(masks, DropoutMasks):
        raise ShapeError(
            f"masks= takes what stack.draw_masks(steps, batch) gives; got a {type(masks).__name__}."
        )
    for name, found, widths in (
        ("layers", masks.between, layers),
        ("cells", masks.recurrent, hidden),
    ):
        if len(found) != len(widths):
            raise ShapeError(
                f"these masks are of a stack of {len(found)} {name}; this one has {len(widths)}."
            )
        for mask, width in zip(found, widths, strict=True):
            fitting = ((1, batch, width), (steps, batch, width))
            if mask is not None and tuple(mask.shape) not in fitting:
                raise ShapeError(
                    f"a dropout mask here is (time or 1, batch, width), {fitting[1]}; got "
                    f"{tuple(mask.shape)}. Draw it for this input: stack.draw_masks({steps}, "
                    f"{batch})."
                )
