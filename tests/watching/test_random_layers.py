"""Layers, data and losses drawn at random: a watch against the per-step unroll on each."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from tests.cases import normal
from tests.reference.per_step import PerStep
from tests.watching.measuring import Reader, assert_same_profiles, one_sample


def drawn_layer(draw: random.Random) -> nn.RNNBase:
    """Return a small layer of any kind and shape."""
    kind = draw.choice(["LSTM", "GRU", "RNN"])
    options: dict[str, Any] = {
        "num_layers": draw.choice([1, 1, 2, 3]),
        "bidirectional": draw.random() < 0.4,
        "batch_first": draw.random() < 0.4,
        "bias": draw.random() < 0.8,
    }
    if kind == "RNN":
        options["nonlinearity"] = draw.choice(["tanh", "relu"])
    if kind == "LSTM" and draw.random() < 0.3:
        options["proj_size"] = draw.choice([1, 2, 4])
    sizes = draw.choice([1, 2, 4]), draw.choice([5, 6])
    layer: nn.RNNBase = getattr(nn, kind)(*sizes, dtype=torch.float64, **options)
    return layer


def drawn_data(draw: random.Random, layer: nn.RNNBase, seed: int) -> Tensor | PackedSequence:
    """Return a batch in the layer's layout, packed in unsorted order at times."""
    steps, batch = draw.choice([1, 2, 5, 9]), draw.choice([1, 2, 4])
    x = normal(steps, batch, layer.input_size, seed=seed)
    x = x.transpose(0, 1) if layer.batch_first else x
    if draw.random() < 0.6:
        return x
    lengths = torch.tensor([draw.randint(1, steps) for _ in range(batch)])
    return pack_padded_sequence(x, lengths, layer.batch_first, enforce_sorted=False)


def drawn_loss(seed: int, layer: nn.RNNBase) -> Any:
    """Return a loss on some outputs, on some rows of the states, or on both."""

    def read(rnn: Any, x: Any) -> Tensor:
        draw = random.Random(seed)
        batch = int(x.batch_sizes[0]) if isinstance(x, PackedSequence) else None
        batch = batch or x.shape[0 if layer.batch_first else 1]
        output, last = rnn(x, drawn_state(draw, layer, batch))
        data = output.data if isinstance(output, PackedSequence) else output
        parts = last if isinstance(last, tuple) else (last,)
        loss = torch.zeros((), dtype=torch.float64)
        if seed % 3 != 1:
            loss = loss + data.reshape(-1)[:: draw.choice([1, 3])].square().sum()
        if seed % 3 != 0:
            part = draw.choice(parts)
            loss = loss + (part[draw.randrange(len(part))] * normal(*part.shape[1:])).sum()
        return loss

    return read


def drawn_state(draw: random.Random, layer: nn.RNNBase, batch: int) -> Any:
    """Return a first state: none, or random numbers, with or without a graph."""
    if draw.random() < 0.4:
        return None
    cells = layer.num_layers * (2 if layer.bidirectional else 1)
    with_graph = draw.random() < 0.5
    h = normal(cells, batch, layer.proj_size or layer.hidden_size, seed=1)
    c = normal(cells, batch, layer.hidden_size, seed=2)
    state = tuple(part.requires_grad_(with_graph) for part in (h, c))
    return state if isinstance(layer, nn.LSTM) else state[0]


@pytest.mark.parametrize("seed", range(40))
def test_a_random_layer_as_unrolled(seed: int):
    """Whatever the kind, shape, layout, first state and loss: the gradient of each state agrees."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    layer = drawn_layer(draw)
    x, read = drawn_data(draw, layer, seed), drawn_loss(seed, layer)
    twin = PerStep(layer)
    loss = read(twin, x)
    sample = one_sample(Reader(layer, read), x)
    assert_same_profiles(sample, loss, twin)
    assert not [note for each in sample.layers for note in each.notes if "differs" in note]
