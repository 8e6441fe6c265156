"""torch's recurrent layers taken apart: a cell for every level and direction, in torch's order."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gradflow.cells.base import Cell
from gradflow.cells.foreign import ForeignCell
from gradflow.cells.gru import GRU
from gradflow.cells.lstm import LSTM
from gradflow.cells.projected_lstm import ProjectedLSTM
from gradflow.cells.protocol import CellLike
from gradflow.cells.rnn import RNN


def layer_suffixes(layer: nn.RNNBase) -> list[str]:
    """Return what torch appends to the names of each cell's parameters, in order.

    >>> layer_suffixes(nn.GRU(1, 1, num_layers=2, bidirectional=True))
    ['_l0', '_l0_reverse', '_l1', '_l1_reverse']
    """
    directions = ("", "_reverse") if layer.bidirectional else ("",)
    return [
        f"_l{level}{direction}" for level in range(layer.num_layers) for direction in directions
    ]


def cells_of_layer(layer: nn.RNNBase) -> list[CellLike]:
    """Return the cells of nn.RNN, nn.LSTM or nn.GRU, with copies of their weights.

    Layer 0, layer 0 reversed, layer 1, ... Weights that are computed (weight norm) are taken as
    they are now. An LSTM with a projection becomes `ForeignCell`s around `ProjectedLSTM`s.
    """
    return [_cell_of_layer(layer, suffix) for suffix in layer_suffixes(layer)]


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
