"""What the initializations put into the weights, against their definitions and their statistics."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from gradflow import inits
from gradflow.cells import GRU, LSTM, RNN
from gradflow.errors import GateValueError
from gradflow.inits import recurrent_places
from tests.field_cases import field_case

LAYERS = [nn.LSTM, nn.GRU, nn.RNN]
GATES = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}
WEIGHT_SCHEMES = [
    inits.torch_default_,
    inits.xavier_,
    inits.he_,
    inits.orthogonal_per_gate_,
    inits.orthogonal_stacked_,
    inits.scaled_identity_,
]


def seeded(seed: int = 0) -> torch.Generator:
    """Return a fresh generator."""
    return torch.Generator().manual_seed(seed)


def blocks(module: nn.Module) -> list[Tensor]:
    """Return the recurrent block of every gate of every layer and direction, in float64."""
    return [
        place.recurrent_weight(gate).detach().double()
        for place in recurrent_places(module)
        for gate, _ in place.roles
    ]


# closed form


@pytest.mark.parametrize("layer", LAYERS)
def test_orthogonal_per_gate_keeps_every_length(layer: type[nn.RNNBase]):
    """Each gate's block has W^T W = I, in every layer and direction, and no two are alike."""
    module = layer(3, 7, num_layers=2, bidirectional=True, dtype=torch.float64)
    inits.orthogonal_per_gate_(module, generator=seeded())
    found = blocks(module)
    assert len(found) == 4 * GATES[layer]
    for block in found:
        torch.testing.assert_close(block.mT @ block, torch.eye(7).double(), rtol=0, atol=1e-13)
    assert not torch.allclose(found[0], found[1])


@pytest.mark.parametrize(("layer", "share"), [(nn.LSTM, 1 / 4), (nn.GRU, 1 / 3), (nn.RNN, 1.0)])
def test_a_stacked_orthogonal_matrix_shares_its_length_among_the_gates(
    layer: type[nn.RNNBase], share: float
):
    """The gates' squared singular values average exactly 1/4 (LSTM), 1/3 (GRU)."""
    module = layer(16, 32, num_layers=2, dtype=torch.float64)
    report = inits.orthogonal_stacked_(module, generator=seeded())
    squares = [torch.linalg.svdvals(block).square().mean() for block in blocks(module)]
    for place in recurrent_places(module):
        whole = place.weight_hh.detach()
        torch.testing.assert_close(whole.mT @ whole, torch.eye(32).double(), rtol=0, atol=1e-13)
    assert torch.stack(squares).mean().item() == pytest.approx(share, abs=1e-14)
    found = [gate.recurrent_mean_square for gate in report.gates]
    assert found == pytest.approx([square.item() for square in squares])


def test_each_gate_of_a_stacked_orthogonal_lstm_has_nearly_a_quarter():
    """At H=32 a gate's mean squared singular value is 0.25 with a deviation of 0.0082.

    So most lie between 0.238 and 0.257 (73% of 12000), and 40 gates within four deviations.
    """
    found = []
    for seed in range(10):
        module = nn.LSTM(16, 32, dtype=torch.float64)
        inits.orthogonal_stacked_(module, generator=seeded(seed))
        found += [block.square().sum().item() / 32 for block in blocks(module)]
    assert max(abs(value - 0.25) for value in found) < 4 * 0.0082
    inside = [value for value in found if 0.238 <= value <= 0.257]
    assert len(inside) >= 0.55 * len(found)


@pytest.mark.parametrize("layer", LAYERS)
def test_scaled_identity_is_0_95_on_each_gates_diagonal(layer: type[nn.RNNBase]):
    """Every gate repeats every unit at 0.95, and mixes none."""
    module = layer(3, 6, dtype=torch.float64)
    inits.scaled_identity_(module, 0.95)
    for block in blocks(module):
        torch.testing.assert_close(block, 0.95 * torch.eye(6).double(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("scheme", "variance"),
    [
        (inits.xavier_, lambda rows, columns: 2 / (rows + columns)),
        (inits.he_, lambda rows, columns: 2 / columns),
        (inits.torch_default_, lambda rows, columns: 1 / (3 * rows)),
    ],
)
def test_random_weights_have_the_variance_of_their_paper(scheme, variance):
    """Per gate: 2 / (fan in + fan out), 2 / fan in, 1 / (3 H).

    The relative error of a variance from N numbers is below sqrt(2 / N); 5 of them are allowed.
    """
    module = nn.LSTM(100, 200, dtype=torch.float64)
    scheme(module, generator=seeded())
    (place,) = recurrent_places(module)
    for gate, _ in place.roles:
        for weight in (place.input_weight(gate), place.recurrent_weight(gate)):
            expected = variance(*weight.shape)
            allowed = 5 * math.sqrt(2 / weight.numel())
            assert weight.square().mean().item() == pytest.approx(expected, rel=allowed)
            assert abs(weight.mean().item()) < 5 * math.sqrt(expected / weight.numel())


# reference


def test_torchs_default_is_what_torch_itself_draws():
    """The bound of torch's own uniform draw is 1/sqrt(hidden), for weights and both biases."""
    theirs = nn.GRU(30, 100)
    ours = nn.GRU(30, 100)
    inits.torch_default_(ours, generator=seeded())
    for module in (theirs, ours):
        for parameter in module.parameters():
            assert parameter.abs().max().item() <= 0.1
            assert parameter.abs().max().item() > 0.095


@pytest.mark.parametrize("name", ["whole", "per_gate"])
def test_the_field_case_reads_as_it_was_found(name: str):
    """A user's `orthogonal_` on the whole matrix: the gates' squares average 1/4, not 1."""
    case = field_case("orthogonal_whole_and_gates")
    expected = case.expected[name]
    cell = nn.LSTMCell(16, 32)
    cell.load_state_dict({k: torch.tensor(v) for k, v in case.weights(name).items()})
    (place,) = recurrent_places(cell)
    for gate, _ in place.roles:
        values = torch.linalg.svdvals(place.recurrent_weight(gate).detach().double())
        found = [values.min().item(), values.max().item(), values.square().mean().item()]
        wanted = [expected["gates"][gate][key] for key in ("least", "greatest", "mean_square")]
        assert found == pytest.approx(wanted, abs=case.tolerance)


# edges


@pytest.mark.parametrize("scheme", WEIGHT_SCHEMES)
@pytest.mark.parametrize("bias", [True, False])
def test_every_module_is_set_whole(scheme, bias: bool):
    """Layers, both directions, projections, cells and gradflow's own: no entry stays as it was."""
    modules: list[nn.Module] = [
        nn.LSTM(3, 5, num_layers=2, bidirectional=True, proj_size=2, bias=bias),
        nn.GRU(3, 5, num_layers=2, bidirectional=True, bias=bias),
        nn.RNN(3, 5, nonlinearity="relu", bias=bias),
        *(cell(3, 5, bias=bias) for cell in (nn.LSTMCell, nn.GRUCell, nn.RNNCell)),
        *(cell(3, 5, bias=bias) for cell in (LSTM, GRU, RNN)),
    ]
    for module in modules:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.fill_(7.0)
        report = scheme(module, generator=seeded())
        assert all(torch.all(parameter != 7.0) for parameter in module.parameters())
        assert {gate.bias is None for gate in report.gates} == {not bias}


@pytest.mark.parametrize("scheme", WEIGHT_SCHEMES)
def test_one_seed_gives_the_same_weights_in_every_dtype(scheme):
    """Numbers are drawn in float64 and rounded, so float32 is the rounded float64."""
    wide, narrow = nn.GRU(3, 5, dtype=torch.float64), nn.GRU(3, 5, dtype=torch.float32)
    for module in (wide, narrow):
        scheme(module, generator=seeded(3))
    for one, other in zip(wide.parameters(), narrow.parameters(), strict=True):
        assert torch.equal(one.float(), other)


def test_a_projected_lstm_has_orthonormal_columns():
    """A block of (hidden, projection) cannot be square; its columns are orthonormal, and W_hr."""
    module = nn.LSTM(3, 8, proj_size=3, dtype=torch.float64)
    inits.orthogonal_per_gate_(module, generator=seeded())
    (place,) = recurrent_places(module)
    for block in (*blocks(module), place.weight_hr.detach().mT):
        torch.testing.assert_close(block.mT @ block, torch.eye(3).double(), rtol=0, atol=1e-13)


def test_gradients_and_training_are_not_disturbed():
    """Weights are set in place: the optimizer's parameters are the same, and still learn."""
    module = nn.LSTM(3, 5)
    before = list(module.parameters())
    inits.orthogonal_per_gate_(module)
    assert all(one is other for one, other in zip(before, module.parameters(), strict=True))
    module(torch.randn(4, 2, 3))[0].sum().backward()
    assert all(parameter.is_leaf and parameter.grad is not None for parameter in before)


# words


def test_the_report_names_scheme_gain_and_share():
    """A gain is part of the name; the share of a stacked matrix is told."""
    assert inits.orthogonal_per_gate_(nn.GRU(2, 3), 0.9).scheme == "orthogonal-per-gate:0.9"
    report = inits.orthogonal_stacked_(nn.GRU(2, 3))
    assert report.notes == ("each gate's squared singular values average 1/3",)
    assert "no bias to set" in str(inits.xavier_(nn.GRU(2, 3, bias=False)))


@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_a_scale_that_is_no_number_is_refused_before_anything_is_set(scale: float):
    """The module stays as it was."""
    module = nn.GRU(2, 3)
    before = [parameter.clone() for parameter in module.parameters()]
    for scheme in (inits.scaled_identity_, inits.orthogonal_per_gate_, inits.orthogonal_stacked_):
        with pytest.raises(GateValueError, match="finite number"):
            scheme(module, scale)
    assert all(map(torch.equal, before, module.parameters()))
