"""torch's recurrent layers and cells, taken apart into cells that show their gates."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gradflow.cells import GRU, LSTM, RNN, Cell, CellLike, ForeignCell
from gradflow.cells.projected_lstm import ProjectedLSTM
from gradflow.errors import CellLoadError

TORCH_TYPES = (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell)


def from_torch(module: nn.Module) -> list[CellLike]:
    """Return the cells that a recurrent torch module is made of, with copies of its weights.

    A layer with several levels or two directions has a cell for each, in torch's own order: layer
    0, layer 0 reversed, layer 1, layer 1 reversed, ... A reversed cell is the same recurrence; it
    reads the sequence from its end. Weights that are computed (weight norm) are taken as they are
    now. `batch_first` and `dropout` are of the layer, not of its cells.

    Args:
        module: nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell or nn.GRUCell.

    Returns:
        A list of `LSTM`, `GRU` or `RNN`; of `ForeignCell` around a `ProjectedLSTM` for an LSTM with
        a projection (`proj_size`), whose h and c differ in width.

    Raises:
        CellLoadError: another kind of module; the message names the recurrent ones inside it.

    >>> cells = from_torch(nn.LSTM(3, 5, num_layers=2, bidirectional=True))
    >>> [(cell.kind, cell.input_size, cell.hidden_size) for cell in cells]
    [('lstm', 3, 5), ('lstm', 3, 5), ('lstm', 10, 5), ('lstm', 10, 5)]
    """
    original = getattr(module, "_orig_mod", module)  # torch.compile's wrapper
    if isinstance(original, Cell | ForeignCell):
        return [original]
    if isinstance(original, nn.RNNBase):
        return [_cell_of_layer(original, suffix) for suffix in layer_suffixes(original)]
    if isinstance(original, nn.LSTMCell):
        return [LSTM.from_torch(original)]
    if isinstance(original, nn.GRUCell):
        return [GRU.from_torch(original)]
    if isinstance(original, nn.RNNCell):
        return [RNN.from_torch(original)]
    raise CellLoadError(_refusal(original))


def layer_suffixes(layer: nn.RNNBase) -> list[str]:
    """Return what torch appends to the names of each cell's parameters, in order.

    >>> layer_suffixes(nn.GRU(1, 1, num_layers=2, bidirectional=True))
    ['_l0', '_l0_reverse', '_l1', '_l1_reverse']
    """
    directions = ("", "_reverse") if layer.bidirectional else ("",)
    return [
        f"_l{level}{direction}" for level in range(layer.num_layers) for direction in directions
    ]


def _cell_of_layer(layer: nn.RNNBase, suffix: str) -> CellLike:
    names = ["weight_ih", "weight_hh"]
    names += ["bias_ih", "bias_hh"] if layer.bias else []
    names += ["weight_hr"] if layer.proj_size else []
    with torch.no_grad():
        weights = {name: getattr(layer, name + suffix).detach() for name in names}
        cell = _empty_cell(layer, weights["weight_ih"])
        cell.load_state_dict(weights)
    return ForeignCell(cell) if isinstance(cell, ProjectedLSTM) else cell


def _empty_cell(layer: nn.RNNBase, weight_ih: torch.Tensor) -> Cell | ProjectedLSTM:
    """Return a cell of the layer's kind, whose input is as wide as this cell's weights say."""
    sizes = (weight_ih.shape[1], layer.hidden_size)
    options: dict[str, Any] = {
        "bias": layer.bias,
        "dtype": weight_ih.dtype,
        "device": weight_ih.device,
    }
    if layer.mode == "LSTM" and layer.proj_size:
        return ProjectedLSTM(*sizes, layer.proj_size, **options)
    if layer.mode == "LSTM":
        return LSTM(*sizes, **options)
    if layer.mode == "GRU":
        return GRU(*sizes, **options)
    return RNN(*sizes, nonlinearity="relu" if layer.mode == "RNN_RELU" else "tanh", **options)


def _refusal(module: object) -> str:
    known = ", ".join(f"nn.{kind.__name__}" for kind in TORCH_TYPES)
    if not isinstance(module, nn.Module):
        return f"from_torch takes a torch module ({known}); got a {type(module).__name__}."
    inside = {
        name: type(part).__name__
        for name, part in module.named_modules()
        if name and isinstance(part, TORCH_TYPES)
    }
    hint = "A cell of your own is measured as gradflow.cells.ForeignCell(module)."
    if inside:
        listing = ", ".join(f"{name} (nn.{kind})" for name, kind in list(inside.items())[:4])
        hint = f"Inside it there is {listing}: give that one, as model.{next(iter(inside))}."
    return f"from_torch takes {known}; got {type(module).__name__}.\n{hint}"
