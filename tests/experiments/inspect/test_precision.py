"""Numbers at their ends: underflow, NaN, half precisions, a series in the thousands."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import Tensor, nn

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


class Louder(nn.GRU):
    """A user's subclass whose forward is not torch's."""

    def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        output, last = super().forward(x, hx)
        return 2.0 * output, last


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_twin_is_held_against_the_fused_layer(kind: str, dtype: torch.dtype):
    """To 1e-6 in float64 and float32, to four eps in half precisions: nothing is said of it."""
    torch.manual_seed(0)
    layer = getattr(nn, kind)(3, 24, 2, bidirectional=True).to(dtype)
    result = inspect(layer, draw(30, 3, 3).to(dtype))
    assert result.layers[0].fused_difference < 1e-12
    assert "GF305" not in codes(result, "info")


def test_rounding_that_a_growing_network_makes_larger_is_told_from_a_wrong_twin():
    """With open gates float32 parts from float64 by over 1e-6, step by step as well as fused."""
    torch.manual_seed(0)
    layer = models.held_lstm(0.999, hidden=128)
    with torch.no_grad():
        layer.weight_hh_l0.mul_(1.5)
    found = one(inspect(layer, draw(150, 2, 4)), "GF305")
    assert found.severity == "info"
    assert 1e-6 < found.value < 1e-2
    assert "rounding alone parts the same steps so far" in found.message


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_layer_with_a_forward_of_its_own_is_not_what_was_measured(dtype: torch.dtype):
    """Twice the output is no rounding: an error."""
    found = one(inspect(Louder(3, 5).to(dtype), draw(10, 2, 3).to(dtype)), "GF305")
    assert found.severity == "error"
    assert found.value > 0.01


def test_a_chaotic_network_is_measured_all_the_same():
    """g = 4: it parts from its own float64 whatever one does, and that is no fault of the twin."""
    torch.manual_seed(0)
    layer = nn.RNN(2, 64)
    with torch.no_grad():
        layer.weight_hh_l0.normal_(std=4.0 / 8.0)
    result = inspect(layer, draw(200, 2, 2))
    assert result.layers[0].lyapunov > 0.1
    assert {f.severity for f in result.findings if f.code == "GF305"} == {"info"}
    assert result.layers[0].lag[-1] == 200
