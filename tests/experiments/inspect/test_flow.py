"""What reaches which step: growth, cuts, and the true gradient through time."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.experiments.inspect import inspect
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import codes, draw, one


def test_a_large_recurrent_matrix_explodes():
    """An RNN whose linear part grows threefold a step."""
    layer = nn.RNN(1, 4, nonlinearity="relu")
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.weight_hh_l0.copy_(3.0 * torch.eye(4))
        layer.weight_ih_l0.fill_(1.0)
    result = inspect(layer, torch.ones(12, 2, 1))
    assert one(result, "GF102").severity == "warning"
    assert one(result, "GF102").value == pytest.approx(12 * math.log10(3.0))
    assert one(inspect(layer, torch.ones(30, 2, 1)), "GF102").severity == "error"


def test_the_gradient_of_the_states_is_through_time():
    """By hand: a loop over torch's own cell, which the fused layer's output never shows."""
    model = models.Classifier("GRU").double()
    x = draw(4, 9, 3).double()
    cell = nn.GRUCell(3, 5).double()
    cell.load_state_dict({n[:-3]: p for n, p in model.rnn.state_dict().items()})
    states, h = [], None
    for t in range(9):
        h = cell(x[:, t], h)
        states.append(h)
    right = torch.autograd.grad(model.head(h).sum(), states)
    found = inspect(model, x, loss=lambda output: output.sum()).layers[0].log10_dL_dh
    wanted = [math.log10(gradient.norm().item()) for gradient in right]
    assert list(found) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("cut", [3, 12])
def test_a_detached_state_is_found_with_its_step(cut: int):
    """Exact zeros before the step, a gradient from it on: a cut, and not vanishing."""
    batch = (draw(5, 20, 3), torch.tensor([0, 1, 0, 1, 1]))
    result = inspect(models.Truncated(cut), batch)
    assert one(result, "GF103").value == cut
    assert "GF101" not in codes(result)
    assert not result.passed


def test_a_direct_path_and_a_full_one_are_two_things():
    """With the block of c alone, the full norm exceeds the product of forget gates."""
    torch.manual_seed(0)
    layer = nn.LSTM(3, 6).double()
    with torch.no_grad():
        layer.weight_hh_l0.mul_(4.0)
    found = inspect(layer, draw(40, 1, 3)).layers[0]
    assert found.lag[0] == 0
    assert found.kept_log10_norm[0] == found.direct_log10_norm[0] == 0.0
    assert found.kept_log10_norm[1] == pytest.approx(found.direct_log10_norm[1], abs=1e-12)
    assert found.kept_log10_norm[-1] > found.direct_log10_norm[-1] + 1.0


def test_a_layer_called_step_by_step_is_one_run():
    """Its calls go on from each other; a state that is detached between two is still found."""
    x = draw(5, 12, 3)
    whole = inspect(models.Decoder(), x, loss=lambda output: output.sum())
    assert whole.healthy
    assert whole.layers[0].lag[-1] == 12
    assert len(whole.layers[0].log10_dL_dh) == 12
    assert any("spare was not called" in note for note in whole.notes)
    cut = inspect(models.Decoder(cut=8), x, loss=lambda output: output.sum())
    assert one(cut, "GF103").value == 8
    assert cut.layers[0].lag[-1] == 12


class Shown(nn.Module):
    """A cell of one's own that returns its output before its state, as many do."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        torch.manual_seed(8)
        of_torch = nn.GRUCell(3, 4) if parts == 1 else nn.LSTMCell(3, 4)
        self.own = nn.ParameterList(of_torch.parameters())
        self.hidden_size, self.input_size = 4, 3

    def forward(self, x: Tensor, state: Any) -> Any:
        if isinstance(state, Tensor):
            new = torch.gru_cell(x, state, *self.own)
            return new, new
        pair = torch.lstm_cell(x, state, *self.own)
        return pair[0], pair


class Loop(nn.Module):
    """A loop over such a cell."""

    def __init__(self, cell: nn.Module, parts: int) -> None:
        super().__init__()
        self.cell, self.parts = cell, parts

    def forward(self, x: Tensor) -> Tensor:
        zeros = x.new_zeros(x.shape[1], 4)
        state = zeros if self.parts == 1 else (zeros, zeros)
        for row in x:
            output, state = self.cell(row, state)
        return output


@pytest.mark.parametrize("parts", [1, 2])
def test_a_cell_that_returns_its_output_first_is_measured_as_the_layer_that_it_is(parts: int):
    """y, state = cell(x, state): curves and gradients are those of torch's own cell."""
    cell, x = Shown(parts), draw(9, 2, 3)
    found = inspect(Loop(cell, parts), x, loss=lambda output: output.sum()).layers[0]
    kind = nn.GRU if parts == 1 else nn.LSTM
    layer = kind(3, 4)
    layer.load_state_dict(dict(zip(layer.state_dict(), cell.own, strict=True)))
    right = inspect(layer, x, loss=lambda answer: answer[0][-1].sum()).layers[0]
    assert found.kind == "Shown"
    assert found.log10_norm == pytest.approx(right.log10_norm, abs=1e-9)
    assert found.log10_dL_dh == pytest.approx(right.log10_dL_dh, abs=1e-9)
