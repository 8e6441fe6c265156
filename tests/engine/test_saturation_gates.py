"""Which bias is whose, found by pushing each to one side and to the other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import ForeignCell
from gradflow.engine.saturation.gates import find_gates
from gradflow.engine.saturation.subjects import Subject, user_subject
from tests.engine.saturating import hand_written

LSTM_ORDER = ("input", "forget", "candidate", "output")


class Wrapped(nn.Module):
    """A torch cell inside a module that says nothing about it."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.cell = 3, 4, cell

    def forward(self, x: Tensor, state: Tensor | tuple[Tensor, Tensor]) -> object:
        return self.cell(x, state)


class Reordered(nn.Module):
    """An LSTM whose rows stand in the order that is asked for, its gates shut hard as given."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.order = 3, 4, order
        self.lin = nn.Linear(7, 16)
        with torch.no_grad():
            self.lin.bias[0] = -95.0

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        rows = dict(zip(self.order, self.lin(torch.cat([x, h], 1)).chunk(4, 1), strict=True))
        c = rows["forget"].sigmoid() * c + rows["input"].sigmoid() * rows["candidate"].tanh()
        return rows["output"].sigmoid() * torch.tanh(c), c


class OneMinus(nn.Module):
    """A GRU in the other convention: 1 - z keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = 3, 4
        self.lin = nn.Linear(7, 8)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        n, z = self.lin(torch.cat([x, h], 1)).chunk(2, 1)
        return (1 - z.sigmoid()) * h + z.sigmoid() * n.tanh()


def subject_of(module: nn.Module) -> Subject:
    """Return a module as a subject."""
    cell = ForeignCell(module)
    return user_subject("module", cell, cell)


def found(subject: Subject) -> dict[str, list[str]]:
    """Return the biases of each gate that is found."""
    return {gate.name: [str(rows) for rows in gate.bias] for gate in find_gates(subject)}


@pytest.mark.parametrize(
    "order",
    [
        LSTM_ORDER,
        ("input", "output", "forget", "candidate"),
        ("candidate", "input", "forget", "output"),
    ],
)
def test_the_rows_of_an_lstm_are_told_in_any_order(order: tuple[str, ...]):
    """torch's order, ONNX's and Keras' of old: each gate answers in its own way."""
    gates = find_gates(subject_of(Reordered(order)))
    assert {gate.name: gate.bias[0].rows.start for gate in gates} == {
        name: 4 * number for number, name in enumerate(order)
    }
    assert all(gate.weights[0].rows == gate.bias[0].rows for gate in gates)


def test_torchs_two_biases_of_a_gate_are_found_together():
    """bias_ih and bias_hh add up in every gate."""
    assert found(subject_of(Wrapped(nn.GRUCell(3, 4)))) == {
        "reset": ["cell.bias_ih[0:4]", "cell.bias_hh[0:4]"],
        "update": ["cell.bias_ih[4:8]", "cell.bias_hh[4:8]"],
        "candidate": ["cell.bias_ih[8:12]", "cell.bias_hh[8:12]"],
    }
    assert list(found(subject_of(Wrapped(nn.LSTMCell(3, 4))))) == list(LSTM_ORDER)


def test_a_gru_that_keeps_by_1_minus_z_is_told_too():
    """The gate that can keep the state whole is the update gate, whichever end keeps."""
    assert found(subject_of(OneMinus())) == {
        "candidate": ["lin.bias[0:4]"],
        "update": ["lin.bias[4:8]"],
    }


@pytest.mark.parametrize("name", ["naive_sigmoid", "two_sided_sigmoid", "own_backward", "in_place"])
def test_a_squashing_function_written_by_hand_is_no_obstacle(name: str):
    """What is pushed is the bias; how the sigmoid is computed does not matter."""
    assert found(hand_written(name))


@pytest.mark.parametrize("name", ["layer_norm", "exponential_gate", "refusing", "unbiased"])
def test_what_is_no_lstm_and_no_gru_keeps_its_secret(name: str):
    """No gate is better than a wrong one."""
    assert find_gates(hand_written(name)) == ()


def test_the_weights_are_left_as_they_were():
    """After the pushing, and after a module that raises while it is pushed."""
    for name in ("naive_sigmoid", "refusing"):
        subject = hand_written(name)
        before = {key: weight.clone() for key, weight in subject.parameters.items()}
        find_gates(subject)
        assert all(torch.equal(w, before[key]) for key, w in subject.parameters.items())
