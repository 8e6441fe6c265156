"""The number of parameters that a built network has: torch is asked, no formula."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from gradflow.cells import make_cell
from gradflow.errors import CellLoadError, SettingError
from gradflow.records.params import Architecture

TORCH_LAYERS: dict[str, Callable[..., nn.RNNBase]] = {
    "rnn": nn.RNN,
    "gru": nn.GRU,
    "lstm": nn.LSTM,
}


def built_parameters(architecture: Architecture) -> int:
    """Build the network and return how many parameters it has.

    The three cells of torch are built as torch's layer without any storage (the "meta" device), so
    that width costs nothing; a plug-in's cell is built by its factory, once per layer and
    direction. The head is a torch.nn.Linear.

    Raises:
        UnknownNameError, CellLoadError: the cell is not known, or is no module.
        SettingError: a matrix has more entries than torch can index.

    >>> built_parameters(Architecture("lstm", 300, 300, bidirectional=True))
    1444800
    """
    _require_indexable(architecture)
    if architecture.cell in TORCH_LAYERS:
        recurrent = _layer_parameters(architecture)
    else:
        recurrent = _cell_parameters(architecture)
    if not architecture.output_size:
        return recurrent
    head = nn.Linear(architecture.feature_size, architecture.output_size, device="meta")
    return recurrent + _parameters(head)


def _require_indexable(architecture: Architecture) -> None:
    """Torch counts a tensor's bytes in a signed 64-bit number; four gates of float64 at most."""
    widest = max(
        architecture.input_size,
        architecture.directions * architecture.hidden_size,
        architecture.output_size,
    )
    if 32 * architecture.hidden_size * widest >= 2**63:
        raise SettingError(
            f"a matrix of {architecture.hidden_size} by {widest} and four gates is more than torch "
            "can index (2^63 bytes). Use smaller widths."
        )


def _layer_parameters(architecture: Architecture) -> int:
    projection = {"proj_size": architecture.projection} if architecture.projection else {}
    layer = TORCH_LAYERS[architecture.cell](
        architecture.input_size,
        architecture.hidden_size,
        num_layers=architecture.layers,
        bias=architecture.bias,
        bidirectional=architecture.bidirectional,
        device="meta",
        **projection,
    )
    return _parameters(layer)


def _cell_parameters(architecture: Architecture) -> int:
    inputs = [architecture.input_size, *[architecture.feature_size] * (architecture.layers - 1)]
    return sum(
        architecture.directions
        * _parameters(
            make_cell(architecture.cell, width, architecture.hidden_size, bias=architecture.bias)
        )
        for width in inputs
    )


def _parameters(module: object) -> int:
    if not isinstance(module, nn.Module):
        raise CellLoadError(
            "a cell must be a torch.nn.Module to have its parameters counted; got "
            f"{type(module).__name__}."
        )
    return sum(parameter.numel() for parameter in module.parameters())
