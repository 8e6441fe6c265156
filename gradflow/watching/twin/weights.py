"""The weights that a layer ran with, in float64: read, never asked for anew.

A weight that is computed for each call (weight norm, dropout of weights) is taken as the layer left
it: to compute it again could move random numbers or buffers of the training.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gradflow.cells.torch_layers import layer_suffixes
from gradflow.watching.twin.pulled import Weights

Tensors = dict[str, Tensor]


def own_weights(module: nn.RNNBase | nn.RNNCellBase) -> Tensors:
    """Return the weights that the module's last call used, by torch's names, as they are."""
    names = list(getattr(module, "_flat_weights_names", ()))
    used = list(getattr(module, "_flat_weights", ()))
    if names and len(names) == len(used) and all(isinstance(each, Tensor) for each in used):
        return {name: each.detach() for name, each in zip(names, used, strict=True)}
    found = {name: getattr(module, name, None) for name in names or _CELL_NAMES}
    return {name: each.detach() for name, each in found.items() if isinstance(each, Tensor)}


_CELL_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def snapshot(module: nn.RNNBase | nn.RNNCellBase) -> Tensors:
    """Return copies of them in float64, on the module's device (MPS has no float64: the CPU)."""
    with torch.no_grad():
        return {
            name: each.to(device=wide_device(each.device), dtype=torch.float64, copy=True)
            for name, each in own_weights(module).items()
        }


def wide_device(device: torch.device) -> torch.device:
    """Return where float64 tensors of this device's can be computed with."""
    return torch.device("cpu") if device.type == "mps" else device


def weights_by_cell(module: nn.RNNBase | nn.RNNCellBase, tensors: Tensors) -> tuple[Weights, ...]:
    """Return a snapshot as the weights of each layer and direction, in torch's order."""
    suffixes = layer_suffixes(module) if isinstance(module, nn.RNNBase) else [""]
    keep_apart = kind_of(module) == "gru"
    return tuple(_of_cell(tensors, suffix, keep_apart=keep_apart) for suffix in suffixes)


def kind_of(module: nn.Module) -> str:
    """Return lstm, gru or rnn.

    >>> kind_of(nn.GRUCell(1, 1)), kind_of(nn.RNN(1, 1, nonlinearity="relu"))
    ('gru', 'rnn')
    """
    if isinstance(module, nn.LSTM | nn.LSTMCell):
        return "lstm"
    return "gru" if isinstance(module, nn.GRU | nn.GRUCell) else "rnn"


def is_relu(module: nn.Module) -> bool:
    """Return whether a plain RNN squashes by relu."""
    return getattr(module, "nonlinearity", "tanh") == "relu"


def forget_bias(kind: str, weights: Weights) -> float | None:
    """Return the mean effective bias of the keep gate (forget, or a GRU's update), None without."""
    rows = {"lstm": 4, "gru": 3}.get(kind)
    if rows is None or weights.bias is None:
        return None
    return float(weights.bias.chunk(rows)[1].mean())


def _of_cell(tensors: Mapping[str, Tensor], suffix: str, *, keep_apart: bool) -> Weights:
    bias, own = tensors.get(f"bias_ih{suffix}"), tensors.get(f"bias_hh{suffix}")
    inner = None
    if bias is not None and own is not None:
        if keep_apart:  # the reset gate multiplies what the candidate's second bias adds
            size = 2 * len(own) // 3
            inner = own[size:]
            own = torch.cat([own[:size], torch.zeros_like(inner)])
        bias = bias + own
    return Weights(
        tensors[f"weight_ih{suffix}"],
        tensors[f"weight_hh{suffix}"],
        bias,
        inner,
        tensors.get(f"weight_hr{suffix}"),
    )
