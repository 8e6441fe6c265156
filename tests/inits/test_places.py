"""Which modules can be initialized, where their weights are, and schemes by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from gradflow import inits
from gradflow.cells import GRU, LSTM, stack_cells
from gradflow.cells.projected_lstm import ProjectedLSTM
from gradflow.checkpoints import from_torch
from gradflow.errors import CellLoadError, SettingError
from gradflow.inits import recurrent_places


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_places_are_the_cells_that_the_module_is_made_of(layer: type[nn.RNNBase]):
    """Each layer and direction in torch's order, with the rows that gradflow's own cells have."""
    module = layer(3, 4, num_layers=2, bidirectional=True)
    places, cells = recurrent_places(module), from_torch(module)
    assert [place.name for place in places] == [
        "layer 0",
        "layer 0 reverse",
        "layer 1",
        "layer 1 reverse",
    ]
    for place, cell in zip(places, cells, strict=True):
        assert torch.equal(place.weight_hh, cell.weight_hh)
        for gate in (*cell.gates, cell.candidate_gate):
            own = gate.recurrent.weight_of(cell)
            assert torch.equal(place.recurrent_weight(gate.name), own)


def test_a_subclass_is_initialized_as_what_it_is():
    """A user's own subclass of torch's layer has torch's parameters."""

    class Mine(nn.GRU):
        pass

    assert recurrent_places(Mine(2, 3))[0].kind == "GRU"


def test_a_model_is_told_which_part_to_give():
    """The layer inside is named, so that the next call is right."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(2, 3)
            self.head = nn.Linear(3, 1)

    with pytest.raises(CellLoadError, match=r"there is rnn \(LSTM\): give that one, as model.rnn"):
        inits.xavier_(Model())
    with pytest.raises(CellLoadError, match="got a Linear"):
        inits.xavier_(nn.Linear(2, 3))
    with pytest.raises(CellLoadError, match="got a str"):
        inits.xavier_("lstm")


def test_weights_that_are_computed_are_not_set_in_vain():
    """A parametrized weight is made anew at every call, so setting it would change nothing."""
    module = parametrizations.weight_norm(nn.LSTM(2, 3), "weight_hh_l0")
    with pytest.raises(CellLoadError, match=r"weight_hh_l0 is no parameter .* but computed"):
        inits.orthogonal_per_gate_(module)


def test_an_ensemble_is_initialized_before_it_is_stacked():
    """Its weights are of many cells at once."""
    with pytest.raises(CellLoadError, match="initialize its members one by one"):
        inits.xavier_(stack_cells([GRU(2, 3), GRU(2, 3)]))


def test_the_projected_cell_is_no_lstm_with_square_blocks():
    """What has other parameters is refused by name, or set whole."""
    module = ProjectedLSTM(2, 4, 3)
    with pytest.raises(CellLoadError, match="ProjectedLSTM"):
        inits.xavier_(module)


def test_schemes_go_by_name_one_after_the_other():
    """A chain sets the weights first and the bias on top."""
    cell = LSTM(2, 3, dtype=torch.float64)
    reports = inits.apply_(cell, "orthogonal-per-gate+forget-bias:2")
    assert [report.scheme for report in reports] == ["orthogonal-per-gate", "forget-bias:2"]
    (place,) = recurrent_places(cell)
    assert torch.all(place.effective_bias("forget") == 2.0)
    assert torch.all(place.effective_bias("output") == 0.0)


@pytest.mark.parametrize("name", inits.scheme_names())
def test_every_name_is_a_function(name: str):
    """What `--init` takes, the library does; the report has the same name."""
    (report,) = inits.apply_(LSTM(2, 3), name)
    assert report.scheme.partition(":")[0] == name
    assert hasattr(inits, name.replace("-", "_") + "_") or name == "forget-bias"


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("xaver", "the scheme must name an initialization.*Did you mean 'xavier'"),
        ("xavier:2", "knows no number for 'xavier'"),
        ("chrono:2", "takes a number after 'chrono', more than 2; got 'chrono:2'"),
        ("forget-bias:much", "takes a number after 'forget-bias', finite"),
        ("he+", "must name an initialization"),
    ],
)
def test_a_wrong_scheme_is_told(scheme: str, words: str):
    """The rule, what came and the cure."""
    with pytest.raises(SettingError, match=words):
        inits.apply_(LSTM(2, 3), scheme)
