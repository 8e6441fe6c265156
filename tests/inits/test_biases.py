"""What the initializations put into the biases: the sum of both vectors is what counts."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from gradflow import inits
from gradflow.cells import LSTM
from gradflow.errors import GateValueError
from gradflow.inits import recurrent_places
from gradflow.inits.biases import chrono_mean
from tests.field_cases import field_case, lstm_cell_of

GATED = [nn.LSTM, nn.GRU]


def sums(module: nn.Module, gate: str) -> torch.Tensor:
    """Return b_ih + b_hh of a gate over all places, read from torch's parameters."""
    found = []
    for place in recurrent_places(module):
        rows = place.rows(gate)
        found.append((place.bias_ih[rows] + place.bias_hh[rows]).detach())
    return torch.cat(found)


# closed form


@given(st.floats(-6, 6))
def test_the_two_biases_add_up_to_the_value_asked_for(value: float):
    """However the bias vectors were, their sum is the value, in every layer and direction."""
    module = nn.LSTM(2, 3, num_layers=2, bidirectional=True, dtype=torch.float64)
    inits.forget_bias_(module, value)
    assert torch.equal(sums(module, "forget"), torch.full((12,), value, dtype=torch.float64))


def test_the_gate_at_rest_is_the_sigmoid_of_the_value():
    """b = 1 keeps 0.7311 a step and halves in 2.21 steps; the module's own step says the same."""
    cell = LSTM(2, 3, dtype=torch.float64)
    report = inits.forget_bias_(inits_zeroed(cell), 1.0)
    step = cell.step(torch.zeros(1, 2).double(), cell.initial_state(1))
    assert torch.all(step["forget"] == torch.sigmoid(torch.tensor(1.0).double()))
    assert report.gate("forget").value.mean == pytest.approx(0.7310585786300049, abs=1e-15)
    assert report.gate("forget").half_life == pytest.approx(2.2126777968008744, abs=1e-14)


def inits_zeroed(module: nn.Module) -> nn.Module:
    """Return the module with every parameter zero."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    return module


def test_a_grus_keep_gate_is_its_update_gate():
    """torch's z keeps, so a positive bias on it remembers."""
    module = nn.GRU(2, 4)
    (gate,) = inits.forget_bias_(module, 2.0).gates
    assert (gate.gate, gate.role) == ("update", "keep")
    assert torch.all(sums(module, "update") == 2.0)


@pytest.mark.parametrize("layer", GATED)
def test_all_else_stays_as_it_was(layer: type[nn.RNNBase]):
    """A forget bias touches the rows of one gate in the two biases, and nothing else."""
    module = layer(3, 4, num_layers=2)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    inits.forget_bias_(module, 1.5)
    rows = recurrent_places(module)[0].rows("forget" if layer is nn.LSTM else "update")
    for name, value in module.state_dict().items():
        changed = value != before[name]
        if name.startswith("bias"):
            changed[rows] = False
        assert not changed.any(), name


def test_chrono_spreads_memories_between_2_steps_and_t_max():
    """A gate of bias b forgets in 1 + e^b steps: between 2 and T_max, and b_i = -b_f."""
    module = nn.LSTM(2, 500, dtype=torch.float64)
    inits.chrono_(module, 100)
    memory = 1 + torch.exp(sums(module, "forget"))
    assert 2 <= memory.min() < 3
    assert 99 < memory.max() <= 100
    assert torch.equal(sums(module, "input"), -sums(module, "forget"))


def test_chronos_mean_forget_gate_is_the_integral():
    """T_max = 100: E f = 1 - ln(50) / 98 = 0.960081; 51200 units agree within 4 standard errors."""
    assert chrono_mean(100) == pytest.approx(0.960081, abs=5e-7)
    generator = torch.Generator().manual_seed(0)
    values = []
    for _ in range(100):
        cell = nn.LSTM(1, 64, num_layers=8, dtype=torch.float64)
        inits.chrono_(cell, 100, generator=generator)
        values.append(torch.sigmoid(sums(cell, "forget")))
    found = torch.cat(values)
    error = found.std().item() / math.sqrt(len(found))
    assert abs(found.mean().item() - 0.960081) < 4 * error


@given(st.floats(2.5, 1e6))
def test_the_mean_of_chrono_is_its_integral_by_quadrature(t_max: float):
    """The closed form equals the average of u / (1 + u) over many u between 1 and T_max - 1."""
    u = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    middle = 1 + (t_max - 2) * ((u[1:] + u[:-1]) / 2) ** 3  # denser where the integrand bends
    weight = (t_max - 2) * (u[1:] ** 3 - u[:-1] ** 3)
    average = (weight * middle / (1 + middle)).sum().item() / (t_max - 2)
    assert chrono_mean(t_max) == pytest.approx(average, abs=1e-6)


# reference


def test_a_loop_over_every_bias_gives_twice_the_value():
    """The field's loop set both vectors to 1, which is 2; forget_bias_ of 2 gives the same gate."""
    case = field_case("forget_bias_set_twice")
    for name in ("both_biases", "one_bias"):
        cell = lstm_cell_of(case.weights(name))
        (place,) = recurrent_places(cell)
        wanted = case.expected[name]["effective_forget_bias"]
        assert torch.all(place.effective_bias("forget") == wanted)
        report = inits.forget_bias_(cell, wanted)
        assert report.gate("forget").half_life == pytest.approx(
            case.expected[name]["half_life_steps"], abs=1e-13
        )


def test_the_copied_snippet_is_what_the_snippet_does():
    """Against the snippet itself, written out: eye_, then the second quarter of every bias."""
    theirs = nn.LSTM(3, 8, num_layers=2, bidirectional=True)
    ours = nn.LSTM(3, 8, num_layers=2, bidirectional=True)
    ours.load_state_dict(theirs.state_dict())
    for name, parameter in theirs.named_parameters():
        if "weight_hh" in name:
            nn.init.eye_(parameter)
        elif "bias" in name:
            n = parameter.size(0)
            parameter.data[n // 4 : n // 2].fill_(1.0)
    report = inits.as_commonly_copied_(ours)
    assert all(map(torch.equal, theirs.parameters(), ours.parameters()))
    assert report.gate("forget").bias.mean == 2.0
    assert report.gate("forget").value.mean == pytest.approx(0.8807970779778823)
    assert report.gate("input").recurrent_mean_square == 1.0
    assert report.gate("forget").recurrent_mean_square == 0.0


def test_the_copied_snippet_misses_a_grus_gates():
    """A GRU has three gates: the second quarter is a quarter of reset and half of update."""
    report = inits.as_commonly_copied_(nn.GRU(3, 8))
    assert report.notes[1].endswith(
        "the effective bias is 2: 2 of 8 units of reset, 4 of 8 units of update"
    )
    assert (report.gate("update").bias.low, report.gate("update").bias.high) != (2.0, 2.0)


# edges


def test_zero_bias_halves_every_gate():
    """At rest every gate is 1/2; a module without biases is left as it is."""
    for layer in (nn.LSTM, nn.GRU):
        report = inits.zero_bias_(layer(2, 3))
        assert all(gate.value.mean == 0.5 for gate in report.gates if gate.value)
    bare = nn.LSTM(2, 3, bias=False)
    before = [parameter.clone() for parameter in bare.parameters()]
    inits.zero_bias_(bare)
    inits.as_commonly_copied_(nn.GRU(2, 3, bias=False))
    assert all(map(torch.equal, before, bare.parameters()))


# words


@pytest.mark.parametrize("function", [inits.forget_bias_, lambda module: inits.chrono_(module, 9)])
def test_what_has_no_keep_gate_or_no_bias_is_refused_in_words(function):
    """A plain RNN has no gate, bias=False no bias; the module is named and stays as it was."""
    with pytest.raises(GateValueError, match=r"a plain RNN has none. Use an initialization of its"):
        function(nn.RNN(2, 3))
    with pytest.raises(GateValueError, match=r"made with bias=False. Make it with bias=True"):
        function(nn.LSTM(2, 3, bias=False))


@pytest.mark.parametrize("t_max", [2, 1, -5, math.nan, math.inf])
def test_chrono_needs_more_than_two_steps(t_max: float):
    """ln U(1, 1) has no spread, and less is no memory at all."""
    with pytest.raises(GateValueError, match="must be more than 2"):
        inits.chrono_(nn.LSTM(2, 3), t_max)
    with pytest.raises(GateValueError, match="finite number"):
        inits.forget_bias_(nn.LSTM(2, 3), math.nan)


def test_a_report_is_text_and_finds_its_gates():
    """One line for the scheme and one for each gate; an unknown gate is a KeyError."""
    report = inits.chrono_(nn.LSTM(2, 3, bidirectional=True), 100)
    lines = str(report).splitlines()
    assert lines[0] == "chrono:100: b_keep = ln U(1, 99), b_input = -b_keep; all else as it was"
    assert len(lines) == 5
    assert lines[1].split()[:3] == ["layer", "0", "input"]
    assert report.gate("forget", "layer 0 reverse").place == "layer 0 reverse"
    with pytest.raises(KeyError):
        report.gate("output")
