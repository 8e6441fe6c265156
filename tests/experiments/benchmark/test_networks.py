"""The networks that are compared: what they share, and what their seeds decide."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.errors import CellLoadError, GateValueError
from gradflow.experiments.benchmark.adding_task import AddingTask
from gradflow.experiments.benchmark.networks import make_network
from gradflow.experiments.benchmark.signal_task import SignalTask
from tests.experiments.benchmark.small import copy_task

CELLS = Path(__file__).parent / "cells.py"
OWN = f"{CELLS}:Leaky"
each_cell = pytest.mark.parametrize("cell", ["rnn", "gru", "lstm", OWN])


@each_cell
@pytest.mark.parametrize("embedding", [0, 5])
def test_the_answer_is_given_at_the_steps_that_the_loss_is_on(cell: str, embedding: int):
    """All steps of a copy, the last one of a signal; tokens may be embedded or one-hot."""
    for task, shape in ((copy_task(), (7, 3, 5)), (SignalTask(delay=4, distractors=2), (1, 3, 2))):
        data = task.sequences(task.draw(3, torch.Generator().manual_seed(0)))
        network = make_network(task, cell=cell, hidden=6, embedding=embedding)
        assert network(data.inputs).shape == shape


@each_cell
def test_numbers_enter_as_they_are(cell: str):
    """The adding task has no tokens, so nothing is embedded whatever the width asked for."""
    network = make_network(AddingTask(delay=4), cell=cell, hidden=6, embedding=9)
    assert network.encoder is None
    assert network(torch.rand(4, 3, 2)).shape == (1, 3, 1)


def test_the_encoder_is_the_same_for_all_cells_and_widths_of_a_seed():
    """What does not depend on the cell is shared; another seed has another one."""
    made = [
        make_network(copy_task(), cell=cell, hidden=hidden, embedding=4, seed=seed)
        for cell, hidden, seed in (("rnn", 6, 1), ("lstm", 9, 1), (OWN, 5, 1), ("rnn", 6, 2))
    ]
    first, *alike, other = [network.encoder.weight for network in made]
    assert all(torch.equal(first, weight) for weight in alike)
    assert not torch.equal(first, other)


@each_cell
def test_weights_come_from_the_seed_and_from_nothing_else(cell: str):
    """Whatever torch drew before; and what it draws afterwards is not disturbed."""
    torch.manual_seed(5)
    first = make_network(copy_task(), cell=cell, hidden=6, embedding=4, seed=1)
    after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), after)
    again = make_network(copy_task(), cell=cell, hidden=6, embedding=4, seed=1)
    pairs = zip(first.state_dict().values(), again.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(("cell", "rows"), [("lstm", slice(6, 12)), ("gru", slice(6, 12))])
def test_a_forget_bias_is_the_effective_one(cell: str, rows: slice):
    """forget-bias:2 makes b_ih + b_hh of the keep gate 2 in the very layer that trains."""
    network = make_network(copy_task(), cell=cell, hidden=6, embedding=4, init="forget-bias:2")
    layer = network.layer
    assert isinstance(layer, nn.RNNBase)
    effective = (layer.bias_ih_l0 + layer.bias_hh_l0)[rows]
    torch.testing.assert_close(effective, torch.full((6,), 2.0))


def test_an_initialization_leaves_the_rest_as_in_torchs_default():
    """The same draw: two initializations differ by what they set alone."""
    plain, open_gate = (
        make_network(copy_task(), cell="lstm", hidden=6, embedding=4, init=init)
        for init in ("torch-default", "forget-bias:2")
    )
    assert isinstance(plain.layer, nn.LSTM)
    assert isinstance(open_gate.layer, nn.LSTM)
    assert torch.equal(plain.layer.weight_hh_l0, open_gate.layer.weight_hh_l0)
    assert torch.equal(plain.head.weight, open_gate.head.weight)


def test_a_plain_rnn_has_no_gate_to_set():
    """Said with the cure."""
    with pytest.raises(GateValueError, match="a plain RNN has none"):
        make_network(copy_task(), cell="rnn", hidden=4, embedding=4, init="forget-bias:2")


def test_a_user_cell_learns_as_torchs_layer_of_the_same_equations():
    """tanh(W x + U h) run step by step: the same answers and the same gradients as nn.RNN."""
    task = copy_task()
    own = make_network(task, cell=OWN, hidden=6, embedding=4).double()
    torchs = make_network(task, cell="rnn", hidden=6, embedding=4).double()
    assert isinstance(torchs.layer, nn.RNN)
    with torch.no_grad():
        weights = own.state_dict()
        torchs.layer.weight_ih_l0.copy_(weights["layer.cell.read.weight"])
        torchs.layer.weight_hh_l0.copy_(weights["layer.cell.turn.weight"])
        torchs.layer.bias_ih_l0.copy_(weights["layer.cell.read.bias"])
        torchs.layer.bias_hh_l0.zero_()
    data = task.sequences(task.draw(5, torch.Generator().manual_seed(0)))
    for network in (own, torchs):
        task.loss(network(data.inputs), data.targets).backward()
    torch.testing.assert_close(own(data.inputs), torchs(data.inputs))
    found = dict(own.named_parameters())
    torch.testing.assert_close(found["layer.cell.turn.weight"].grad, torchs.layer.weight_hh_l0.grad)
    assert own.encoder is not None
    assert torchs.encoder is not None
    torch.testing.assert_close(own.encoder.weight.grad, torchs.encoder.weight.grad)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import torch\nmake = lambda i, h: torch.nn.GRUCell(3, h)",
            "is 4 wide, and the cell takes 3",
        ),
        (
            "import torch\nclass Still(torch.nn.Module):\n"
            "    def forward(self, x, h):\n        return 0.5 * h\n"
            "make = lambda input_size, hidden_size: Still()",
            "no parameters to train",
        ),
    ],
)
def test_a_cell_that_cannot_be_compared_is_refused(tmp_path: Path, text: str, words: str):
    """A wrong input width, and nothing to train."""
    path = tmp_path / "mine.py"
    path.write_text(text + "\n")
    with pytest.raises(CellLoadError, match=words):
        make_network(copy_task(), cell=f"{path}:make", hidden=6, embedding=4)
