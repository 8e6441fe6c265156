"""What a recurrent layer is, told by the shapes of its weights.

rows(weight_hh) / hidden is 4 for an LSTM, 3 for a GRU, 1 for a plain RNN; hidden is the columns of
weight_hh, or of weight_hr where an LSTM has a projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from gradflow.checkpoints.layers.found import Kind

_KINDS: dict[int, Kind] = {4: "lstm", 3: "gru", 1: "rnn"}


class UnclearShapes(Exception):
    """Shapes that belong to no layer that is known; the message says what is wrong."""


@dataclass(frozen=True)
class LayerShape:
    """Kind and widths of one layer and direction; `projection` is None without one."""

    kind: Kind
    input_size: int
    hidden_size: int
    projection: int | None
    rows: int


def layer_shape(weights: Mapping[str, Tensor]) -> LayerShape:
    """Return what a layer is by its weight_ih, weight_hh and, with a projection, weight_hr.

    Raises:
        UnclearShapes: a weight is missing, or the shapes contradict each other.
    """
    for name, other in (("weight_ih", "weight_hh"), ("weight_hh", "weight_ih")):
        if name not in weights:
            raise UnclearShapes(f"it has {other} but no {name}")
    inputs, recurrent = weights["weight_ih"], weights["weight_hh"]
    if inputs.dim() != 2 or recurrent.dim() != 2:
        raise UnclearShapes(f"its weights are no matrices ({_shapes(weights)})")
    rows, width = recurrent.shape
    hidden, projection = width, None
    if "weight_hr" in weights:
        projection, hidden = weights["weight_hr"].shape
        if projection != width or rows != 4 * hidden:
            raise UnclearShapes(f"the projection does not fit ({_shapes(weights)})")
    if inputs.shape[0] != rows:
        raise UnclearShapes(f"weight_ih and weight_hh differ in rows ({_shapes(weights)})")
    kind = _KINDS.get(rows // hidden) if rows % hidden == 0 else None
    if kind is None:
        raise UnclearShapes(
            f"weight_hh has {rows / hidden:.3g} times as many rows as columns, and an LSTM has 4, "
            f"a GRU 3, an RNN 1 ({_shapes(weights)})"
        )
    shape = LayerShape(kind, inputs.shape[1], hidden, projection, rows)
    _require_biases(weights, rows)
    return shape


def is_turned(weights: Mapping[str, Tensor]) -> bool:
    """Return whether both matrices are stored as (input, rows) and (hidden, rows)."""
    inputs, recurrent = weights.get("weight_ih"), weights.get("weight_hh")
    if inputs is None or recurrent is None or inputs.dim() != 2 or recurrent.dim() != 2:
        return False
    width, rows = recurrent.shape
    return rows in (3 * width, 4 * width) and inputs.shape[1] == rows


def _require_biases(weights: Mapping[str, Tensor], rows: int) -> None:
    for name in ("bias_ih", "bias_hh"):
        if name in weights and tuple(weights[name].shape) != (rows,):
            raise UnclearShapes(f"{name} must have {rows} numbers ({_shapes(weights)})")


def _shapes(weights: Mapping[str, Tensor]) -> str:
    return ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in weights.items())
