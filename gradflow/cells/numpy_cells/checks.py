"""What a NumPy cell is given, read as arrays and refused in words when it does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gradflow.cells.numpy_cells.sigmoid import Array
from gradflow.cells.numpy_cells.values import State
from gradflow.errors import ShapeError, UnknownNameError, nearest_name


def read_floating(values: ArrayLike) -> Array:
    """Return a copy as floating point; whole numbers become float64."""
    array = np.asarray(values)  # np.array(torch_tensor) warns of its copy keyword
    dtype = array.dtype if np.issubdtype(array.dtype, np.floating) else np.float64
    return array.astype(dtype, copy=True)


def require_shape(name: str, array: Array, shape: Sequence[int], axes: str) -> None:
    """Raise ShapeError unless `array` has `shape`, whose axes are called `axes`."""
    if array.shape != tuple(shape):
        raise ShapeError(
            f"{name} must be ({axes}) = {tuple(shape)}, to fit the cell and its inputs; "
            f"got {array.shape}."
        )


def require_parameters(parameters: dict[str, Array], gate_count: int) -> None:
    """Raise ShapeError unless weights and biases have torch's shapes for so many gates."""
    weight_hh, weight_ih = parameters["weight_hh"], parameters["weight_ih"]
    if weight_hh.ndim != 2 or weight_hh.shape[0] != gate_count * weight_hh.shape[1]:
        raise ShapeError(
            f"weight_hh must be ({gate_count} * hidden, hidden), one block of rows per gate; "
            f"got {weight_hh.shape}. Transpose it if rows and columns are swapped."
        )
    if weight_ih.ndim != 2:
        raise ShapeError(f"weight_ih must be (gates * hidden, input); got {weight_ih.shape}.")
    rows = weight_hh.shape[0]
    require_shape("weight_ih", weight_ih, (rows, weight_ih.shape[1]), "gates * hidden, input")
    for name in ("bias_ih", "bias_hh"):
        if name in parameters:
            require_shape(name, parameters[name], (rows,), "gates * hidden")


def read_inputs(inputs: ArrayLike, weight_ih: Array) -> Array:
    """Return inputs as (time, batch, input) in the cell's dtype."""
    xs = np.asarray(inputs, weight_ih.dtype)
    width = weight_ih.shape[1]
    if xs.ndim != 3 or xs.shape[2] != width or xs.shape[0] == 0:
        raise ShapeError(
            f"inputs must be (time, batch, input) with input = {width} and at least one step; "
            f"got {xs.shape}. Give a single sequence a batch axis by inputs[:, None, :]."
        )
    return xs


def read_state(name: str, state: State, like: State, parts: tuple[str, ...]) -> State:
    """Return a state's parts in the dtype and shape of `like`."""
    if len(state) != len(parts):
        raise ShapeError(
            f"{name} must be a tuple of {len(parts)} part(s), {parts}, because that is this "
            f"cell's state; got {len(state)}."
        )
    read = tuple(np.asarray(part, like[0].dtype) for part in state)
    for part, array in zip(parts, read, strict=True):
        require_shape(f"{name} part {part!r}", array, like[0].shape, "batch, hidden")
    return read


def require_gates(cut: Iterable[str], gate_order: tuple[str, ...]) -> frozenset[str]:
    """Return the names to cut, each a gate of the cell."""
    closed = frozenset([cut] if isinstance(cut, str) else cut)
    for name in sorted(closed - frozenset(gate_order)):
        raise UnknownNameError(
            f"cut names {name!r}, which is no gate of this cell. {nearest_name(name, gate_order)}"
        )
    return closed
