"""Files as sides: the weights of one recurrent layer, or a recording of what a network did.

Weights go by torch's names (`weight_ih`, `weight_ih_l0`, ...) or by ONNX's (`W`, `R`, `B`, gates
in the order i, o, f, c and z, r, h; see the operators LSTM, GRU and RNN of the ONNX standard). A
recording holds the inputs `x` (time, batch, input) and the outputs `y` (time, batch, hidden), and
may hold the first state.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gradflow.cells.shapes import State
from gradflow.checkpoints.sides.blocks import STANDARD_ORDER, STANDARD_TENSORS, standard_layout
from gradflow.checkpoints.sides.module_side import LayerSide
from gradflow.checkpoints.sides.protocol import Gradients, Problem, Run, Side, Way, Weights
from gradflow.errors import CellLoadError, ShapeError

_KINDS = {4: "lstm", 3: "gru", 1: "rnn"}
_LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
_ONNX_ORDER = {
    "lstm": ("input", "output", "forget", "candidate"),
    "gru": ("update", "reset", "candidate"),
    "rnn": ("candidate",),
}
X_KEYS = ("x", "X", "xs", "input", "inputs")
Y_KEYS = ("y", "Y", "ys", "output", "outputs", "h_all", "hs")
FIRST_KEYS = {
    "h": ("h0", "h_0", "hx", "h", "initial_h"),
    "c": ("c0", "c_0", "cx", "c", "initial_c"),
}


class RecordingSide(Side):
    """What a network answered to an input: fixed numbers, to be reproduced.

    Only h is known (and c after the last step at most), and nothing of gradients.
    """

    way: Way = "none"
    is_file = True

    def __init__(self, tensors: Mapping[str, Tensor], *, name: str) -> None:
        super().__init__()
        x, y = _first(tensors, X_KEYS), _first(tensors, Y_KEYS)
        assert x is not None
        assert y is not None
        for key, tensor in (("x", x), ("y", y)):
            if tensor.dim() != 3:
                raise ShapeError(
                    f"{name}: {key} must be (time, batch, width); got {tuple(tensor.shape)}."
                )
        if x.shape[:2] != y.shape[:2]:
            raise ShapeError(
                f"{name}: x and y must have the same steps and rows; got {tuple(x.shape[:2])} and "
                f"{tuple(y.shape[:2])}."
            )
        self.name, self.what = name, "a recording of inputs and outputs"
        self.input_size, self.hidden_size = x.shape[2], y.shape[2]
        self.xs, self.ys = x, y
        self._tensors = tensors

    def first_state(self, parts: tuple[str, ...]) -> State:
        """Return the recorded first state; zeros for a part that was not recorded."""
        return first_state(self._tensors, parts, (self.xs.shape[1], self.hidden_size))

    @property
    def weights(self) -> Weights:
        """None: a recording has no weights."""
        return {}

    def run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Return what was recorded."""
        del weights, xs, state
        return Run({"h": self.ys})

    def gradients(self, weights: Weights, problem: Problem) -> Gradients:
        """Recordings have none."""
        raise NotImplementedError


def file_side(tensors: Mapping[str, Tensor], *, name: str) -> Side:
    """Return the side that a file's tensors make.

    Raises:
        CellLoadError: they are neither one layer's weights nor a recording.
        ShapeError: their shapes contradict each other.
    """
    if _first(tensors, X_KEYS) is not None and _first(tensors, Y_KEYS) is not None:
        return RecordingSide(tensors, name=name)
    if {"W", "R"} <= set(tensors):
        return _layer_side(_from_onnx(tensors, name), name=name, source="ONNX's W, R, B")
    plain = torch_weights(tensors)
    if plain is None:
        names = ", ".join(list(tensors)[:6])
        raise CellLoadError(
            f"{name} must hold one recurrent layer's weights (weight_ih, weight_hh, with or "
            "without bias_ih, bias_hh; or ONNX's W, R, B), or a recording (x, y); it has "
            f"{names}. Give a larger model's layer alone."
        )
    return _layer_side(plain, name=name, source="torch's names")


def torch_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """Return one layer's weights without prefix and suffix, or None where they are not that."""
    for key in tensors:
        if key.count("weight_ih") == 1:
            called = key.replace("weight_ih", "{}")
            found = {
                plain: tensors[called.format(plain)]
                for plain in STANDARD_TENSORS
                if called.format(plain) in tensors
            }
            if "weight_hh" in found and len(found) == len(tensors):
                return found
    return None


def first_state(
    tensors: Mapping[str, Tensor], parts: tuple[str, ...], shape: tuple[int, int]
) -> State:
    """Return the first state that a file holds; zeros for a part that it does not hold.

    Raises:
        ShapeError: it has another shape.
    """
    found = []
    for part in parts:
        tensor = _first(tensors, FIRST_KEYS[part])
        tensor = torch.zeros(shape, dtype=torch.float64) if tensor is None else tensor
        tensor = tensor[0] if tensor.dim() == 3 and tensor.shape[0] == 1 else tensor
        if tuple(tensor.shape) != shape:
            raise ShapeError(
                f"the first {part} of the data must be (batch, hidden) = {shape}; got "
                f"{tuple(tensor.shape)}."
            )
        found.append(tensor)
    return tuple(found)


def holds_state(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether a file holds any part of a first state."""
    return any(_first(tensors, keys) is not None for keys in FIRST_KEYS.values())


def data_inputs(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """Return the inputs of a data file as (time, batch, input); one step may lack its time axis.

    Raises:
        ShapeError: there are none, or of another rank.
    """
    x = _first(tensors, X_KEYS)
    if x is None or x.dim() not in (2, 3):
        got = ", ".join(f"{n} {tuple(t.shape)}" for n, t in tensors.items())
        raise ShapeError(
            f"--data {name} must hold x, (time, batch, input) or one step's (batch, input); it "
            f"has {got}."
        )
    return x if x.dim() == 3 else x[None]


def _first(tensors: Mapping[str, Tensor], keys: tuple[str, ...]) -> Tensor | None:
    return next((tensors[key] for key in keys if key in tensors), None)


def _layer_side(weights: Mapping[str, Tensor], *, name: str, source: str) -> Side:
    rows, hidden = weights["weight_hh"].shape
    kind = _KINDS.get(rows // hidden) if rows % hidden == 0 else None
    if kind is None or weights["weight_ih"].shape[0] != rows:
        shapes = ", ".join(f"{n} {tuple(t.shape)}" for n, t in weights.items())
        raise ShapeError(
            f"{name}: weight_hh must be (gates * hidden, hidden) with 4 gates (LSTM), 3 (GRU) or 1 "
            f"(RNN), and weight_ih as high; got {shapes}."
        )
    width = weights["weight_ih"].shape[1]
    layer = _LAYERS[kind](width, hidden, bias="bias_ih" in weights, dtype=torch.float64)
    layer.load_state_dict({f"{key}_l0": value for key, value in weights.items()})
    side = LayerSide(layer, name=name, what=f"weights by {source}, run by torch.nn.{kind.upper()}")
    side.is_file = True
    side.layout = standard_layout(kind, width, hidden, names=list(weights), called="{}_l0")
    return side


def _from_onnx(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return torch's tensors from ONNX's; their first axis counts directions."""
    given = {key: tensors[key] for key in ("W", "R", "B") if key in tensors}
    if any(tensor.shape[0] != 1 for tensor in given.values()):
        raise ShapeError(f"{name}: one direction is compared; W has {given['W'].shape[0]}.")
    rows, hidden = given["R"].shape[1:]
    kind = _KINDS.get(rows // hidden, "rnn")
    found = {"weight_ih": given["W"][0], "weight_hh": given["R"][0]}
    if "B" in given:
        found["bias_ih"], found["bias_hh"] = given["B"][0].chunk(2)
    order = _ONNX_ORDER[kind]
    rows_of = [order.index(gate) for gate in STANDARD_ORDER[kind]]
    return {
        key: torch.cat([tensor[i * hidden : (i + 1) * hidden] for i in rows_of])
        for key, tensor in found.items()
    }
