"""A curve by lag from a few windows: which they are and how good their mean is stands beside it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from gradflow.experiments.inspect import inspect, inspection
from gradflow.records.inspect import InspectedLayer
from tests.experiments.inspect.looks import draw


def layer_of(**asked: object) -> InspectedLayer:
    """An LSTM of 32 units, run on four samples of 60 steps."""
    torch.manual_seed(0)
    return inspect(nn.LSTM(4, 32), draw(60, 4, 4), **asked).layers[0]


def test_the_error_of_the_mean_stands_beside_it():
    """Standard error over the windows of a lag; none of it where one window alone tells."""
    layer = layer_of()
    assert layer.sampled
    assert layer.sampling.startswith(
        "12 of 240 windows (from a step of a sample on, 20 to 60 steps)"
    )
    assert layer.windows[0] == 12
    assert layer.log10_norm_error[0] == 0.0
    assert all(0.0 < error < 0.5 for error in layer.log10_norm_error[1:])
    for low, mean, high in zip(layer.low, layer.log10_norm, layer.high, strict=True):
        assert low <= mean <= high
    shortest, longest = layer.horizon_range
    assert shortest < layer.horizon < longest
    alone = inspect(nn.LSTM(4, 8), draw(2, 1, 4)).layers[0]
    assert alone.log10_norm_error[-1] is None


def test_the_error_is_that_of_the_whole():
    """The mean of twelve windows lies within a few errors of that of all samples and starts."""
    torch.manual_seed(0)
    layer = nn.GRU(4, 12)
    x = draw(40, 60, 4)
    few = inspect(layer, x).layers[0]
    lag = few.lag.index(12)
    means = []
    for first in range(0, 60, 4):
        part = inspect(layer, x[:, first : first + 4]).layers[0]
        means.append(part.log10_norm[lag])
    error = few.log10_norm_error[lag]
    assert abs(few.log10_norm[lag] - np.mean(means)) < 4 * error
    assert np.std(means) == pytest.approx(error, rel=0.8)


def test_a_wide_layer_has_fewer_and_shorter_windows_and_still_an_error(
    monkeypatch: pytest.MonkeyPatch,
):
    """The mean of three where three tell, one window alone beyond; the JSON stays strict."""
    step = 64 * 4 * 32**2
    whole = layer_of()
    monkeypatch.setattr(inspection, "BUDGET", 100.0 * step)
    layer = layer_of()
    assert "3 of 240 windows (from a step of a sample on, 20 to 60 steps" in layer.sampling
    assert layer.windows[layer.lag.index(12)] == 3
    assert layer.windows[-1] == 1
    assert layer.log10_norm_error[layer.lag.index(12)] > 0
    assert layer.log10_norm_error[-1] is None
    assert layer.horizon == pytest.approx(whole.horizon, rel=0.2)
    assert json.loads(json.dumps(layer.to_json(), allow_nan=False))["windows"][-1] == 1
    monkeypatch.setattr(inspection, "BUDGET", 1.0)
    least = layer_of()
    assert least.lag[-1] == 24
    assert "longer lags than 24 would be too dear" in least.sampling
    assert math.isfinite(least.horizon)
