"""Parity of two cells: what agrees, what differs, where first, and why."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import gradflow
from gradflow.cells import GRU, LSTM, RNN
from gradflow.errors import CellLoadError, SettingError, ShapeError
from gradflow.experiments.parity import parity, run_parity
from gradflow.records.parity import ParityResult
from gradflow.settings.parity import ParitySettings
from tests.data import parity_layers, parity_square, parity_steps
from tests.reference.textbook_gru import TextbookGRUCell


def failed_checks(result: ParityResult) -> set[str]:
    """Return the names of the checks that failed."""
    return {check.name for check in result.checks if not check.passed}


# closed form


def test_one_unit_without_input_weights_is_tanh_of_u_h():
    """An RNN of one unit with W = b = 0 halves h through tanh; both sides, to the last digit."""
    cell = RNN(1, 1).double()
    with torch.no_grad():
        for name, parameter in cell.named_parameters():
            parameter.fill_(0.5 if name == "weight_hh" else 0.0)
    result = parity(cell, cell.to_torch(), weights="own", start="zero")
    assert result.passed
    assert result.largest_error == 0.0


# reference


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("lstm", "torch.LSTMCell"),
        ("lstm", "numpy.lstm"),
        ("torch.LSTM", "numpy.lstm"),
        ("gru", "torch.GRU"),
        ("torch.GRUCell", "numpy.gru"),
        ("gru-before", "numpy.gru-before"),
        ("rnn", "torch.RNN"),
        ("rnn-relu", "torch.RNNCell-relu"),
        ("numpy.rnn-relu", "torch.RNN-relu"),
    ],
)
def test_ours_torchs_and_numpys_are_one_cell(a: str, b: str):
    """States, gates and every gradient agree to a few roundings; the run could have told others."""
    result = run_parity(ParitySettings(a=a, b=b))
    assert result.passed, result.checks
    assert result.largest_error is not None
    # five steps of sums of ten products, gradients of size 10: some ten roundings
    assert result.largest_error < 1e-14
    assert not result.undecided
    groups = {comparison.group for comparison in result.comparisons}
    assert {"state", "input gradient", "state gradient", "parameter gradient"} <= groups
    assert f"{result.largest_error:.2g}, the tolerance 1e-10" in result.verdict


@pytest.mark.parametrize(
    "function",
    [
        parity_steps.textbook_lstm,
        parity_steps.course_lstm,
        parity_steps.vector_rnn,
        parity_steps.state_tuple_lstm,
        parity_steps.numbered_lstm,
        parity_steps.docs_gru,
        parity_steps.four_bias_gru,
    ],
)
def test_a_right_step_function_equals_torchs_cell(function: object):
    """In whatever notation: rows or columns, one weight or four, one bias or two."""
    result = parity(function)
    assert result.passed, result.verdict
    assert result.b.name.startswith("torch.")
    differences = result.a.gradient == "finite differences"
    gradients = [c for c in result.comparisons if "gradient" in c.group]
    assert {c.tolerance for c in gradients} == {1e-7 if differences else 1e-10}


def test_the_gru_of_most_textbooks_equals_ours_with_the_reset_before():
    """d2l's GRU in square matrices, both ways round, and our reset="before"."""
    assert parity(parity_steps.d2l_gru, "gru-before").passed
    assert parity(parity_square.SquareGRU(4), "numpy.gru-before").passed
    assert parity(parity_square.StackedGRU(4), GRU(4, 4, reset="before")).passed
    assert parity(TextbookGRUCell(3, 5), "gru-before").passed


@pytest.mark.parametrize("width", [1, 4])
def test_square_weights_still_find_their_places(width: int):
    """Input as wide as the state: no shape tells, and parity still holds."""
    assert parity(parity_square.SquareLSTM(width), "torch.LSTM").passed
    for function in (parity_steps.textbook_lstm, parity_steps.four_bias_gru):
        assert parity(function, input_size=width, hidden=width, steps=2, batch=2).passed


def test_a_layer_equals_torchs_layer():
    """A loop over a hand-written cell is nn.LSTM."""
    assert parity(parity_layers.Layer(), "torch.LSTM").passed
    assert parity(nn.LSTM(4, 4, batch_first=True), parity_layers.Layer(4, 4)).passed


def test_each_side_may_keep_its_own_weights():
    """A cell and its conversion agree as they are; with one number changed they do not."""
    cell = nn.LSTMCell(3, 4)
    ours = LSTM.from_torch(cell)
    assert parity(cell, ours, weights="own").passed
    with torch.no_grad():
        ours.weight_hh[6, 1] += 1e-3
    result = parity(cell, ours, weights="own")
    assert failed_checks(result) == {"states agree", "gradients agree"}
    assert result.first_difference is not None
    assert result.first_difference.gate == "forget"


# edges


def test_one_step_one_row_one_unit():
    """The smallest run there is."""
    result = parity("gru", "torch.GRU", input_size=1, hidden=1, steps=1, batch=1)
    assert result.first_difference is None
    assert result.sizes == {"input_size": 1, "hidden_size": 1, "steps": 1, "batch": 1}


def test_cells_without_bias_are_compared_without():
    """bias=False on one side sets the other's to zero, and says so."""
    result = parity(nn.GRUCell(3, 5, bias=False), "torch.GRUCell")
    assert result.passed
    assert any("GRUCell has no bias" in note for note in result.notes)


def test_unknown_cells_are_compared_by_name():
    """Two versions of one module, of whatever recurrence, are held against each other."""

    class Leaky(nn.Module):
        def __init__(self, leak: float) -> None:
            super().__init__()
            self.input_size, self.hidden_size, self.leak = 3, 5, leak
            self.lin, self.gain = nn.Linear(3, 10), nn.Linear(5, 10)

        def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return self.leak * h + torch.tanh((self.lin(x) * self.gain(h))[:, :5])

    assert parity(Leaky(0.9), Leaky(0.9)).passed
    result = parity(Leaky(0.9), Leaky(0.8))
    assert result.kind is None
    assert any("no variants were tried" in note for note in result.notes)


def test_a_result_survives_its_own_json():
    """A stored result read back is the result, differences and variants included."""
    result = parity("torch.GRUCell", parity_steps.d2l_gru)
    again = ParityResult.from_json(json.loads(json.dumps(result.to_json())))
    assert again.to_json() == result.to_json()
    assert gradflow.parity is parity


def test_the_seed_decides_the_numbers():
    """The same seed gives the same errors, another one others."""
    errors = [
        parity("torch.GRUCell", "gru-before", seed=seed).comparisons[0].error for seed in (1, 1, 2)
    ]
    assert errors[0] == errors[1] != errors[2]


# words


@pytest.mark.parametrize(
    ("a", "b", "options", "error", "words"),
    [
        ("lstm", "gru", {}, CellLoadError, "lstm is an LSTM and gru a GRU"),
        (nn.GRUCell(3, 5), nn.GRUCell(2, 5), {}, ShapeError, "must be of the same widths"),
        (nn.GRUCell(3, 5), None, {"hidden": 4}, ShapeError, "--hidden asks for 4"),
        ("gru", None, {"gate_order": "rz"}, SettingError, "names each of its gates once"),
        ("gru", None, {"steps": 0}, SettingError, "must be at least 1"),
        ("gru", None, {"tolerance": 0}, SettingError, "must be greater than 0"),
    ],
)
def test_wrong_requests_say_what_is_wrong(
    a: object, b: object, options: dict[str, object], error: type[Exception], words: str
):
    """Kinds, widths, orders and numbers that cannot be."""
    with pytest.raises(error, match=words):
        parity(a, b, **options)


def test_two_recordings_have_nothing_to_run():
    """One side must be a network."""
    tensors = {"x": torch.zeros(2, 1, 3).double(), "y": torch.zeros(2, 1, 3).double()}
    with pytest.raises(SettingError, match="nothing to run"):
        parity(tensors, dict(tensors))
    assert np.isfinite(ParitySettings().tolerance)
