"""torch's layers, inputs and lengths that the tests of stacks share."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

LAYERS: dict[str, tuple[type[nn.RNNBase], dict[str, Any]]] = {
    "lstm": (nn.LSTM, {}),
    "gru": (nn.GRU, {}),
    "rnn": (nn.RNN, {}),
    "rnn-relu": (nn.RNN, {"nonlinearity": "relu"}),
}
each_layer = pytest.mark.parametrize("kind", LAYERS)
each_direction = pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "two-way"])


def torch_layer(
    kind: str,
    *,
    input_size: int = 3,
    hidden_size: int = 4,
    layers: int = 2,
    seed: int = 1,
    **options: Any,
) -> nn.RNNBase:
    """Return a torch layer in float64 whose weights and biases are seeded and all different."""
    make, own = LAYERS[kind]
    layer = make(
        input_size, hidden_size, num_layers=layers, dtype=torch.float64, **own, **options
    ).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            spread = 0.3 if "bias" in name else 1.0 / math.sqrt(parameter.shape[-1])
            parameter.copy_(spread * drawn)
    return layer


def inputs(steps: int = 6, batch: int = 3, width: int = 3, *, seed: int = 2) -> Tensor:
    """Return a normal input (time, batch, width) that asks for a gradient."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(steps, batch, width, generator=generator, dtype=torch.float64)
    return x.requires_grad_()


def packed_run(layer: nn.RNNBase, x: Tensor, lengths: list[int]) -> tuple[Tensor, Any]:
    """Return what torch's packed run gives, padded again, in the caller's order."""
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    output, state = layer(packed)
    padded, _ = nn.utils.rnn.pad_packed_sequence(output, total_length=x.shape[0])
    return padded, state
