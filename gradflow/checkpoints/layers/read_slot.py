"""One layer and direction, from stored tensors to a float64 cell with notes on what was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import torch
from torch import Tensor

from gradflow.cells import GRU, LSTM, RNN, Cell, CellLike, ForeignCell
from gradflow.cells.projected_lstm import ProjectedLSTM
from gradflow.cells.rnn import Nonlinearity
from gradflow.checkpoints.layers.found import FoundLayer, Slot
from gradflow.checkpoints.layers.layer_shapes import (
    LayerShape,
    UnclearShapes,
    is_turned,
    layer_shape,
)
from gradflow.checkpoints.layers.reparametrised import Rebuilt, UnknownParametrization, rebuild
from gradflow.checkpoints.layers.stored_numbers import (
    NoNumbers,
    dtype_name,
    find_nonfinite,
    require_numbers,
)

_LEARNED = ("", "raw", "g", "v", "orig", "original", "original0", "original1")
_UNKNOWN_SQUASHING = (
    "Whether the RNN squashes by tanh or relu is not in its weights; tanh is taken, unless "
    "--nonlinearity says relu."
)
_ASK_MODULE = "Measure the module itself: --model file.py:make_model --checkpoint FILE"


class _Where(TypedDict):
    dtype: torch.dtype
    device: str


class UnreadableSlot(Exception):
    """A layer's tensors that make no cell; the message says why, without a full stop."""

    quantised = False


class QuantisedSlot(UnreadableSlot):
    """A layer whose weights are stored as whole numbers."""

    quantised = True


def read_slot(slot: Slot, *, nonlinearity: Nonlinearity | None = None) -> FoundLayer:
    """Return one layer as a cell in float64.

    Args:
        slot: its tensors as stored.
        nonlinearity: of a plain RNN, "tanh" or "relu"; tanh, with a note, where nobody knows.

    Raises:
        UnreadableSlot: numbers that are missing or quantised, a parametrization or shapes that
            are not known.
    """
    rebuilt, stored = _effective(slot)
    weights = {name: found.tensor for name, found in rebuilt.items()}
    notes = list(slot.notes)
    if is_turned(weights):
        weights |= {name: weights[name].mT for name in ("weight_ih", "weight_hh")}
        notes.append("Both matrices are stored turned, (input, rows); they were turned back.")
    try:
        shape = layer_shape(weights)
    except UnclearShapes as problem:
        raise UnreadableSlot(f"{problem}. {_ASK_MODULE}") from problem
    weights, missing = _with_both_biases(weights, shape)
    notes += missing
    dtype = dtype_name(stored.values())
    unsure = (_UNKNOWN_SQUASHING,) if shape.kind == "rnn" and nonlinearity is None else ()
    return FoundLayer(
        name=slot.owner,
        kind=shape.kind,
        layer=slot.level or 0,
        direction="reverse" if slot.reverse else "forward",
        input_size=shape.input_size,
        hidden_size=shape.hidden_size,
        projection=shape.projection,
        bias="bias_ih" in weights,
        layers=1,
        directions=1,
        dtype=dtype,
        parameters=sum(tensor.numel() for tensor in weights.values()),
        cell=_cell(shape, weights, slot, nonlinearity),
        stored=dict(slot.stored),
        rebuilt={name: found.how for name, found in rebuilt.items() if found.how},
        nonfinite=find_nonfinite({slot.stored[n]: rebuilt[n].tensor for n in rebuilt}),
        notes=(*notes, *_notes(slot, shape, rebuilt, dtype), *unsure),
    )


def _effective(slot: Slot) -> tuple[dict[str, Rebuilt], dict[str, Tensor]]:
    """Return every weight as the network used it, and the stored tensors that it came from."""
    rebuilt: dict[str, Rebuilt] = {}
    stored: dict[str, Tensor] = {}
    for name, parts in slot.tensors.items():
        for part, tensor in parts.items():
            if part in _LEARNED:
                stored[f"{name} {part}"] = tensor
        try:
            for part, tensor in parts.items():
                if part != "mask":
                    require_numbers(slot.stored[name], tensor)
            rebuilt[name] = rebuild(parts)
        except NoNumbers as problem:
            kind = QuantisedSlot if problem.quantised else UnreadableSlot
            raise kind(str(problem)) from problem
        except UnknownParametrization as problem:
            raise UnreadableSlot(f"{name}: {problem}. {_ASK_MODULE}") from problem
    return rebuilt, stored


def _with_both_biases(
    weights: Mapping[str, Tensor], shape: LayerShape
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights with zeros for a bias vector that is missing beside the other one."""
    present = [name for name in ("bias_ih", "bias_hh") if name in weights]
    if len(present) != 1:
        return dict(weights), []
    missing = "bias_hh" if present == ["bias_ih"] else "bias_ih"
    zeros = torch.zeros(shape.rows, dtype=torch.float64, device="cpu")
    return {**weights, missing: zeros}, [f"There is one bias vector; {missing} is taken as zero."]


def _cell(
    shape: LayerShape, weights: Mapping[str, Tensor], slot: Slot, nonlinearity: Nonlinearity | None
) -> CellLike:
    cell = _empty_cell(shape, slot, has_bias="bias_ih" in weights, nonlinearity=nonlinearity)
    wrapped = ForeignCell(cell) if isinstance(cell, ProjectedLSTM) else cell
    cell.load_state_dict(dict(weights))  # after it was wrapped, which refuses NaN
    return wrapped


def _empty_cell(
    shape: LayerShape, slot: Slot, *, has_bias: bool, nonlinearity: Nonlinearity | None
) -> Cell | ProjectedLSTM:
    widths = (shape.input_size, shape.hidden_size)
    wide: _Where = {"dtype": torch.float64, "device": "cpu"}
    if shape.projection is not None:
        return ProjectedLSTM(*widths, shape.projection, bias=has_bias, **wide)
    if shape.kind == "lstm":
        return LSTM(*widths, bias=has_bias, **wide)
    if shape.kind == "gru":
        return GRU(*widths, bias=has_bias, reset=slot.reset, **wide)
    return RNN(*widths, bias=has_bias, nonlinearity=nonlinearity or "tanh", **wide)


def _notes(slot: Slot, shape: LayerShape, rebuilt: Mapping[str, Rebuilt], dtype: str) -> list[str]:
    """Return what one should know of how the cell came to be."""
    notes = []
    if dtype != "float64":
        notes.append(f"Stored in {dtype}, computed in float64.")
    for name, found in rebuilt.items():
        if found.how:
            notes.append(f"{name} is computed from what is stored of it: {found.how}.")
        if found.assumed:
            notes.append(found.assumed)
    if slot.beside:
        shown = ", ".join(slot.beside[:3])
        notes.append(
            f"Beside the weights the module holds {shown}: its step may do more than a plain "
            f"{shape.kind.upper()}'s, which is what is measured. {_ASK_MODULE}."
        )
    return notes
