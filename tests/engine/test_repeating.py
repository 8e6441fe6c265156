"""Under a constant input a state may come back: from there the rest is taken in leaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from gradflow.engine import JacobianNorms
from gradflow.errors import Interrupted
from tests import cases
from tests.engine.measuring import column, measure, relu_at_rest, saturated_rnn, silent
from tests.reference import closed_forms
from tests.reference.subject import Subject

POINTS = [1, 2, 100, 511, 512, 513, 600, 1023, 1024, 1025, 2000, 3000]


def _circling(period: int) -> Subject:
    """Return a relu RNN whose state moves one place on each step; W also carries a twist."""
    setup = cases.Setup(hidden_size=period, batch=1)
    subject = cases.gain_rnn(1.0, setup, nonlinearity="relu")
    shift = torch.roll(torch.eye(period, dtype=torch.float64), 1, dims=0)
    scales = torch.ones(period, 1, dtype=torch.float64)
    scales[0], scales[1] = 2.0, 0.5
    with torch.no_grad():
        subject.module.weight_hh.copy_(scales * shift)
        subject.module.bias_ih.zero_()
    start = torch.arange(1.0, period + 1, dtype=torch.float64)[None]
    return Subject(subject.module, subject.inputs, (start,))


def _both_ways(subject: Subject, *, block: object = "joint", norm: str = "spectral") -> Tensor:
    """Return the norms taken by leaps, after comparing them with those taken step by step."""
    leaps = measure(subject, block=block, norm=norm, at=POINTS)
    steps = measure(subject, block=block, norm=norm, at=POINTS, method="dense")
    assert leaps.settled_step is not None
    assert leaps.settled_step < 1600
    assert steps.settled_step is None
    cases.assert_same_log_norm(leaps.log_norm, steps.log_norm, tolerance=1e-11)
    for one, other in zip(leaps.final_state, steps.final_state, strict=True):
        # a state at rest is told to its last digits, one that came back exactly
        torch.testing.assert_close(one, other, rtol=0, atol=1e-15)
    if leaps.direct_log_norm is not None:
        cases.assert_same_log_norm(leaps.direct_log_norm, steps.direct_log_norm, tolerance=1e-11)
        assert steps.keep_min is not None
        assert leaps.keep_min is not None
        assert torch.equal(leaps.keep_min, steps.keep_min)
    return leaps.log_norm


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
@pytest.mark.parametrize("gain", [0.0, 0.5])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_a_cell_at_rest_leaps_to_the_same_norms(cell: str, gain: float, norm: str) -> None:
    """Zero input lets a held cell come to rest at zero; steps and leaps give one curve."""
    setup = cases.Setup(hidden_size=4, batch=2)
    subject = {
        "lstm": lambda: cases.held_lstm(0.5, setup, candidate_gain=gain),
        "gru": lambda: cases.held_gru(0.5, setup, candidate_gain=gain),
        "rnn": lambda: cases.gain_rnn(gain, setup),
    }[cell]()
    found = _both_ways(silent(subject, 3000), norm=norm)
    assert cell != "rnn" or gain or torch.isneginf(found).all()


def test_a_leap_from_the_zero_state_is_a_power() -> None:
    """At the zero state nothing moves: f M^(T-1) at T = 100,000 by repeated squaring."""
    setup = cases.Setup(hidden_size=6, batch=1, start="zero")
    subject = cases.held_lstm(0.9, setup, input_gate=0.5, candidate_gain=1.0)
    matrix = closed_forms.lstm_live_matrix(
        cases.candidate_recurrent(subject), forget=0.9, write=0.5, output=0.5
    )
    points = [1, 7, 1000, 99_999, 100_000]
    norms = measure(silent(subject, 100_000), at=points)
    assert norms.method == "jump"
    assert norms.settled_step == 512 - 1
    steps = np.array(points)
    expected = closed_forms.normal_power_log_norm(matrix, steps - 1) + math.log(0.9)
    cases.assert_same_log_norm(column(norms), expected, tolerance=1e-11)


@pytest.mark.parametrize("period", [2, 3, 5, 8])
def test_a_state_that_circles_leaps_by_whole_rounds(period: int) -> None:
    """A cycle of p states repeats its p Jacobians: norms at any phase are those of the steps."""
    found = _both_ways(silent(_circling(period), 3000))
    powers = [_round_norm(period, step) for step in POINTS]
    cases.assert_same_log_norm(found[:, 0], powers)


def _round_norm(period: int, steps: int) -> float:
    """Return ln of the largest product of `steps` scales in a row on a circle of 2, 1/2, 1 ..."""
    scales = [2.0, 0.5] + [1.0] * (period - 2)
    within = steps % period  # a whole round multiplies by 1
    starts = range(period)
    return max(
        sum(math.log(scales[(start + k) % period]) for k in range(within)) for start in starts
    )


@pytest.mark.parametrize(("period", "gain"), [(2, 2.0), (3, 1.5), (4, 2.0)])
def test_the_phases_of_a_cycle_are_told_apart(period: int, gain: float) -> None:
    """A tanh RNN that turns has another slope at each phase: their order matters, and is kept."""
    setup = cases.Setup(hidden_size=3, batch=1)
    subject = cases.gain_rnn(1.0, setup)
    angle = 2 * math.pi / period
    turn = [[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]]
    with torch.no_grad():
        subject.module.weight_hh.copy_(gain * torch.tensor([*turn, [0.5, -0.3, 0.2]]).double())
        subject.module.bias_ih.copy_(torch.tensor([0.1, 0.2, 0.3]))
    start = torch.tensor([[0.9, 0.1, 0.2]], dtype=torch.float64)
    turning = silent(Subject(subject.module, subject.inputs, (start,)), 3000)
    _both_ways(turning)
    assert measure(turning, at=[3000]).settled_step == 512 - period


def test_a_longer_cycle_is_taken_step_by_step() -> None:
    """A period of 11 is not looked for; the norms are right all the same, and it is said."""
    subject = silent(_circling(11), 3000)
    leaps = measure(subject, at=POINTS, method="jump")
    assert leaps.settled_step is None
    assert any("did not come back" in note for note in leaps.notes)
    cases.assert_same_log_norm(column(leaps), [_round_norm(11, step) for step in POINTS])


def test_growth_and_decay_leap_beyond_float64() -> None:
    """2^T and 2^-T at T = 1,000,000 are exact: log2 is +-1,000,000."""
    for gain in (2.0, 0.5):
        norms = measure(silent(relu_at_rest(gain), 1_000_000), at=[1_000_000])
        expected = [1_000_000 * math.log(gain)]
        cases.assert_same_log_norm(column(norms), expected, tolerance=1e-15)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_powers_of_a_matrix_whose_squares_are_no_numbers(dtype: torch.dtype) -> None:
    """W = 1e-200 I at the zero state: the norm is T ln 1e-200, though (1e-200)^2 is zero."""
    scale = 1e-200 if dtype == torch.float64 else 1e-30
    subject = saturated_rnn(0.0, dtype=dtype)
    with torch.no_grad():
        dict(subject.module.named_parameters())["weight_hh"].mul_(scale)
    norms = measure(silent(subject, 3000), at=[1, 2, 3000])
    assert norms.method == "jump"
    expected = torch.tensor([1.0, 2.0, 3000.0]).double() * math.log(scale)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-7
    cases.assert_same_log_norm(column(norms), expected, tolerance=tolerance)


def test_an_input_that_changes_late_is_waited_for() -> None:
    """Rest before the last change of the input is no rest: the leap comes after it."""
    subject = relu_at_rest(1.0)
    inputs = torch.zeros(3000, 1, 3, dtype=torch.float64)
    inputs[1500] = 0.5
    with torch.no_grad():
        subject.module.weight_ih.copy_(0.25 * torch.ones(2, 3))
        subject.module.weight_hh.copy_(torch.tensor([[0.5, 0.25], [0.0, 0.5]]))
        subject.module.bias_ih.fill_(0.5)
    disturbed = Subject(subject.module, inputs, subject.state)
    leaps = measure(disturbed, at=POINTS)
    steps = measure(disturbed, at=POINTS, method="dense")
    assert leaps.settled_step is not None
    assert leaps.settled_step > 1500
    cases.assert_same_log_norm(leaps.log_norm, steps.log_norm, tolerance=1e-11)


def test_a_zero_that_comes_after_the_leap_is_found() -> None:
    """An exact zero stays one through leaps, with the first point that shows it."""
    setup = cases.Setup(hidden_size=3, batch=1)
    subject = cases.gain_rnn(1.0, setup, nonlinearity="relu")
    with torch.no_grad():
        subject.module.weight_hh.copy_(torch.ones(3, 3).triu(1))
        subject.module.bias_ih.fill_(1.0)
    norms = measure(silent(subject, 3000), at=[1, 2, 2000, 3000])
    assert torch.isneginf(column(norms)).tolist() == [False, False, True, True]
    assert (norms.first_zero_step, norms.zero_reason) == ((2000,), ("exact",))


def test_a_run_that_is_stopped_keeps_what_it_measured() -> None:
    """Stopped from the keyboard after a chunk, the norms up to there come with the error."""
    setup = cases.Setup(hidden_size=3, batch=2, steps=1100)
    subject = cases.random_subject("lstm", setup, weight_scale=0.5)
    whole = measure(subject)

    def stop(done: int, _: int) -> None:
        if done > 600:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="known up to step 1024 of 1100") as caught:
        measure(subject, progress=stop)
    partial = caught.value.partial
    assert isinstance(partial, JacobianNorms)
    assert partial.steps.tolist() == list(range(1, 1025))
    assert torch.equal(partial.log_norm, whole.log_norm[:1024])
    assert partial.direct_log_norm is not None
    assert whole.direct_log_norm is not None
    assert torch.equal(partial.direct_log_norm, whole.direct_log_norm[:1024])


def test_a_state_at_rest_leaps_where_its_last_digits_never_stop() -> None:
    """A tanh RNN of 64 units never comes back bit for bit; its Jacobian is at rest all the same."""
    setup = cases.Setup(hidden_size=64, batch=1)
    subject = silent(cases.random_subject("rnn", setup, weight_scale=0.8), 20_000)
    at = [1, 10, 600, 2000, 20_000]
    leaps = measure(subject, at=at)
    assert leaps.method == "jump"
    assert leaps.settled_step is not None
    assert "last digits" in leaps.notes[0]
    steps = measure(subject, at=at, method="dense")
    cases.assert_same_log_norm(leaps.log_norm, steps.log_norm, tolerance=1e-11)


def test_a_block_that_fades_is_not_at_rest() -> None:
    """h reaches h through tanh(c) alone: as c fades the block fades faster than any power.

    The other blocks are at rest long before, and hide it: dh_T/dh_0 = prod of tanh(c_t) o' U_o.
    """
    subject = cases.held_lstm(0.9, cases.Setup(hidden_size=4, batch=1))
    size = subject.hidden_size
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        drawn = torch.randn(size, size, generator=generator, dtype=torch.float64)
        subject.module.weight_hh[3 * size :].copy_(drawn)
    at = [10, 600, 1500, 3000]
    leaps = measure(silent(subject, 3000), block=("h", "h"), at=at)
    steps = measure(silent(subject, 3000), block=("h", "h"), at=at, method="dense")
    assert leaps.settled_step is None
    assert column(leaps)[-1] < -400_000
    cases.assert_same_log_norm(leaps.log_norm, steps.log_norm)


def test_a_million_steps_are_a_leap() -> None:
    """T = 10^6 at log-spaced points, with the norm that the closed form of the zero state gives."""
    subject = cases.held_lstm(0.9, cases.Setup(batch=1, start="zero"), candidate_gain=1.0)
    at = [1, 1000, 100_000, 1_000_000]
    norms = measure(silent(subject, 1_000_000), at=at)
    matrix = closed_forms.lstm_live_matrix(
        cases.candidate_recurrent(subject), forget=0.9, write=0.1, output=0.5
    )
    expected = [
        closed_forms.live_log_norm(
            matrix, step - 1, left=0.9 * np.eye(len(matrix)), norm="spectral"
        )
        for step in at
    ]
    assert norms.method == "jump"
    # round-off of the matrix itself, 1e-16, counts once for every step
    cases.assert_same_log_norm(column(norms), np.array(expected), tolerance=1e-10)
