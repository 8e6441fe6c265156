"""Three answers that a zero may mean: nothing leads there, a number underflowed, or neither."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gradflow.engine import JacobianNorms, path_norms
from tests import cases
from tests.engine.measuring import cell_of, measure, relu_at_rest, saturated_rnn, silent
from tests.reference.subject import Subject

TWENTY = cases.Setup(steps=20)
each_way = pytest.mark.parametrize("method", ["dense", "generic"])


def _zeros(norms: JacobianNorms) -> list[tuple[int | None, str | None]]:
    return list(zip(norms.first_zero_step, norms.zero_reason, strict=True))


def _rnn(recurrent: Tensor, *, bias: float = 0.0, nonlinearity: str = "tanh") -> Subject:
    setup = cases.Setup(hidden_size=len(recurrent), batch=1, steps=20)
    subject = cases.gain_rnn(1.0, setup, nonlinearity=nonlinearity)
    with torch.no_grad():
        subject.module.weight_hh.copy_(recurrent)
        subject.module.bias_ih.fill_(bias)
    return silent(subject, 20)


@each_way
def test_a_dead_relu_is_an_exact_zero(method: str) -> None:
    """A relu whose pre-activation is negative passes nothing: zero from step 1, by structure."""
    subject = _rnn(0.1 * torch.eye(3), bias=-1.0, nonlinearity="relu")
    assert _zeros(measure(subject, method=method)) == [(1, "exact")]


def test_a_relu_dies_when_its_input_says_so() -> None:
    """One strongly negative input at step 4 cuts the path at step 4, not before, for good."""
    subject = relu_at_rest(1.0)
    inputs = torch.zeros(10, 1, 3, dtype=torch.float64)
    inputs[3] = -100.0
    with torch.no_grad():
        subject.module.weight_ih.fill_(1.0)
    norms = measure(Subject(subject.module, inputs, subject.state))
    assert torch.isneginf(norms.log_norm[:, 0]).tolist() == [False] * 3 + [True] * 7
    assert _zeros(norms) == [(4, "exact")]


def test_only_the_rows_that_are_zero_say_so() -> None:
    """In a batch each row has its own first zero and its own reason."""
    subject = relu_at_rest(1.0)
    state = torch.tensor([[1.0, 1.0], [-1.0, -1.0], [2.0, -3.0]], dtype=torch.float64)
    inputs = torch.zeros(5, 3, 3, dtype=torch.float64)
    norms = measure(Subject(subject.module, inputs, (state,)))
    assert _zeros(norms) == [(None, None), (1, "exact"), (None, None)]


@each_way
def test_a_nilpotent_matrix_forgets_all_after_its_order(method: str) -> None:
    """A strictly triangular W of order 3 connects nothing beyond two steps: exact from T = 3."""
    subject = _rnn(torch.ones(3, 3).triu(1))
    norms = measure(subject, method=method)
    assert torch.isneginf(norms.log_norm[:, 0]).tolist() == [False] * 2 + [True] * 18
    assert _zeros(norms) == [(3, "exact")]


@pytest.mark.parametrize(("at", "first"), [([1, 2, 10, 20], 10), ([1, 2], None), ([3], 3)])
def test_the_first_zero_is_the_first_that_was_looked_at(at: list[int], first: int | None) -> None:
    """`first_zero_step` is one of the steps asked for; no zero among them is no zero."""
    norms = measure(_rnn(torch.ones(3, 3).triu(1)), at=at)
    assert _zeros(norms) == [(first, None if first is None else "exact")]


def test_weights_that_are_all_zero_are_an_exact_zero() -> None:
    """An RNN with W = 0 forgets its state in one step."""
    for nonlinearity in ("tanh", "relu"):
        norms = measure(_rnn(torch.zeros(2, 2), bias=0.5, nonlinearity=nonlinearity))
        assert _zeros(norms) == [(1, "exact")]
        assert norms.method == "diagonal"


@pytest.mark.parametrize(("bias", "dtype"), [(400.0, torch.float64), (60.0, torch.float32)])
def test_a_saturated_tanh_is_an_underflow(bias: float, dtype: torch.dtype) -> None:
    """tanh is never flat: a slope of 4 e^-800 is real, but the dtype has no number for it."""
    assert _zeros(measure(silent(saturated_rnn(bias, dtype=dtype), 5))) == [(1, "underflow")]


def test_what_underflows_in_float32_is_alive_in_float64() -> None:
    """The same weights: zero in float32, and ln 4 - 120 in float64."""
    assert _zeros(measure(silent(saturated_rnn(60.0, dtype=torch.float32), 1)))[0][0] == 1
    norms = measure(silent(saturated_rnn(60.0), 1))
    cases.assert_same_log_norm(norms.log_norm[0, 0], math.log(4) - 120)


@pytest.mark.parametrize("method", ["auto", "dense"])
def test_a_forget_gate_that_is_shut_to_the_last_bit_is_an_underflow(method: str) -> None:
    """sigmoid(-1000) is no float64: the product is zero, though a sigmoid is never shut."""
    subject = cases.held_lstm(0.5, TWENTY)
    with torch.no_grad():
        subject.module.bias_ih[5:10].fill_(-1000.0)
    norms = measure(subject, method=method)
    assert _zeros(norms) == [(1, "underflow")] * 3
    shut = norms.direct_log_norm
    assert shut is not None
    assert torch.isneginf(shut).all()


@pytest.mark.parametrize("method", ["diagonal", "dense", "generic"])
def test_the_hidden_state_of_a_held_lstm_is_not_read(method: str) -> None:
    """With a dead candidate no weight carries h_0: (h, h) is exactly zero, and no failure."""
    subject = cases.held_lstm(0.9, TWENTY)
    for block in (("h", "h"), ("c", "h")):
        assert _zeros(measure(subject, block=block, method=method)) == [(1, "exact")] * 3


def test_a_live_candidate_reads_the_hidden_state() -> None:
    """With a recurrent candidate (h, h) is o sech^2(c) i U at T = 1, and never zero after."""
    subject = cases.held_lstm(0.9, TWENTY, candidate_gain=1.0)
    norms = measure(subject, block=("h", "h"))
    assert _zeros(norms) == [(None, None)] * 3
    assert torch.isfinite(norms.log_norm).all()


def test_a_vanishing_norm_is_no_zero() -> None:
    """0.1^1000 is far below every float64 and has no zero step: its logarithm is a number."""
    subject = cases.held_gru(0.1, cases.Setup(steps=1000))
    for method in ("diagonal", "dense", "generic"):
        norms = measure(subject, method=method)
        assert _zeros(norms) == [(None, None)] * 3
        assert torch.isfinite(norms.log_norm).all()


def test_the_reason_is_found_beyond_the_first_chunk() -> None:
    """A path that is cut after 600 steps is traced through all of them."""
    subject = relu_at_rest(1.0)
    inputs = torch.zeros(700, 1, 3, dtype=torch.float64)
    inputs[599] = -100.0
    with torch.no_grad():
        subject.module.weight_ih.fill_(1.0)
    norms = measure(Subject(subject.module, inputs, subject.state), at=[1, 599, 600, 700])
    assert _zeros(norms) == [(600, "exact")]


def test_a_subnormal_weight_is_a_path_whose_number_underflows() -> None:
    """W = 1e-320 I is flushed while measuring; it still connects, so the zero is not exact."""
    assert _zeros(measure(_rnn(1e-320 * torch.eye(2).double()))) == [(1, "underflow")]


def test_a_subnormal_weight_is_a_path_along_every_path() -> None:
    """What was flushed reads as an underflow in `path_norms` too."""
    subject = _rnn(1e-320 * torch.eye(2).double())
    paths = path_norms(cell_of(subject.module), subject.inputs, subject.state)
    assert set(paths.zero_reason["full"]) == {"underflow"}
