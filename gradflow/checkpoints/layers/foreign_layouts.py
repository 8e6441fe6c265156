"""Recurrent weights by other programs' names, brought to torch's names, shapes and row order.

    ONNX    W (directions, gates * hidden, input), R, B    LSTM i, o, f, c   GRU z, r, h
    Keras   kernel (input, gates * hidden), recurrent_kernel, bias   LSTM i, f, c, o   GRU z, r, h

(operators LSTM, GRU and RNN of the ONNX standard; `keras.layers.LSTM` and `GRU`). Their names say
which program it was, so nothing has to be guessed but where a GRU's reset gate acts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from gradflow.checkpoints.layers.found import Slot
from gradflow.checkpoints.layers.state_dicts import NamedTensors

# Which block of rows of theirs is torch's first, second, ... by how many blocks there are.
_FROM_ONNX = {4: (0, 2, 3, 1), 3: (1, 0, 2), 1: (0,)}
_FROM_KERAS = {4: (0, 1, 2, 3), 3: (1, 0, 2), 1: (0,)}
_NAME = re.compile(r"(?P<start>(?:.*[._])?)(?P<word>R|recurrent_kernel)(?P<end>(?::0)?)")
_NO_RESET = (
    "Where the GRU's reset gate acts is not in its weights ({}); after the product, as in torch, "
    "is taken."
)


def foreign_slots(named: NamedTensors) -> Iterator[Slot]:
    """Yield the layers that are stored in ONNX's or Keras's way."""
    for name in named.tensors:
        match = _NAME.fullmatch(name)
        if match is not None and match["word"] == "R":
            yield from _onnx_slots(_given(named, match, ("W", "R", "B")), match["start"])
        elif match is not None:
            words = ("kernel", "recurrent_kernel", "bias")
            yield from _keras_slots(_given(named, match, words), match["start"])


Given = dict[str, tuple[str, Tensor]]  # by their word: the name in the file, the tensor


def _given(named: NamedTensors, match: re.Match[str], words: tuple[str, ...]) -> Given:
    names = {word: f"{match['start']}{word}{match['end']}" for word in words}
    return {
        word: (named.stored[name], named.tensors[name])
        for word, name in names.items()
        if name in named.tensors
    }


def _onnx_slots(given: Given, start: str) -> Iterator[Slot]:
    """Yield the directions of one ONNX layer."""
    if "W" not in given or any(t.dim() != 3 for _, t in (given["W"], given["R"])):
        return
    recurrent = given["R"][1]
    order = _order(recurrent.shape[1], recurrent.shape[2], _FROM_ONNX)
    if order is None:
        return
    places = {"weight_ih": given["W"][0], "weight_hh": given["R"][0]}
    notes = ["The weights are ONNX's; their gates were put in torch's order."]
    notes += [_NO_RESET.format("ONNX has linear_before_reset for it")] if len(order) == 3 else []
    for direction in range(recurrent.shape[0]):
        tensors = {"weight_ih": given["W"][1][direction], "weight_hh": recurrent[direction]}
        if "B" in given:
            tensors["bias_ih"], tensors["bias_hh"] = given["B"][1][direction].chunk(2)
            places["bias_ih"] = places["bias_hh"] = given["B"][0]
        yield Slot(
            owner=start.strip("._"),
            level=0,
            reverse=direction == 1,
            tensors=_reordered(tensors, order),
            stored=places,
            notes=tuple(notes),
        )


def _keras_slots(given: Given, start: str) -> Iterator[Slot]:
    """Yield one layer of Keras, turned to torch's shapes."""
    if "kernel" not in given or any(given[w][1].dim() != 2 for w in ("kernel", "recurrent_kernel")):
        return
    recurrent = given["recurrent_kernel"][1]
    order = _order(recurrent.shape[1], recurrent.shape[0], _FROM_KERAS)
    if order is None:
        return
    tensors = {"weight_ih": given["kernel"][1].mT, "weight_hh": recurrent.mT}
    places = {"weight_ih": given["kernel"][0], "weight_hh": given["recurrent_kernel"][0]}
    notes = ["The weights are Keras's; they were turned, and their gates put in torch's order."]
    before = False
    if "bias" in given:
        place, bias = given["bias"]
        before = len(order) == 3 and bias.dim() == 1  # reset_after=True has two rows of biases
        both = bias if bias.dim() == 2 else torch.stack([bias, torch.zeros_like(bias)])
        tensors["bias_ih"], tensors["bias_hh"] = both
        places |= {"bias_ih": place, "bias_hh": place}
    elif len(order) == 3:
        notes.append(_NO_RESET.format("Keras has reset_after for it"))
    owner, reverse = _keras_owner(start)
    yield Slot(
        owner=owner,
        level=0,
        reverse=reverse,
        tensors=_reordered(tensors, order),
        stored=places,
        reset="before" if before else "after",
        notes=tuple(notes),
    )


def _keras_owner(start: str) -> tuple[str, bool]:
    """Return the layer of a name, and whether it is the reversed one of Keras's Bidirectional.

    >>> _keras_owner("lstm.lstm_cell."), _keras_owner("both.backward_gru.gru_cell.")
    (('lstm', False), ('both', True))
    """
    words = [word for word in start.strip("._").split(".") if word]
    words = [word for word in words if not re.fullmatch(r"\w+_cell(_\d+)?", word)] or words
    way = re.fullmatch(r"(forward|backward)_\w+", words[-1]) if words else None
    if way is not None and len(words) > 1:
        return ".".join(words[:-1]), way[1] == "backward"
    return ".".join(words), False


def _order(rows: int, hidden: int, known: Mapping[int, tuple[int, ...]]) -> tuple[int, ...] | None:
    return known.get(rows // hidden) if hidden and rows % hidden == 0 else None


def _reordered(
    tensors: Mapping[str, Tensor], order: tuple[int, ...]
) -> dict[str, dict[str, Tensor]]:
    """Return the tensors with their blocks of rows in torch's order, each as its own only part."""
    return {
        name: {"": torch.cat([tensor.chunk(len(order))[block] for block in order])}
        for name, tensor in tensors.items()
    }
