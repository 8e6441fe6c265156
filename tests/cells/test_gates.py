"""Gates: which rows are a gate's own, what its bias adds up to, and how a user declares them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

from gradflow.cells import GRU, LSTM, RNN, Gate, Rows
from gradflow.cells.declared_gates import declared_gates, values_when_held
from gradflow.errors import CellLoadError, UnknownNameError
from tests.field_cases import field_case, lstm_cell_of

# closed form


def test_a_gates_bias_is_the_sum_of_both_vectors() -> None:
    """One in each of torch's two bias vectors is an effective bias of 2: f = 0.88, not 0.73."""
    case = field_case("forget_bias_set_twice")
    for name in ("both_biases", "one_bias"):
        cell = LSTM.from_torch(lstm_cell_of(case.weights(name)))
        (forget,) = (gate for gate in cell.gates if gate.name == "forget")
        effective = forget.effective_bias(cell)
        assert effective is not None
        expected = torch.full_like(effective, case.expected[name]["effective_forget_bias"])
        torch.testing.assert_close(effective, expected, rtol=1e-12, atol=0)
        value = torch.full_like(effective, case.expected[name]["forget_gate"])
        held = forget.held_value(cell)  # its weights are all zero
        assert held is not None
        torch.testing.assert_close(held, value, rtol=1e-12, atol=0)
        step = cell.step(torch.zeros(1, cell.input_size).double(), cell.initial_state(1))
        torch.testing.assert_close(step["forget"][0], value, rtol=1e-12, atol=0)


@pytest.mark.parametrize("seed", range(3))
def test_every_way_of_setting_a_bias_twice_counts_twice(seed: int) -> None:
    """Whatever the two vectors hold, a gate feels their sum, row by row."""
    torch.manual_seed(seed)
    cell = GRU(2, 3).double()
    for gate in cell.gates:
        rows = cell.rows(gate.name)
        effective = gate.effective_bias(cell)
        assert effective is not None
        torch.testing.assert_close(effective, cell.bias_ih[rows] + cell.bias_hh[rows])


def test_a_gate_with_no_weights_left_is_known_from_its_bias() -> None:
    """held_value is sigmoid of the effective bias where every weight of the gate is zero."""
    cell = LSTM(2, 3).double()
    forget = next(gate for gate in cell.gates if gate.name == "forget")
    assert forget.held_value(cell) is None
    with torch.no_grad():
        cell.weight_ih[cell.rows("forget")] = 0
        cell.weight_hh[cell.rows("forget")] = 0
    held = forget.held_value(cell)
    assert held is not None
    step = cell.step(torch.randn(4, 2).double(), (torch.randn(4, 3).double(),) * 2)
    torch.testing.assert_close(held.expand(4, 3), step["forget"], rtol=1e-15, atol=0)


def test_a_gate_without_bias_or_weights_has_no_known_value() -> None:
    """Where the bias is left out, or nobody says which weights feed the gate, nothing is known."""
    cell = LSTM(2, 3, bias=False)
    assert all(gate.effective_bias(cell) is None for gate in cell.gates)
    assert all(gate.held_value(cell) is None for gate in cell.gates)
    lone = Gate("forget", "keep", bias=(Rows("bias_ih", slice(3, 6)),))
    assert lone.held_value(LSTM(2, 3)) is None


def test_built_in_cells_name_their_gates_in_torchs_order() -> None:
    """i, f, g, o and r, z, n, each with its role; a plain RNN is all candidate."""
    assert [(gate.name, gate.role) for gate in LSTM(1, 2).gates] == [
        ("input", "write"),
        ("forget", "keep"),
        ("output", "output"),
    ]
    assert [(gate.name, gate.role) for gate in GRU(1, 2).gates] == [
        ("reset", "reset"),
        ("update", "keep"),
    ]
    assert RNN(1, 2).gates == ()
    keeps = [cell.keep_gate and cell.keep_gate.name for cell in (LSTM(1, 2), GRU(1, 2), RNN(1, 2))]
    assert keeps == ["forget", "update", None]
    assert LSTM(1, 2).rows("candidate") == slice(4, 6)
    assert {cell.candidate_gate.role for cell in (LSTM(1, 2), GRU(1, 2), RNN(1, 2))} == {
        "candidate"
    }


# reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bias", Rows("bias")),
        ("lin.bias[3:6]", Rows("lin.bias", slice(3, 6))),
        (" lin.weight[ 3 : 6 , :2 ] ", Rows("lin.weight", slice(3, 6), slice(None, 2))),
        ("weight[:, 3:6]", Rows("weight", slice(None), slice(3, 6))),
        ("weight[0:9:3]", Rows("weight", slice(0, 9, 3))),
        ("layers.0.bias[-3:]", Rows("layers.0.bias", slice(-3, None))),
    ],
)
def test_rows_are_read_as_python_writes_them(text: str, expected: Rows) -> None:
    """A parameter's dotted name, and ranges of rows and columns; written out, they read back."""
    assert Rows.parse(text) == expected
    assert Rows.parse(str(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "lin.bias[3:6", "[3:6]", "a b", "w[1:2][3:4]", "w[1:2,3:4,5]"]
)
def test_what_is_no_place_is_refused_with_an_example(text: str) -> None:
    """The words show how a place is written and repeat what came."""
    with pytest.raises(CellLoadError, match=r"written like 'bias\[3:6\]'") as caught:
        Rows.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("rows", ["3", "a:b", "1:2:3:4", "1.5:2"])
def test_rows_that_are_no_range_are_refused(rows: str) -> None:
    """A single row is written 3:4."""
    with pytest.raises(CellLoadError, match=rf"such as 3:6; got '{re.escape(rows)}'"):
        Rows.parse(f"bias[{rows}]")


# declarations


class OneGate(nn.Module):
    """A module with a linear layer of six rows over five columns, and the gates it is given."""

    def __init__(self, gates: object) -> None:
        super().__init__()
        self.lin = nn.Linear(5, 6)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("offset", torch.zeros(6))
        self.gates = gates


def gate(**keys: Any) -> dict[str, Any]:
    """Return a right declaration, with some keys in another way (None: left out)."""
    right = {
        "name": "forget",
        "role": "keep",
        "bias": "lin.bias[0:3]",
        "weights": ["lin.weight[0:3]"],
    }
    return {key: value for key, value in {**right, **keys}.items() if value is not None}


def test_a_dict_and_a_gate_say_the_same() -> None:
    """A declaration may be either, with one place or a list of them."""
    written = declared_gates(
        OneGate([gate(), gate(name="out", role="output", bias="lin.bias[3:6]")])
    )
    built = declared_gates(
        OneGate(
            [
                Gate(
                    "forget",
                    "keep",
                    (Rows("lin.bias", slice(0, 3)),),
                    (Rows("lin.weight", slice(0, 3)),),
                )
            ]
        )
    )
    assert written[0] == built[0]
    assert [entry.role for entry in written] == ["keep", "output"]


@pytest.mark.parametrize("gates", [(), [], nn.Linear(2, 2), torch.ones(3)])
def test_no_list_of_gates_is_no_declaration(gates: object) -> None:
    """A module without `gates`, or with a layer or tensor of that name, declares none."""
    assert declared_gates(OneGate(gates)) == ()
    assert declared_gates(nn.Linear(2, 2)) == ()


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ({"forget": "lin.bias"}, "must be a list of gates.*got a dict"),
        ("forget", "must be a list of gates.*got a str"),
        (list, "must be a list of gates.*got a type"),
        ([("forget", "keep")], r"or a dict such as \{'name': 'forget'.*got a tuple"),
        ([gate(nam="x")], "no key 'nam'. Did you mean 'name'"),
        ([gate(name=None)], "needs the key 'name'"),
        ([gate(role=None)], "needs the key 'role'"),
        ([gate(role="keeps")], "'forget' has no role 'keeps'. Did you mean 'keep'"),
        ([gate(name="my gate")], "plain word.*got 'my gate'"),
        ([gate(name=3)], "plain word.*got 3"),
        ([gate(bias=[3])], "bias lists texts such as.*got a int"),
        ([gate(bias="lin.bais[0:3]")], "'forget'.*'lin.bais' is none.*Did you mean 'lin.bias'"),
        ([gate(bias="offset[0:3]")], "'offset' is a buffer, not a parameter"),
        ([gate(bias="lin.bias[0:9]")], r"'lin.bias\[0:9\]' is outside of 'lin.bias'.*\(6,\)"),
        ([gate(bias="lin.bias[6:]")], "is outside of 'lin.bias'"),
        ([gate(bias="lin.bias[3:1]")], "is outside of 'lin.bias'"),
        ([gate(bias="lin.weight[0:3]")], r"a bias has 1 axis; 'lin.weight' has shape \(6, 5\)"),
        ([gate(bias="scale")], r"a bias has 1 axis; 'scale' has shape \(\)"),
        ([gate(weights="lin.bias[0:3]")], r"a weight has 2 axes; 'lin.bias' has shape \(6,\)"),
        ([gate(weights="lin.weight[0:3, 4:7]")], r"4:7\]' is outside of 'lin.weight'"),
        ([gate(bias=["lin.bias[0:3]", "lin.bias[3:5]"])], r"equally long; got .*\(3\).*\(2\)"),
        ([gate(recurrent="lin.weight[0:3]")], r"it is square; lin.weight\[0:3\] is \(3, 5\)"),
        ([gate(recurrent=["lin.weight[0:3, 2:5]"] * 2)], "one recurrent block; got 2"),
        ([gate(), gate()], "'forget' comes twice"),
        ([gate(), gate(name="input")], "'forget' and 'input' both own row 0 of 'lin.bias'"),
        (
            [gate(role="candidate"), gate(name="b", role="candidate", bias="lin.bias[3:6]")],
            "one gate of role 'candidate'; got 2: forget, b",
        ),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(gates: object, words: str) -> None:
    """Each fault of a declaration has words of its own, which name the gate and the place."""
    with pytest.raises(CellLoadError, match=f"(?s){words}") as caught:
        declared_gates(OneGate(gates))
    assert len(str(caught.value).splitlines()) <= 3


def test_held_values_leave_out_the_candidate() -> None:
    """A candidate is no gate, so it has no value between 0 and 1."""
    module = OneGate([gate(), gate(name="n", role="candidate", bias="lin.bias[3:6]")])
    with torch.no_grad():
        module.lin.weight.zero_()
        module.lin.bias.fill_(0.0)
    values = values_when_held(module, declared_gates(module))
    assert {name: value.tolist() for name, value in values.items()} == {"forget": [0.5] * 3}


def test_a_missing_parameter_is_an_unknown_name() -> None:
    """Rows of a parameter that the module lacks offer the nearest that it has."""
    with pytest.raises(UnknownNameError, match=r"Did you mean 'weight'"):
        Rows("weigth").weight_of(nn.Linear(2, 2))
