"""Numbers at their ends: underflow, NaN, half precisions, a series in the thousands."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

from gradflow.experiments.inspect import inspect
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import codes, draw, one


def test_float32_underflow_is_told_from_a_cut():
    """All gates at 0.5: the gradient is 2^-T, which float32 loses at T = 150."""
    layer = nn.LSTM(2, 4)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    result = inspect(layer, torch.zeros(200, 1, 2), loss=lambda answer: answer[1][1].sum())
    found = one(result, "GF104")
    assert found.value == 49  # 150 steps before the end
    assert "GF103" not in codes(result, "info")
    top = result.layers[0].log10_dL_dc
    assert top[0] == pytest.approx(199 * math.log10(0.5) + math.log10(2.0), abs=1e-9)


def test_a_series_in_the_thousands_saturates_every_gate():
    """The scale is the finding, the gates its consequence."""
    result = inspect(nn.GRU(3, 8), 3000.0 * draw(30, 2, 3))
    assert {"GF304", "GF204"} <= codes(result)
    assert result.input["root_mean_square"] > 1000


def test_weights_that_are_not_finite_are_named():
    """A NaN: the tensor, and the step from which states are lost; the document stays strict."""
    layer = nn.GRU(3, 6)
    with torch.no_grad():
        layer.weight_hh_l0[0, 0] = math.nan
    result = inspect(layer, draw(8, 2, 3), loss=lambda answer: answer[0].sum())
    assert "weight_hh_l0" in one(result, "GF301").message
    assert one(result, "GF303").severity == "error"
    json.dumps(result.to_json(), allow_nan=False)


def test_a_half_precision_model_is_computed_in_float64_and_said_so():
    """The twin meets the fused bfloat16 layer within a few of its roundings."""
    model = models.Classifier().bfloat16()
    result = inspect(model, (draw(6, 12, 3).bfloat16(), torch.ones(6).long()))
    assert "GF305" not in codes(result, "info")
    assert any("bfloat16" in note for note in result.layers[0].notes)
    assert result.layers[0].log10_dL_dh_own_precision is not None
