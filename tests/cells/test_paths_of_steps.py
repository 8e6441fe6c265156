"""Step Jacobians by path: detours, cut gates and the rank that structure allows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradflow.cells import LSTM, RNN, Linearization
from tests import cases
from tests.engine.measuring import cell_of
from tests.reference import autograd_jacobian, direct_path
from tests.reference.ablated_steps import ablated_jacobians
from tests.reference.subject import Subject

GATED = ("lstm", "gru", "gru-before")
EVERY_GATE = [
    *(("lstm", gate) for gate in ("input", "forget", "output", "candidate")),
    *(("gru", gate) for gate in ("reset", "update", "candidate")),
    *(("gru-before", gate) for gate in ("reset", "update", "candidate")),
    ("rnn", "candidate"),
]


def states_before(subject: Subject) -> tuple[Tensor, ...]:
    """Return the state before each step, (time, batch, hidden) per part."""
    states = [subject.state, *autograd_jacobian.trajectory(subject)[:-1]]
    return tuple(torch.stack(parts) for parts in zip(*states, strict=True))


def steps_of(subject: Subject, cut: tuple[str, ...] = ()) -> Linearization:
    """Return the step Jacobians of a subject's cell."""
    cell = cell_of(subject.module)
    with torch.no_grad():
        return cell.linearize(cell.drive(subject.inputs), states_before(subject), cut=cut)


def dense(steps: Linearization) -> Tensor:
    """Return all step Jacobians, (time, batch, state, state)."""
    return torch.stack([steps.dense(t).clone() for t in range(steps.steps)])


def require_one_operator(steps: Linearization) -> None:
    """Assert that push, pull and dense are the same matrix, for few columns and for many."""
    for columns in (1, 30):
        matrix = steps.dense(2).clone()
        block = torch.randn(*matrix.shape[:2], columns, dtype=matrix.dtype)
        assert torch.allclose(steps.push(2, block), matrix @ block, atol=1e-14)
        assert torch.allclose(steps.pull(2, block), matrix.mT @ block, atol=1e-14)


@pytest.mark.parametrize("kind", GATED)
def test_a_detour_is_the_step_less_its_keep_gate(kind: str) -> None:
    """J_t - D_t with autograd's J_t; the operator itself never subtracts."""
    subject = cases.random_subject(kind)
    detour = steps_of(subject).detour()
    expected = autograd_jacobian.step_jacobians(subject)
    kept = subject.span(subject.parts[-1])
    expected[:, :, kept, kept] -= torch.diag_embed(direct_path.keep_gates(subject))
    assert torch.allclose(dense(detour), expected, atol=1e-14)
    assert detour.keep is None
    require_one_operator(detour)


def test_a_detour_of_an_lstm_has_no_rounding_on_its_diagonal() -> None:
    """dc_t/dc_{t-1} is f and nothing else, so the detour's block is zero to the last bit."""
    steps = steps_of(cases.random_subject("lstm"))
    assert not dense(steps.detour())[:, :, 5:, 5:].any()
    assert steps_of(cases.random_subject("rnn")).detour().keep is None


@pytest.mark.parametrize(("kind", "gate"), EVERY_GATE)
def test_a_cut_gate_is_a_constant(kind: str, gate: str) -> None:
    """The step Jacobian without a gate equals autograd's with that gate detached."""
    subject = cases.random_subject(kind)
    steps = steps_of(subject, cut=(gate,))
    assert torch.allclose(dense(steps), ablated_jacobians(subject, [gate], kind=kind), atol=1e-14)
    require_one_operator(steps)


@cases.each_kind
def test_no_step_has_a_rank_above_its_bound(kind: str) -> None:
    """The rank that NumPy finds is at most the bound, which random weights reach."""
    subject = cases.random_subject(kind)
    steps = steps_of(subject)
    rank = torch.linalg.matrix_rank(autograd_jacobian.step_jacobians(subject))
    bound = steps.rank_bound()
    assert torch.equal(rank, torch.full_like(rank, subject.state_size) if bound is None else bound)


def test_the_bound_sees_what_a_dense_matrix_hides() -> None:
    """U_o = 0 leaves rank H of 2H; W of rank 2 leaves 2, ensembles row by row."""
    lstm = LSTM(1, 4, dtype=torch.float64)
    with torch.no_grad():
        lstm.weight_hh[lstm.rows("output")] = 0.0
    state = tuple(torch.rand(1, 1, 4, dtype=torch.float64) for _ in range(2))
    drive = lstm.drive(torch.zeros(1, 1, 1, dtype=torch.float64))
    assert lstm.linearize(drive, state).rank_bound().tolist() == [[4]]
    rnn = RNN(1, 4, dtype=torch.float64)
    with torch.no_grad():
        rnn.weight_hh.copy_(torch.rand(4, 2).double() @ torch.rand(2, 4).double())
    bound = rnn.linearize(rnn.drive(drive.new_zeros(1, 1, 1)), state[:1]).rank_bound()
    assert bound.tolist() == [[2]]
