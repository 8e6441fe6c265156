"""torch's fused layers beside their unrolled twins: made from a file's layers, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradflow.checkpoints.layers import FoundLayer

_FUSED_KINDS = ("lstm", "gru", "rnn")


def fused_layer(layers: Sequence[FoundLayer]) -> nn.RNNBase | None:
    """Return torch's own layer with the weights of a file's layers, in float64; None if none is."""
    first = layers[0]
    cells = [layer.cell for layer in layers]
    whole = len(layers) == first.layers * first.directions
    as_torch = first.kind in _FUSED_KINDS and getattr(cells[0], "reset", "after") == "after"
    if not (whole and as_torch):
        return None
    options: dict[str, Any] = {"proj_size": first.projection} if first.projection else {}
    if first.kind == "rnn":
        options["nonlinearity"] = getattr(cells[0], "nonlinearity", "tanh")
    kinds: dict[str, Any] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
    made: nn.RNNBase = kinds[first.kind](
        first.input_size,
        first.hidden_size,
        num_layers=first.layers,
        bidirectional=first.directions == 2,
        bias=first.bias,
        dtype=torch.float64,
        device=cells[0].device,
        **options,
    )
    weights: dict[str, Tensor] = {}
    for layer in layers:
        suffix = f"_l{layer.layer}" + ("_reverse" if layer.direction == "reverse" else "")
        stored = layer.cell.state_dict() if isinstance(layer.cell, nn.Module) else {}
        weights |= {name.rpartition(".")[2] + suffix: value for name, value in stored.items()}
    try:
        made.load_state_dict(weights)
    except RuntimeError:  # layers that do not lie on each other
        return None
    return made


def output_gap(mine: Any, fused: Any) -> float:
    """Return the largest difference of two outputs, relative to the largest number (at least 1)."""
    one, other = (
        (each.data if isinstance(each, PackedSequence) else each).double() for each in (mine, fused)
    )
    scale = max(1.0, float(other.detach().abs().max())) if other.numel() else 1.0
    return float((one - other).detach().abs().max()) / scale
