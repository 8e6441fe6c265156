"""Gates that stick, units that never move or never forget, layers that no loss reaches."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gradflow.experiments.inspect import inspect
from gradflow.records.finding_codes import FINDING_KINDS
from gradflow.records.inspect import Finding, InspectResult
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import codes, draw, one

X = draw(20, 3, 4)


def with_bias(gate: int, value: float, hidden: int = 8) -> nn.LSTM:
    """An LSTM with one gate's bias set; torch's order is input, forget, candidate, output."""
    torch.manual_seed(0)
    layer = nn.LSTM(4, hidden)
    with torch.no_grad():
        layer.bias_ih_l0[gate * hidden : (gate + 1) * hidden] = value
        layer.bias_hh_l0[gate * hidden : (gate + 1) * hidden] = 0.0
    return layer


def of_gate(result: InspectResult, code: str, gate: str) -> Finding:
    """The finding of a code at one gate."""
    return next(f for f in result.findings if (f.code, f.gate) == (code, gate))


def test_a_gate_that_is_shut_is_a_warning_and_an_open_keep_gate_is_none():
    """Whoever opens a forget gate wide wants to remember; an input gate at 0 writes nothing."""
    shut = of_gate(inspect(with_bias(0, -12.0), X), "GF204", "input")
    assert (shut.severity, shut.value) == ("warning", 1.0)
    wide = inspect(with_bias(1, 12.0), X)
    assert of_gate(wide, "GF204", "forget").severity == "info"
    assert wide.healthy
    assert of_gate(inspect(with_bias(1, -12.0), X), "GF204", "forget").severity == "warning"
    assert "GF204" not in codes(inspect(with_bias(1, 2.0), X), "info")


def test_units_that_never_forget_are_information():
    """Four of eight forget gates at 0.99995 throughout."""
    layer = with_bias(1, 1.0)
    with torch.no_grad():
        layer.bias_ih_l0[8:12] = 12.0
    result = inspect(layer, X)
    assert one(result, "GF208").value == 4
    assert result.layers[0].never_forgetting_units == (0, 1, 2, 3)
    assert result.healthy


def test_units_that_never_move_are_told():
    """Of a relu that is always off; many are a warning, one of twenty is information."""
    torch.manual_seed(0)
    layer = nn.RNN(4, 20, nonlinearity="relu")
    with torch.no_grad():
        layer.bias_ih_l0[3] = -100.0
    result = inspect(layer, X)
    assert (one(result, "GF207").value, one(result, "GF207").severity) == (1, "info")
    assert result.layers[0].dead_units == (3,)
    with torch.no_grad():
        layer.bias_ih_l0[:10] = -100.0
    assert one(inspect(layer, X), "GF207").severity == "warning"


class Unread(nn.Module):
    """Two layers, of which the answer reads one."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.read, self.unread = nn.GRU(4, 5), nn.GRU(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.read(x)[0] + self.unread(x)[0].detach()


def test_a_layer_that_the_loss_does_not_depend_on_is_named():
    """Behind a detach it is not trained; it is no vanishing and no cut in time."""
    result = inspect(Unread(), X, loss=lambda output: output.sum())
    assert one(result, "GF108").layer == "unread, layer 0"
    assert codes(result) == {"GF108"}


class Stepped(models.Truncated):
    """The same loop, cut in another way than by detach."""

    def __init__(self, way: str) -> None:
        super().__init__(None)
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        h, c = torch.zeros(len(x), 6), torch.zeros(len(x), 6)
        for t in range(x.shape[1]):
            with torch.set_grad_enabled(self.way != "no_grad" or t >= 6):
                h, c = self.cell(x[:, t], (h, c))
            if t == 5 and self.way == "data":
                h, c = h.data, c.data
            if t == 5 and self.way == "numpy":
                h, c = (torch.from_numpy(part.detach().numpy().copy()) for part in (h, c))
        return self.head(h)


@pytest.mark.parametrize("way", ["data", "no_grad", "numpy"])
def test_a_cut_is_found_however_it_was_made(way: str):
    """By .data, no_grad or NumPy: exact zeros before step 6."""
    model = Stepped(way)
    result = inspect(model, draw(4, 12, 3), loss=lambda output: output.sum())
    assert one(result, "GF103").value == 6
    assert "underflow" in one(result, "GF103").message


def test_a_layer_that_is_quantised_beside_a_plain_one_is_told(tmp_path: Path):
    """What can be read is read; what cannot is a warning with the reason."""
    good = {f"good.{name}": value for name, value in nn.GRU(3, 4).state_dict().items()}
    bad = {f"bad.{n}": (99 * v).to(torch.int8) for n, v in nn.GRU(3, 4).state_dict().items()}
    torch.save({**good, **bad}, tmp_path / "model.pt")
    result = inspect(tmp_path / "model.pt")
    assert [layer.name for layer in result.layers] == ["good"]
    assert "quantised (stored as int8)" in one(result, "GF302").message


def test_an_infinite_gradient_is_placed_at_its_first_step_on_the_way_back():
    """The square root of zero at step 4 of 9 breaks all that came before."""
    loss = models.EveryStep()

    def root(output: Tensor) -> Tensor:
        return output.sum() + (output[4] - output[4].detach()).abs().sum().sqrt()

    found = one(inspect(loss, draw(9, 2, 3), loss=root), "GF303")
    assert (found.severity, found.value) == ("error", 4)
    assert math.isfinite(one(inspect(loss, draw(9, 2, 3)), "GF100").value or 0.0)


def test_what_is_lost_is_not_taken_for_zero():
    """NaN in the data mixes no samples up, and an infinite loss is no loss that nothing reaches."""
    x = draw(5, 8, 3)
    x[2, 3] = math.nan
    lost = inspect(models.Forecaster(right=True), (x, draw(5, 1)))
    assert codes(lost) == {"GF303"}
    infinite = inspect(models.EveryStep(), draw(9, 2, 3), loss=lambda output: output.sum() / 0.0)
    assert codes(infinite) == {"GF303"}


class Inference(models.Forecaster):
    """A model whose forward is decorated for use and not for training."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def test_a_forward_without_any_gradient_is_a_finding_and_no_refusal():
    """no_grad around it all: no loss reaches the layer."""
    result = inspect(Inference(right=True), (draw(5, 8, 3), draw(5, 1)))
    assert codes(result) == {"GF108"}


def test_every_finding_has_its_kinds_advice():
    """What to try stands in `gradflow explain`, word for word."""
    for finding in inspect(with_bias(0, -12.0), 200.0 * X, needs_lag=60).findings:
        assert finding.advice == FINDING_KINDS[finding.code].advice
