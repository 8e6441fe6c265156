"""Gradient flow of a user's own model: what is right is left alone, what is wrong is named."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gradflow.errors import CellLoadError, GradflowError, ShapeError
from gradflow.experiments.inspect import inspect
from gradflow.records.inspect import Finding, InspectResult
from tests.data import inspected_models as models

FINE = "gradient flow is fine; look elsewhere"


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Unit random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def codes(result: InspectResult, least: str = "warning") -> set[str]:
    """The codes of the findings at or above a severity."""
    return {finding.code for finding in result.worst(least)}


def one(result: InspectResult, code: str) -> Finding:
    """The first finding of a code."""
    return next(finding for finding in result.findings if finding.code == code)


HEALTHY = [
    (nn.LSTM(3, 8), None, None),
    (nn.GRU(3, 8, 2, bidirectional=True), None, None),
    (nn.LSTM(3, 8, proj_size=2), draw(12, 4, 3), None),
    (models.Classifier("RNN"), (draw(6, 8, 3), torch.tensor([0, 1, 0, 1, 1, 0])), None),
    (models.Classifier(), (draw(6, 12, 3), torch.tensor([0, 1, 0, 1, 1, 0])), "cross_entropy"),
    (models.Forecaster(right=True), (draw(5, 8, 3), draw(5, 1)), "mse"),
    (models.Padded(packed=True), draw(3, 12, 3), lambda output: output.sum()),
    (models.Truncated(None), (draw(5, 10, 3), torch.tensor([0, 1, 0, 1, 1])), None),
    (models.Tagger(), (torch.arange(60).reshape(4, 15) % 20, torch.ones(4, 15).long()), None),
    (models.OwnNet(), draw(10, 4, 3), lambda output: output.sum()),
    (models.held_lstm(0.99), draw(60, 4, 4), lambda answer: answer[1][0].sum()),
]


@pytest.mark.parametrize(("model", "batch", "loss"), HEALTHY)
def test_a_healthy_model_gets_no_warning_and_is_sent_elsewhere(model, batch, loss):
    """Fused or stepped, packed or not, its own cell or torch's: nothing to say but how long."""
    result = inspect(model, batch, loss=loss)
    assert codes(result) == set()
    assert result.healthy
    assert result.passed
    assert FINE in result.verdict[0]
    assert len(result.verdict) == 3


def test_an_untrained_lstm_has_a_horizon_of_about_eighteen_steps_and_is_not_ill():
    """Its forget gates are near 0.5 and its candidate adds a little; information, no warning."""
    result = inspect(nn.LSTM(8, 64), draw(60, 4, 8))
    assert 14 < result.layers[0].horizon < 24
    assert one(result, "GF100").severity == "info"


@pytest.mark.parametrize("asked", [True, False])
def test_forget_gates_at_a_tenth_vanish_against_sixty_steps(asked: bool):
    """Against a lag that was asked for it is an error, against a loss at the end a warning."""
    batch = draw(60, 4, 4)
    if asked:
        result = inspect(models.held_lstm(0.1), batch, needs_lag=60)
    else:
        result = inspect(models.held_lstm(0.1), batch, loss=lambda answer: answer[1][0].sum())
    found = one(result, "GF101")
    assert 3 < found.value < 6
    assert "against 60 needed" in found.message
    assert (found.severity, found.gate) == ("error" if asked else "warning", "forget")
    assert result.passed != asked
    assert FINE not in " ".join(result.verdict)


def test_forget_gates_at_a_tenth_are_no_fault_without_a_need():
    """Vanishing is judged against a need alone."""
    assert inspect(models.held_lstm(0.1), draw(60, 4, 4)).healthy
    every_step = inspect(models.held_lstm(0.1), draw(60, 4, 4), loss=lambda a: a[0].sum())
    assert every_step.healthy


def test_forget_gates_at_0_99_grow_a_little_and_are_no_illness():
    """With default recurrent weights the Jacobian grows 10^1.5-fold in 60 steps."""
    result = inspect(models.held_lstm(0.99), draw(60, 4, 4), needs_lag=60)
    assert result.healthy
    assert result.layers[0].horizon is None
    assert 0.5 < result.layers[0].log10_norm[-1] < 2.5
    assert "not reached within the data's 60 steps" in one(result, "GF100").message


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


@pytest.mark.parametrize("cut", [3, 12])
def test_a_detached_state_is_found_with_its_step(cut: int):
    """Exact zeros before the step, a gradient from it on: a cut, and not vanishing."""
    batch = (draw(5, 20, 3), torch.tensor([0, 1, 0, 1, 1]))
    result = inspect(models.Truncated(cut), batch)
    assert one(result, "GF103").value == cut
    assert "GF101" not in codes(result)
    assert not result.passed


@pytest.mark.parametrize("viewed", [True, False])
def test_time_and_batch_mixed_up_is_found_with_and_without_a_loss(viewed: bool):
    """The output of one sample moves with the input of another; in a right model by 0 exactly."""
    for loss in (None, lambda output: output.sum()):
        model = models.Forecaster(right=False, viewed=viewed)
        found = one(inspect(model, draw(5, 8, 3), loss=loss), "GF107")
        assert found.severity == "error"
        assert found.value > 0.001


def test_equal_numbers_of_steps_and_samples_need_the_layout_to_be_told():
    """Nothing tells then which axis is which; with the layout said, the mix-up is found."""
    x = draw(6, 6, 3)
    assert inspect(models.Forecaster(right=False), x).healthy
    said = inspect(models.Forecaster(right=False), x, layout="batch_first")
    assert one(said, "GF107").severity == "error"
    assert inspect(models.Forecaster(right=True), x, layout="batch_first").healthy


def test_padding_that_is_read_is_found():
    """Run unpacked, a sample of 2 steps in 12 has nearly all its gradient in its padding."""
    x, lengths = draw(3, 12, 3), [12, 5, 2]
    found = one(inspect(models.Padded(packed=False), x, lengths), "GF106")
    assert found.value > 0.9
    right = inspect(models.Padded(packed=True), x, lengths, loss=lambda output: output.sum())
    assert right.healthy
    assert FINE in right.verdict[0]


def test_padded_steps_that_no_loss_reads_are_no_fault():
    """A forward layer that answers at every step, and a loss of the samples' own steps."""
    torch.manual_seed(0)
    model = nn.Sequential(models.EveryStep(), nn.Linear(5, 1))
    batch = (draw(20, 4, 3), draw(20, 4, 1), [20, 10, 5, 3])
    assert inspect(model, batch).healthy
    assert inspect(model, batch[0], lengths=batch[2]).healthy
    every = inspect(model, batch, loss=lambda output, _: output.sum())
    assert one(every, "GF106").value > 0.5


def test_the_reversed_half_of_the_last_output_is_a_structural_zero():
    """It has read one step; the last state has read them all."""
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4, bidirectional=True)
    x = draw(10, 2, 3)
    result = inspect(layer, x, loss=lambda answer: answer[0][-1].sum())
    found = one(result, "GF105")
    assert (found.direction, found.layer) == ("reverse", "lstm, layer 0")
    assert inspect(layer, x, loss=lambda answer: answer[1][0].sum()).healthy


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


def test_without_data_layers_run_longer_than_the_lag_that_is_needed():
    """A horizon of 100 steps is told from one of 1000 only by a run that long."""
    result = inspect(models.held_lstm(0.1), needs_lag=150)
    assert result.layers[0].lag[-1] == 151
    assert "151 steps" in result.verdict[2]


def test_a_half_precision_model_is_computed_in_float64_and_said_so():
    """The twin meets the fused bfloat16 layer within a few of its roundings."""
    model = models.Classifier().bfloat16()
    result = inspect(model, (draw(6, 12, 3).bfloat16(), torch.ones(6).long()))
    assert "GF305" not in codes(result, "info")
    assert any("bfloat16" in note for note in result.layers[0].notes)
    assert result.layers[0].log10_dL_dh_own_precision is not None


def test_the_users_model_is_not_touched():
    """Its weights, mode, forward and gradients are as before."""
    model = models.Tagger().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    inspect(model, (torch.arange(20).reshape(2, 10), torch.ones(2, 10).long()))
    assert model.training
    assert "forward" not in vars(model.rnn)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.get_default_dtype() == torch.float32


def test_dropout_is_off_and_said_so():
    """A dropped unit is no finding."""
    result = inspect(models.Tagger(), torch.arange(20).reshape(2, 10))
    assert "Dropout is off while this is measured." in result.notes


def test_a_file_of_weights_is_inspected_alone(tmp_path: Path):
    """Wrapped and prefixed; every layer and direction, on zero and unit random input."""
    torch.manual_seed(0)
    encoder = nn.GRU(4, 6, 2, bidirectional=True)
    weights = {f"module.encoder.{n}": p for n, p in encoder.state_dict().items()}
    path = tmp_path / "model.ckpt"
    torch.save({"state_dict": weights, "epoch": 3}, path)
    result = inspect(path)
    places = [(each.name, each.layer, each.direction) for each in result.layers]
    assert places == [("encoder", k, way) for k in (0, 1) for way in ("forward", "reverse")]
    assert sum(each.parameters for each in result.layers) == 1152
    assert result.layers[0].fused_difference < 1e-12
    assert "give it with --data" in result.verdict[2]


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_file_is_run_on_data_with_lengths_in_either_layout(tmp_path: Path, batch_first: bool):
    """The number of lengths tells which axis is the batch; a curve ends where its sample does."""
    torch.manual_seed(0)
    torch.save(nn.LSTM(3, 5, bidirectional=True).state_dict(), tmp_path / "weights.pt")
    x = draw(3, 12, 3) if batch_first else draw(12, 3, 3)
    result = inspect(tmp_path / "weights.pt", {"x": x, "lengths": torch.tensor([12, 5, 2])})
    for layer in result.layers:
        assert layer.lag[-1] == 12
        assert layer.windows[0] == 9
        assert layer.windows[-1] == 1


def test_a_result_comes_back_from_its_document():
    """What is stored is the whole of it."""
    result = inspect(models.Classifier(), (draw(6, 12, 3), torch.ones(6).long()))
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    again = InspectResult.from_json(document).to_json()
    assert json.loads(json.dumps(again)) == document
    layer = document["results"]["layers"][0]
    asked = {"name", "kind", "layer", "direction", "input_size", "hidden_size", "projection",
             "parameters", "gates", "lag", "log10_norm", "direct_log10_norm", "half_life",
             "horizon", "lyapunov", "log10_dL_dh", "log10_dL_dc"}  # fmt: skip
    assert asked <= set(layer)
    assert set(layer["gates"]) == {"input", "forget", "output"}
    assert {"effective_bias_mean", "value_mean", "value_min", "value_max",
            "saturated_fraction"} <= set(layer["gates"]["forget"])  # fmt: skip


def test_what_cannot_be_inspected_says_why():
    """No recurrent layer; a batch that does not fit; a loss that does not fit."""
    with pytest.raises(CellLoadError, match="no recurrent layer"):
        inspect(nn.Linear(2, 2))
    with pytest.raises(CellLoadError, match="fails on inputs"):
        inspect(models.Classifier(), draw(4, 5, 7))
    with pytest.raises(ShapeError, match="one number"):
        inspect(models.Classifier(), draw(4, 5, 3), loss=lambda output: output)
    with pytest.raises(GradflowError, match="one of a few names"):
        inspect(models.Classifier(), (draw(4, 5, 3), draw(4, 2)), loss="hinge")
    with pytest.raises(GradflowError, match="compares with targets"):
        inspect(models.Classifier(), draw(4, 5, 3), loss="mse")
