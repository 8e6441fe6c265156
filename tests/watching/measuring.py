"""What tests of a running watch share: a model around one layer, and autograd's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gradflow.records.watch import FlowLayer, FlowSample
from gradflow.watching.watch import watch
from tests.cases import normal
from tests.reference.per_step import PerStep, profiles

Read = Callable[[Any, Any], Tensor]


class Reader(nn.Module):
    """A recurrent layer and what a loss reads of it: `read(layer, x)` returns one number."""

    def __init__(self, rnn: nn.Module, read: Read) -> None:
        super().__init__()
        self.rnn, self.read = rnn, read

    def forward(self, x: Any) -> Tensor:
        return self.read(self.rnn, x)


def layer_of(kind: str, *sizes: int, dtype: torch.dtype = torch.float64, **options: Any) -> Any:
    """Return one of torch's layers with weights of some size, so that gradients differ by step."""
    torch.manual_seed(3)
    options = {"nonlinearity": "relu", **options} if kind == "RNN_RELU" else options
    layer = getattr(nn, kind.partition("_")[0])(*sizes, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(1.5)
    return layer


def one_sample(model: nn.Module, x: Any, steps: int = 1) -> FlowSample:
    """Train for a few updates and return the last sample; every update is sampled."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, every=1) as flow:
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).backward()
            optimizer.step()
    return flow.samples[-1]


def assert_same_profiles(
    sample: FlowSample, loss: Tensor, twin: PerStep, *, call: int = 0, tolerance: float = 1e-10
) -> None:
    """Assert that a sample has dL/dh_t and dL/dc_t of a per-step unroll, zeros included."""
    expected = profiles(loss, twin, call)
    layers = {
        (each.layer, int(each.direction == "reverse")): each
        for each in sample.layers
        if each.call == call
    }
    assert {key[:2] for key in expected} == set(layers)
    for (level, direction, part), logs in expected.items():
        layer = layers[level, direction]
        found = layer.log10_dL_dc if part else layer.log10_dL_dh
        assert found is not None
        assert_same_curve(found, logs, tolerance=tolerance)


def assert_same_curve(found: Any, expected: Any, *, tolerance: float = 1e-10) -> None:
    """Assert that two curves of log10 agree, None being a zero."""
    one = np.array([-math.inf if value is None else value for value in found])
    other = np.array([-math.inf if value is None else value for value in expected])
    assert one.shape == other.shape
    np.testing.assert_array_equal(np.isneginf(one), np.isneginf(other))
    finite = np.isfinite(other)
    np.testing.assert_allclose(one[finite], other[finite], rtol=0, atol=tolerance / math.log(10))


def layer_at(sample: FlowSample, level: int = 0, direction: str = "forward") -> FlowLayer:
    """Return one layer of a sample."""
    return next(x for x in sample.layers if (x.layer, x.direction) == (level, direction))


X = normal(7, 3, 3, seed=1)
"""(time, batch, input)."""


def last_output(rnn: Any, x: Tensor) -> Tensor:
    """A loss on the last output."""
    return rnn(x)[0][-1].square().sum()


def twin_of(layer: nn.RNNBase) -> tuple[Tensor, PerStep]:
    """Return the loss of the layer's unrolled twin, before any update."""
    twin = PerStep(layer)
    return last_output(twin, X), twin


def one_update(model: nn.Module, x: Tensor, train: Any = None) -> FlowSample:
    """Do one update under a watch of the model; through `train(x)`, where that is another."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, every=1) as flow:
        (model if train is None else train)(x).backward()
        optimizer.step()
    return flow.samples[0]
