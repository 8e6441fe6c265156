"""What weights alone show: biases, orthogonality, the order of gates."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.experiments.inspect import inspect
from tests.experiments.inspect.looks import codes, draw, one


def test_a_forget_bias_in_both_vectors_is_found():
    """Every tensor named bias set to 1 makes it 2: f = 0.8808 and not 0.7311."""
    layer = nn.LSTM(6, 8)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            if "bias" in name:
                weight.zero_()
                weight[8:16] = 1.0
    result = inspect(layer)
    assert one(result, "GF201").value == 2.0
    assert "0.8808" in one(result, "GF201").message
    gate = next(gate for gate in result.layers[0].gates if gate.name == "forget")
    assert gate.effective_bias_mean == 2.0
    with torch.no_grad():
        layer.bias_hh_l0.zero_()
    assert inspect(layer).healthy


def test_a_forget_bias_in_some_directions_only_is_found():
    """A loop over names that missed the reversed direction."""
    layer = nn.LSTM(3, 32, bidirectional=True)
    with torch.no_grad():
        layer.bias_ih_l0[32:64] = 1.0
        layer.bias_hh_l0[32:64] = 0.0
    found = one(inspect(layer), "GF202")
    assert (found.direction, found.gate) == ("reverse", "forget")


def test_chrono_forget_biases_without_their_opposite_are_found():
    """b_i = -b_f is half of the initialization."""
    layer = nn.LSTM(3, 32)
    biases = torch.log(torch.empty(32).uniform_(1, 99, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():
        layer.bias_hh_l0.zero_()
        layer.bias_ih_l0[32:64] = biases
    assert one(inspect(layer), "GF203").value > 1.0
    with torch.no_grad():
        layer.bias_ih_l0[:32] = -biases
    assert "GF203" not in codes(inspect(layer))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_orthogonal_on_the_stacked_matrix_is_told_from_orthogonal_blocks(kind: str):
    """Mean squared singular value of a gate's block: 1/4 or 1/3, against 1."""
    torch.manual_seed(0)
    layer = getattr(nn, kind)(3, 16)
    nn.init.orthogonal_(layer.weight_hh_l0)
    gates = 4 if kind == "LSTM" else 3
    assert one(inspect(layer), "GF205").value == pytest.approx(1 / gates, rel=1e-5)
    with torch.no_grad():
        for block in layer.weight_hh_l0.chunk(gates):
            nn.init.orthogonal_(block)
    assert inspect(layer).healthy


def test_a_foreign_gate_order_is_suspected():
    """A forget bias near 2 in the third block: ONNX's order i, o, f, g."""
    layer = nn.LSTM(3, 8)
    with torch.no_grad():
        layer.bias_hh_l0.zero_()
        layer.bias_ih_l0.copy_(0.2 * draw(32))
        layer.bias_ih_l0[16:24] += 2.0
    assert one(inspect(layer), "GF206").gate == "forget"


def test_forget_biases_that_training_has_spread_are_not_chronos():
    """Normal about 2, or some at 1 and some at 12: nobody drew ln U(1, T - 1) there."""
    torch.manual_seed(0)
    layer = nn.LSTM(3, 32)
    for biases in (2.0 + 0.6 * draw(32), torch.tensor([1.0, 12.0]).repeat(16)):
        with torch.no_grad():
            layer.bias_ih_l0[32:64] = biases.clamp(min=0.0)
            layer.bias_hh_l0[32:64] = 0.0
        assert "GF203" not in codes(inspect(layer))
