"""The engine against formulas, where a formula exists, for every prefix and far beyond float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gradflow.cells import GRU, LSTM, hold_, stack_cells
from gradflow.engine import jacobian_norms
from gradflow.engine.trajectory import constant_input, zero_input
from tests import cases
from tests.engine.measuring import column, measure, silent
from tests.reference import closed_forms
from tests.reference.subject import Subject

GATES = (0.1, 0.5, 0.9)
each_gate = pytest.mark.parametrize("gate", GATES)
each_norm = pytest.mark.parametrize("norm", ["spectral", "frobenius"])
each_place = pytest.mark.parametrize("place", ["before", "after"])
each_way = pytest.mark.parametrize("method", ["diagonal", "dense", "generic"])
HUNDRED = cases.Setup(steps=100)
AT_ZERO = cases.Setup(steps=100, batch=1, start="zero")
STEPS = np.arange(1, 101)
FAR = [1, 2, 10, 323, 324, 1000, 99_999, 100_000]


@each_gate
@each_norm
@each_way
def test_a_held_lstm_keeps_f_to_the_t(gate: float, norm: str, method: str) -> None:
    """With U = 0 dc_T/dc_0 is f^T I from any state and under any input, by every method."""
    subject = cases.held_lstm(gate, HUNDRED)
    size = subject.hidden_size
    torch.nn.init.normal_(subject.module.weight_ih.data[2 * size : 3 * size])
    large = Subject(subject.module, subject.inputs, tuple(10 * part for part in subject.state))
    expected = closed_forms.held_log_norm(gate, STEPS, size=size, norm=norm)
    norms = measure(large, norm=norm, method=method)
    assert norms.method == method
    cases.assert_same_log_norm(norms.log_norm, np.tile(expected[:, None], 3))
    assert norms.block == ("c", "c")


@each_gate
@each_norm
@each_place
@each_way
def test_a_held_gru_keeps_z_to_the_t(gate: float, norm: str, place: str, method: str) -> None:
    """With U = 0 dh_T/dh_0 is z^T I, wherever the reset gate stands, by every method."""
    subject = cases.held_gru(gate, HUNDRED, place=place)
    expected = closed_forms.held_log_norm(gate, STEPS, size=subject.hidden_size, norm=norm)
    norms = measure(subject, norm=norm, method=method)
    cases.assert_same_log_norm(norms.log_norm, np.tile(expected[:, None], 3))


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_hundred_thousand_steps_are_a_hundred_thousand_logarithms(kind: str) -> None:
    """f^T and z^T hold at T = 100,000, where 0.1^T is 10^-100000 and no float64."""
    held = [_held(kind, gate) for gate in GATES]
    cell = stack_cells(held)
    state = tuple(torch.randn(3, 4).double() for _ in cell.parts)
    far = zero_input(cell, 3, FAR[-1])
    spectral, frobenius = (
        jacobian_norms(cell, far, state, norm=norm, at=FAR).log_norm
        for norm in ("spectral", "frobenius")
    )
    for row, gate in enumerate(GATES):
        expected = closed_forms.held_log_norm(gate, np.array(FAR), size=4)
        cases.assert_same_log_norm(spectral[:, row], expected, tolerance=1e-11)
        cases.assert_same_log_norm(frobenius[:, row], expected + math.log(2), tolerance=1e-11)
    assert spectral[-1, 0].item() / math.log(10) == pytest.approx(-100_000, rel=1e-11)


def _held(kind: str, gate: float) -> LSTM | GRU:
    if kind == "lstm":
        return hold_(LSTM(1, 4, dtype=torch.float64), forget=gate, input=1 - gate)
    return hold_(GRU(1, 4, dtype=torch.float64), update=gate, reset=0.5)


def test_the_running_matrix_is_as_exact_as_the_logarithms() -> None:
    """The dense product of 5000 steps is f^T too: rescaling by powers of two costs nothing."""
    subject = silent(cases.held_lstm(0.1, cases.Setup(hidden_size=3, batch=1)), 5000)
    steps = np.array([1, 500, 1000, 5000])
    found = column(measure(subject, method="dense", at=list(map(int, steps))))
    expected = closed_forms.held_log_norm(0.1, steps, size=3)
    cases.assert_same_log_norm(found, expected, tolerance=1e-11)


@each_gate
@each_norm
@each_way
def test_the_joint_state_of_a_held_lstm_has_a_factor_of_its_own(
    gate: float, norm: str, method: str
) -> None:
    """Joint: f^T sqrt(1 + o^2 max sech^4 c_T), Frobenius sqrt(sum of them), not f^T."""
    subject = cases.held_lstm(gate, HUNDRED, output_gate=0.7)
    found = measure(subject, block="joint", norm=norm, method=method).log_norm
    start = subject.state[1].numpy()
    cell_state = closed_forms.held_cell_state(
        start, STEPS[:, None, None], forget=gate, write=1 - gate
    )
    expected = closed_forms.held_joint_log_norm(
        gate, STEPS[:, None], output=0.7, cell_state=cell_state, norm=norm
    )
    cases.assert_same_log_norm(found, expected)


def test_the_joint_norm_at_the_zero_state_is_f_to_the_t_times_a_constant() -> None:
    """At c = 0 the factor is sqrt(1 + o^2): the slope alone is ln f."""
    found = column(measure(cases.held_lstm(0.5, AT_ZERO, output_gate=0.8), block="joint"))
    cases.assert_same_log_norm(found, STEPS * math.log(0.5) + math.log(1 + 0.8**2) / 2)


@pytest.mark.parametrize("method", ["diagonal", "dense", "generic"])
def test_the_blocks_of_a_held_lstm(method: str) -> None:
    """(h, c) is o sech^2(c_T) f^T, the largest of it over units; nothing reads h_0."""
    subject = cases.held_lstm(0.9, HUNDRED, output_gate=0.3)
    start = subject.state[1].numpy()
    cell_state = closed_forms.held_cell_state(start, STEPS[:, None, None], forget=0.9, write=0.1)
    readout = 0.3 / np.cosh(cell_state) ** 2
    trend = STEPS[:, None] * math.log(0.9)
    shown = measure(subject, block=("h", "c"), method=method).log_norm
    cases.assert_same_log_norm(shown, trend + np.log(readout.max(axis=-1)))
    whole = measure(subject, block=("h", "c"), norm="frobenius", method=method).log_norm
    cases.assert_same_log_norm(whole, trend + np.log(np.linalg.norm(readout, axis=-1)))
    for block in (("h", "h"), ("c", "h")):
        assert torch.isneginf(measure(subject, block=block, method=method).log_norm).all()


@each_gate
@each_norm
@pytest.mark.parametrize("gain", [0.5, 1.0, 1.5])
def test_a_live_lstm_at_the_zero_state_is_a_matrix_power(
    gate: float, norm: str, gain: float
) -> None:
    """(c, c) is f M^(T-1) and joint is [o; 1] (x) M^(T-1) [iU, fI], with M = f I + i o U."""
    subject = cases.held_lstm(gate, AT_ZERO, input_gate=0.6, output_gate=0.7, candidate_gain=gain)
    gates = {"forget": gate, "write": 0.6, "output": 0.7}
    recurrent = cases.candidate_recurrent(subject)
    matrix = closed_forms.lstm_live_matrix(recurrent, **gates)
    left, right = closed_forms.lstm_live_factors(recurrent, **gates)
    power = [closed_forms.live_log_norm(matrix, int(t) - 1, norm=norm) for t in STEPS]
    joint = [
        closed_forms.live_log_norm(matrix, int(t) - 1, left=left, right=right, norm=norm)
        for t in STEPS
    ]
    own = column(measure(subject, norm=norm))
    cases.assert_same_log_norm(own, np.array(power) + math.log(gate))
    cases.assert_same_log_norm(column(measure(subject, block="joint", norm=norm)), joint)


@each_gate
@each_norm
@each_place
def test_a_live_gru_at_the_zero_state_is_a_matrix_power(gate: float, norm: str, place: str) -> None:
    """At h = 0, b = 0 the product is (z I + (1 - z) r U)^T for both places of the reset gate."""
    subject = cases.held_gru(gate, AT_ZERO, reset=0.3, place=place, candidate_gain=1.2)
    recurrent = cases.candidate_recurrent(subject)
    matrix = closed_forms.gru_live_matrix(recurrent, update=gate, reset=0.3)
    expected = [closed_forms.live_log_norm(matrix, int(t), norm=norm) for t in STEPS]
    cases.assert_same_log_norm(column(measure(subject, norm=norm)), expected)


@each_norm
@pytest.mark.parametrize("gain", [0.1, 0.9, 1.0, 1.3])
def test_an_rnn_at_the_zero_state_is_its_gain_to_the_t(norm: str, gain: float) -> None:
    """W = g Q at h = 0 gives g^T, shrinking, staying or growing."""
    found = column(measure(cases.gain_rnn(gain, AT_ZERO), norm=norm))
    expected = closed_forms.rnn_log_norm(gain, STEPS, size=5, norm=norm)
    cases.assert_same_log_norm(found, expected)


@pytest.mark.parametrize("gain", [0.9, 1.0, 1.3])
def test_an_rnn_from_a_random_state_falls_faster_than_its_gain(gain: float) -> None:
    """Away from zero tanh' < 1, so g^T is only a bound."""
    found = measure(cases.gain_rnn(gain, HUNDRED)).log_norm.numpy()
    trend = closed_forms.rnn_log_norm(gain, STEPS, size=5)
    assert (found < trend[:, None]).all()
    assert (found[-1] < trend[-1] - 0.1).all()


def test_a_live_candidate_grows_for_twenty_thousand_steps() -> None:
    """f = 0.9, i = o = 0.5, U = I grows 1.15 a step: 10^1214 at T = 20,000, and finite."""
    setup = cases.Setup(hidden_size=3, batch=1, start="zero")
    subject = cases.held_lstm(0.9, setup, input_gate=0.5, candidate_gain=1.0)
    subject.module.weight_hh.data[6:9] = torch.eye(3)
    steps = np.array([1, 2, 1000, 20_000])
    found = column(measure(silent(subject, 20_000), at=list(map(int, steps))))
    expected = math.log(0.9) + (steps - 1) * math.log(1.15)
    cases.assert_same_log_norm(found, expected, tolerance=1e-11)
    assert found[-1].item() / math.log(10) > 1213


def test_the_direct_path_of_held_gates_is_the_trend_even_beside_a_live_candidate() -> None:
    """The product of the keep gates is f^T and z^T, whatever the candidate does."""
    for gain in (0.0, 1.0):
        for subject in (
            cases.held_lstm(0.9, HUNDRED, candidate_gain=gain),
            cases.held_gru(0.9, HUNDRED, candidate_gain=gain),
        ):
            for norm in ("spectral", "frobenius"):
                norms = measure(subject, norm=norm)
                expected = closed_forms.held_log_norm(0.9, STEPS, size=5, norm=norm)
                assert norms.direct_log_norm is not None
                found = norms.direct_log_norm
                cases.assert_same_log_norm(found, np.tile(expected[:, None], 3))
                assert norms.keep_min is not None
                assert norms.keep_max is not None
                # sigmoid(logit(v)) is off by a unit or two in the last place
                assert torch.allclose(norms.keep_min, torch.tensor(0.9).double(), atol=1e-15)
                assert torch.equal(norms.keep_min, norms.keep_max)


def test_one_constant_input_is_the_same_as_many_equal_ones() -> None:
    """An input stored once and expanded in time drives a cell like its copies.

    Also beyond the step from which the state stays as it is, and is no longer computed.
    """
    setup = cases.Setup(hidden_size=4, batch=2)
    slow = cases.gain_rnn(1.0, setup)  # with W = I h falls like 1 / sqrt(T), and never rests
    torch.nn.init.eye_(slow.module.weight_hh)
    for subject in (cases.random_subject("lstm", setup), cases.held_lstm(0.1, setup), slow):
        constant = constant_input(subject.inputs[0], 1100)
        copied = constant.clone(memory_format=torch.contiguous_format)
        assert constant.stride(0) == 0 != copied.stride(0)
        one, other = (
            measure(Subject(subject.module, x, subject.state), block="joint")
            for x in (constant, copied)
        )
        cases.assert_same_log_norm(one.log_norm, other.log_norm)
        for part, same in zip(one.final_state, other.final_state, strict=True):
            assert torch.allclose(part, same, rtol=1e-12, atol=0)
