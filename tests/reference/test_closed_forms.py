"""Every closed form against autograd on torch's own cells, where the closed form applies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests import cases
from tests.reference import autograd_jacobian, closed_forms, direct_path
from tests.reference.autograd_jacobian import log_norms

GATES = pytest.mark.parametrize("gate", [0.1, 0.5, 0.9])
NORMS = pytest.mark.parametrize("norm", ["spectral", "frobenius"])
PLACES = pytest.mark.parametrize("place", ["before", "after"])
SIXTY = cases.Setup(steps=60)
AT_ZERO = cases.Setup(steps=60, batch=1, start="zero")
STEPS = np.arange(1, 61)


def test_one_step_from_given_gates() -> None:
    """c = 2, f = 0.8, i = 0.25, g = -0.4, o = 0.5 give c' = 1.5 and h' = tanh(1.5) / 2."""
    hidden, cell_state = closed_forms.lstm_from_gates(
        2.0, forget=0.8, write=0.25, candidate=-0.4, output=0.5
    )
    assert cell_state == pytest.approx(1.5, rel=1e-15)
    assert hidden == pytest.approx(0.452574, abs=5e-7)
    updated = closed_forms.gru_from_gates(2.0, update=0.75, candidate=-0.4)
    assert updated == pytest.approx(1.4, rel=1e-15)


def test_half_lives_of_one_and_two_biases_of_one() -> None:
    """A forget bias of 1 halves in 2.2 steps, one of 2 in 5.5."""
    one, two = (1 / (1 + math.exp(-bias)) for bias in (1, 2))
    assert closed_forms.half_life(one) == pytest.approx(2.2126778, rel=1e-7)
    assert closed_forms.half_life(two) == pytest.approx(5.4609473, rel=1e-7)


@GATES
@NORMS
def test_a_held_lstm_keeps_f_to_the_t(gate: float, norm: str) -> None:
    """With U = 0 dc_T/dc_0 is f^T I, from any state and under any input."""
    found = log_norms(cases.held_lstm(gate, SIXTY), block=("c", "c"), norm=norm)
    expected = closed_forms.held_log_norm(gate, STEPS, size=5, norm=norm)
    cases.assert_same_log_norm(found, np.tile(expected[:, None], 3))


@GATES
@NORMS
@PLACES
def test_a_held_gru_keeps_z_to_the_t(gate: float, norm: str, place: str) -> None:
    """With U = 0 dh_T/dh_0 is z^T I, wherever the reset gate stands."""
    found = log_norms(cases.held_gru(gate, SIXTY, place=place), norm=norm)
    expected = closed_forms.held_log_norm(gate, STEPS, size=5, norm=norm)
    cases.assert_same_log_norm(found, np.tile(expected[:, None], 3))


@GATES
@NORMS
def test_the_joint_state_of_a_held_lstm_is_more_than_f_to_the_t(gate: float, norm: str) -> None:
    """h_T feels c_0 too: a factor sqrt(1 + o^2 sech^4 c_T), with the true c_T."""
    subject = cases.held_lstm(gate, SIXTY, output_gate=0.7)
    found = log_norms(subject, norm=norm)
    start = subject.state[1].numpy()
    cell_state = closed_forms.held_cell_state(
        start, STEPS[:, None, None], forget=gate, write=1 - gate
    )
    expected = closed_forms.held_joint_log_norm(
        gate, STEPS[:, None], output=0.7, cell_state=cell_state, norm=norm
    )
    cases.assert_same_log_norm(found, expected)


def test_the_cell_state_is_a_geometric_sum() -> None:
    """Constant gates and candidate give c_T = f^T c_0 + i g (1 - f^T) / (1 - f)."""
    subject = cases.held_lstm(0.8, SIXTY, input_gate=0.3)
    size = subject.hidden_size
    dict(subject.module.named_parameters())["bias_ih"].data[2 * size : 3 * size] = math.atanh(0.6)
    found = np.stack([state[1].numpy() for state in autograd_jacobian.trajectory(subject)])
    expected = closed_forms.held_cell_state(
        subject.state[1].numpy(), STEPS[:, None, None], forget=0.8, write=0.3, candidate=0.6
    )
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@GATES
@NORMS
@pytest.mark.parametrize("gain", [0.5, 1.0, 1.5])
def test_a_live_lstm_at_the_zero_state_is_a_matrix_power(
    gate: float, norm: str, gain: float
) -> None:
    """(c, c) is f M^(T-1) and joint is [o; 1] (x) M^(T-1) [iU, fI], with M = f I + i o U."""
    subject = cases.held_lstm(gate, AT_ZERO, input_gate=0.6, output_gate=0.7, candidate_gain=gain)
    recurrent = cases.candidate_recurrent(subject)
    matrix = closed_forms.lstm_live_matrix(recurrent, forget=gate, write=0.6, output=0.7)
    left, right = closed_forms.lstm_live_factors(recurrent, forget=gate, write=0.6, output=0.7)
    block = [
        closed_forms.live_log_norm(matrix, int(t) - 1, norm=norm) + math.log(gate) for t in STEPS
    ]
    joint = [
        closed_forms.live_log_norm(matrix, int(t) - 1, left=left, right=right, norm=norm)
        for t in STEPS
    ]
    cases.assert_same_log_norm(log_norms(subject, block=("c", "c"), norm=norm)[:, 0], block)
    cases.assert_same_log_norm(log_norms(subject, norm=norm)[:, 0], joint)


@GATES
@NORMS
@PLACES
def test_a_live_gru_at_the_zero_state_is_a_matrix_power(gate: float, norm: str, place: str) -> None:
    """At h = 0, b = 0 the product is (z I + (1 - z) r U)^T for both places of the reset gate."""
    subject = cases.held_gru(gate, AT_ZERO, reset=0.3, place=place, candidate_gain=1.2)
    matrix = closed_forms.gru_live_matrix(
        cases.candidate_recurrent(subject), update=gate, reset=0.3
    )
    expected = [closed_forms.live_log_norm(matrix, int(t), norm=norm) for t in STEPS]
    cases.assert_same_log_norm(log_norms(subject, norm=norm)[:, 0], expected)


@NORMS
@pytest.mark.parametrize("gain", [0.5, 1.0, 1.3])
def test_an_rnn_at_the_zero_state_is_its_gain_to_the_t(norm: str, gain: float) -> None:
    """W = g Q at h = 0 gives g^T, shrinking, staying or growing."""
    found = log_norms(cases.gain_rnn(gain, AT_ZERO), norm=norm)[:, 0]
    expected = closed_forms.rnn_log_norm(gain, STEPS, size=5, norm=norm)
    # At g = 1 the logarithm is 0 and only the rounding of 60 orthogonal products is left.
    cases.assert_same_log_norm(found, expected)


def test_an_rnn_from_a_random_state_falls_faster_than_its_gain() -> None:
    """Away from zero tanh' < 1, so g^T is only a bound."""
    found = log_norms(cases.gain_rnn(0.9, SIXTY))
    trend = closed_forms.rnn_log_norm(0.9, STEPS, size=5)[:, None]
    assert (found.numpy() < trend).all()


def test_a_live_candidate_can_grow_under_a_forget_gate_of_nine_tenths() -> None:
    """f = 0.9, i = o = 0.5, U = I gives 1.15 a step, not 0.9."""
    matrix = closed_forms.lstm_live_matrix(np.eye(4), forget=0.9, write=0.5, output=0.5)
    assert math.exp(closed_forms.log_spectral_radius(matrix)) == pytest.approx(1.15, rel=1e-14)


@NORMS
def test_powers_by_squaring_equal_powers_of_eigenvalues(norm: str) -> None:
    """For f I + i o Q, a normal matrix, the eigenvalues alone give every power's norm."""
    subject = cases.held_lstm(0.5, cases.Setup(hidden_size=8), candidate_gain=1.0)
    matrix = closed_forms.lstm_live_matrix(
        cases.candidate_recurrent(subject), forget=0.5, write=0.5, output=0.5
    )
    steps = np.array([1, 7, 1000, 100_000])
    squared = [closed_forms.live_log_norm(matrix, int(t), norm=norm) for t in steps]
    expected = closed_forms.normal_power_log_norm(matrix, steps, norm=norm)
    # Squaring doubles the relative error of M with M, so it grows as T, and so does |ln norm|.
    cases.assert_same_log_norm(squared, expected, tolerance=1e-11)


def test_a_tenth_to_the_hundred_thousand_is_a_number() -> None:
    """log10 of 0.1^100000 is -100000, not -infinity, by formula and by squaring."""
    formula = closed_forms.held_log_norm(0.1, 100_000, size=3) / math.log(10)
    squared = closed_forms.live_log_norm(0.1 * np.eye(3), 100_000) / math.log(10)
    assert float(formula) == pytest.approx(-100_000, rel=1e-13)
    assert squared == pytest.approx(-100_000, rel=1e-13)


def test_powers_of_nothing_and_to_nothing() -> None:
    """M^0 is I, so T = 1 of the (c, c) block is f alone; the power of a zero matrix is zero."""
    assert closed_forms.live_log_norm(np.full((2, 2), 0.3), 0) == 0.0
    assert closed_forms.live_log_norm(np.zeros((2, 2)), 5) == -math.inf


@GATES
@NORMS
def test_the_direct_path_of_held_gates_is_the_whole(gate: float, norm: str) -> None:
    """With a dead candidate the product of keep gates is all there is."""
    for subject, block in (
        (cases.held_lstm(gate, SIXTY), ("c", "c")),
        (cases.held_gru(gate, SIXTY), ("h", "h")),
    ):
        found = direct_path.direct_log_norms(subject, norm=norm)
        cases.assert_same_log_norm(found, log_norms(subject, block=block, norm=norm))


def test_three_forget_gates_multiply() -> None:
    """Forget gates of 0.9, 0.8 and 0.5 keep 0.36 of the cell state."""
    kept = 1.0
    for forget in (0.9, 0.8, 0.5):
        _, kept = closed_forms.lstm_from_gates(
            kept, forget=forget, write=0.5, candidate=0.0, output=0.5
        )
    assert kept == pytest.approx(0.36, rel=1e-15)
