"""The shared subjects are what the tests take them for."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
import torch

from tests import cases
from tests.reference import direct_path


@cases.each_kind
def test_a_random_subject_hides_no_mistake(kind: str) -> None:
    """Biases are non-zero and differ, rows differ, inputs change, states are not zero."""
    subject = cases.random_subject(kind)
    weights = subject.weights
    assert all((tensor != 0).all() for tensor in weights.values())
    assert (weights["bias_ih"] != weights["bias_hh"]).all()
    assert subject.inputs.shape == (6, 3, 3)
    assert len({tuple(row.tolist()) for row in subject.inputs.flatten(0, 1)}) == 18
    for part in subject.state:
        assert part.shape == (3, 5)
        assert len({tuple(row.tolist()) for row in part}) == 3


@cases.each_kind
def test_one_seed_is_one_subject(kind: str) -> None:
    """The same seed draws the same subject, in every precision; another seed another."""
    one, same, other = (cases.random_subject(kind, cases.Setup(seed=s)) for s in (1, 1, 2))
    single = cases.random_subject(kind, cases.Setup(seed=1, dtype=torch.float32))
    for name, tensor in one.weights.items():
        assert torch.equal(tensor, same.weights[name])
        assert not torch.equal(tensor, other.weights[name])
        assert torch.allclose(tensor.float(), single.weights[name], rtol=1e-6)
    assert torch.equal(one.inputs, same.inputs)


@pytest.mark.parametrize("gate", [0.1, 0.5, 0.9, 0.999])
def test_held_gates_are_constant(gate: float) -> None:
    """A held gate has its value in every row and step, with a live candidate or a dead one."""
    for gain in (0.0, 1.0):
        for subject in (
            cases.held_lstm(gate, candidate_gain=gain),
            cases.held_gru(gate, candidate_gain=gain),
            cases.held_gru(gate, place="before", candidate_gain=gain),
        ):
            gates = direct_path.keep_gates(subject)
            # sigmoid(logit(v)) is off by a few units in the last place of the logit.
            assert torch.allclose(gates, torch.full_like(gates, gate), rtol=1e-15, atol=1e-15)


def test_the_input_gate_is_coupled_unless_given() -> None:
    """An LSTM's input gate is 1 - f by default."""
    size = 5
    coupled = cases.held_lstm(0.8).weights["bias_ih"]
    given = cases.held_lstm(0.8, input_gate=0.6).weights["bias_ih"]
    assert torch.sigmoid(coupled[:size]).tolist() == pytest.approx([0.2] * size, rel=1e-14)
    assert torch.sigmoid(given[:size]).tolist() == pytest.approx([0.6] * size, rel=1e-14)


def test_the_candidate_is_orthogonal_times_its_gain() -> None:
    """U U^T = G^2 I for the candidate of every held cell, and U = 0 at gain 0."""
    for gain in (0.0, 0.7, 1.0):
        for subject in (
            cases.held_lstm(0.9, candidate_gain=gain),
            cases.held_gru(0.9, candidate_gain=gain),
            cases.gain_rnn(gain),
        ):
            recurrent = torch.tensor(cases.candidate_recurrent(subject))
            square = gain**2 * torch.eye(5, dtype=torch.float64)
            assert torch.allclose(recurrent @ recurrent.T, square, rtol=0, atol=1e-14)


def test_a_zero_start_is_zero() -> None:
    """`start="zero"` is for the closed forms at the fixed point."""
    subject = cases.held_lstm(0.9, cases.Setup(start="zero"))
    assert all((part == 0).all() for part in subject.state)


def test_the_twins_are_independent() -> None:
    """No twin and no shared subject imports the engine it is there to check."""
    reference = Path(__file__).parent
    for source in (*reference.glob("*.py"), reference.parent / "cases.py"):
        nodes = list(ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
        imported = [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
        imported += [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
        assert not [name for name in imported if name.split(".")[0] == "gradflow"], source.name


def test_the_same_log_norm_allows_for_size_and_knows_zero() -> None:
    """The tolerance is relative beyond 1; a zero equals only a zero; shapes must match."""
    cases.assert_same_log_norm([-1000.0 - 5e-10, -math.inf], [-1000.0, -math.inf])
    for found, expected in (
        ([-1000.0 - 5e-9], [-1000.0]),
        ([0.5 + 2e-12], [0.5]),
        ([-700.0], [-math.inf]),
        ([-math.inf], [-700.0]),
        ([math.nan], [0.0]),
        ([0.0, 0.0], [0.0]),
    ):
        with pytest.raises(AssertionError):
            cases.assert_same_log_norm(found, expected)
