"""The running scale: nothing under- or overflows, and no digit is lost on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gradflow.cells import LSTM
from gradflow.engine import jacobian_norms
from tests import cases
from tests.engine.measuring import cell_of, column, measure, relu_at_rest, saturated_rnn, silent
from tests.reference import autograd_jacobian

each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["32", "64"])


@pytest.fixture(params=[torch.float32, torch.float64], ids=["default32", "default64"])
def _default_dtype(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield
    torch.set_default_dtype(before)


@each_dtype
@pytest.mark.parametrize("gain", [2.0, 0.5])
def test_powers_of_two_are_exact_at_any_step(gain: float, dtype: torch.dtype) -> None:
    """A relu RNN with J = 2 I (or I / 2) has ln norm T ln 2 to the last digit at T = 5000."""
    subject = silent(relu_at_rest(gain, dtype=dtype), 5000)
    points = [1, 2, 511, 512, 513, 1024, 1025, 5000]
    found = column(measure(subject, at=points))
    expected = np.array(points) * math.log(gain)
    cases.assert_same_log_norm(found, expected, tolerance=1e-15)


@pytest.mark.usefixtures("_default_dtype")
@cases.each_kind
def test_torchs_default_dtype_does_not_matter(kind: str) -> None:
    """A float64 cell is measured in float64 whatever torch makes of a bare number.

    In float32 an exponent, or ln 2 times one, would lose all but 7 digits.
    """
    subject = cases.random_subject(kind, cases.Setup(steps=300, batch=2), weight_scale=0.5)
    for method in ("dense", "generic"):
        found = measure(subject, method=method)
        assert found.log_norm.dtype == torch.float64
        own = "joint" if kind != "lstm" else ("c", "c")
        cases.assert_same_log_norm(
            found.log_norm, autograd_jacobian.log_norms(subject, block=own), tolerance=1e-13
        )


@pytest.mark.usefixtures("_default_dtype")
def test_torchs_default_dtype_does_not_touch_held_gates() -> None:
    """The diagonal way adds logarithms in float64 under both defaults."""
    for subject in (cases.held_lstm(0.1, cases.Setup(steps=1000)), cases.held_gru(0.1)):
        norms = measure(subject)
        assert norms.method == "diagonal"
        expected = np.arange(1, subject.steps + 1) * math.log(0.1)
        found, direct = norms.log_norm, norms.direct_log_norm
        cases.assert_same_log_norm(found, np.tile(expected[:, None], 3), tolerance=1e-13)
        cases.assert_same_log_norm(direct, np.tile(expected[:, None], 3), tolerance=1e-13)


@pytest.mark.parametrize(
    ("dtype", "bias"),
    [
        *((torch.float32, bias) for bias in (10.0, 20.0, 40.0)),
        *((torch.float64, bias) for bias in (10.0, 20.0, 40.0, 80.0, 340.0)),
    ],
)
def test_one_step_may_fall_below_the_square_of_any_number(dtype: torch.dtype, bias: float) -> None:
    """Saturated tanh slopes of 4 e^-2a multiply up as they are, small enough that squares are 0."""
    norms = measure(silent(saturated_rnn(bias, dtype=dtype), 50))
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    expected = _log_slopes(bias, 50).cumsum()
    cases.assert_same_log_norm(column(norms), expected, tolerance=tolerance)
    assert norms.first_zero_step == (None,)


@pytest.mark.parametrize("bias", [80.0, 340.0])
def test_a_slope_that_the_dtype_cannot_hold_is_an_underflow(bias: float) -> None:
    """Float32 has no 4 e^-2a beyond a = 43, though tanh is never truly flat."""
    assert _log_slopes(bias, 50).min() < math.log(torch.finfo(torch.float32).tiny)
    norms = measure(silent(saturated_rnn(bias, dtype=torch.float32), 50))
    assert norms.first_zero_step == (1,)
    assert norms.zero_reason == ("underflow",)


def _log_slopes(bias: float, steps: int) -> NDArray[np.float64]:
    """Return ln sech^2 = ln 4 - 2 a - 2 ln(1 + e^-2a) along h = tanh(a), a = bias + h."""
    hidden, found = 0.0, []
    for _ in range(steps):
        at = bias + hidden
        found.append(math.log(4) - 2 * at - 2 * math.log1p(math.exp(-2 * at)))
        hidden = math.tanh(at)
    return np.array(found)


@pytest.mark.parametrize("gain", [1e-300, 1e-200, 1e-160, 1e160, 1e300])
def test_one_step_may_have_any_size_that_float64_has(gain: float) -> None:
    """J = g I gives T ln g for every g whose square is 0 or infinite in float64."""
    subject = silent(relu_at_rest(1.0), 30)
    with torch.no_grad():
        subject.module.weight_hh.mul_(gain)
        subject.module.weight_ih.zero_()
        subject.module.bias_ih.fill_(1.0)
    bounded = subject if gain < 1 else silent(_tanh_at_zero(gain), 30)
    found = column(measure(bounded))
    cases.assert_same_log_norm(found, np.arange(1, 31) * math.log(gain))


def _tanh_at_zero(gain: float) -> autograd_jacobian.Subject:
    return cases.gain_rnn(gain, cases.Setup(hidden_size=1, batch=1, start="zero"))


@cases.each_kind
def test_every_prefix_is_the_run_that_stops_there(kind: str) -> None:
    """One pass over 1100 steps (three chunks) gives what runs of each length give."""
    setup = cases.Setup(hidden_size=3, batch=2, steps=1100)
    subject = cases.random_subject(kind, setup, weight_scale=0.5)
    whole = measure(subject, block="joint")
    points = [1, 2, 511, 512, 513, 1023, 1024, 1025, 1100]
    some = measure(subject, block="joint", at=points)
    assert torch.equal(some.log_norm, whole.log_norm[[step - 1 for step in points]])
    for steps in (1, 2, 511, 512, 513):
        part = measure(subject.first(steps), block="joint", at=[steps])
        cases.assert_same_log_norm(part.log_norm[0], whole.log_norm[steps - 1])


def test_points_come_ascending_and_once() -> None:
    """`at` may be unsorted and repeat itself: the points are the set of it, in order."""
    subject = cases.random_subject("gru", cases.Setup(steps=40))
    whole = measure(subject)
    for at in ([7, 40, 1, 7], torch.tensor([40, 7, 1]), [1, 7, 40]):
        some = measure(subject, at=at)
        assert some.steps.tolist() == [1, 7, 40]
        assert torch.equal(some.log_norm, whole.log_norm[[0, 6, 39]])
        assert some.direct_log_norm is not None
        assert whole.direct_log_norm is not None
        assert torch.equal(some.direct_log_norm, whole.direct_log_norm[[0, 6, 39]])
    assert whole.steps.tolist() == list(range(1, 41))


@pytest.mark.parametrize("method", ["auto", "dense", "generic"])
@cases.each_kind
def test_a_weight_that_is_no_number_makes_norms_that_are_none(kind: str, method: str) -> None:
    """One NaN weight gives NaN norms, not zeros and not a crash; one row's NaN stays its own."""
    subject = cases.random_subject(kind)
    with torch.no_grad():
        next(iter(subject.module.parameters()))[0, 0] = math.nan
    norms = measure(subject, method=method)
    assert torch.isnan(norms.log_norm[-1]).all()
    assert norms.zero_reason == (None, None, None)
    healthy = cases.random_subject(kind)
    healthy.state[0][1, 0] = math.nan
    alone = measure(healthy, method=method).log_norm
    assert torch.isnan(alone[-1]).tolist() == [False, True, False]


@pytest.mark.parametrize("method", ["dense", "generic"])
def test_a_state_that_overflows_has_no_norm(method: str) -> None:
    """A relu RNN that doubles its state is beyond float64 at T = 1024: NaN then, never "zero"."""
    setup = cases.Setup(hidden_size=2, batch=1)
    subject = cases.gain_rnn(1.0, setup, nonlinearity="relu")
    with torch.no_grad():
        subject.module.weight_hh.copy_(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
    subject = silent(autograd_jacobian.Subject(subject.module, subject.inputs, _ones()), 1100)
    found = column(measure(subject, method=method))
    cases.assert_same_log_norm(found[:1000], np.arange(1, 1001) * math.log(2), tolerance=1e-14)
    assert torch.isnan(found[-1])


def _ones() -> tuple[torch.Tensor, ...]:
    return (torch.ones(1, 2, dtype=torch.float64),)


def test_progress_counts_to_the_end() -> None:
    """A long run tells how far it is, chunk by chunk, up to all of its steps."""
    cell = cell_of(cases.held_lstm(0.5).module)
    told: list[tuple[int, int]] = []
    x = torch.zeros(1100, 1, 3, dtype=torch.float64)
    state = cell.initial_state(1)
    jacobian_norms(cell, x, state, progress=lambda done, total: told.append((done, total)))
    assert [total for _, total in told] == [1100] * len(told)
    assert told[-1] == (1100, 1100)
    assert sorted(told) == told
    assert len(told) > 1


def test_measuring_leaves_the_cell_as_it_was() -> None:
    """Nothing is written to weights or to the given state, and no graph is kept."""
    cell = LSTM(2, 3, dtype=torch.float64)
    before = [parameter.clone() for parameter in cell.parameters()]
    state = tuple(torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    copies = [part.detach().clone() for part in state]
    for method in ("dense", "generic"):
        x = torch.randn(5, 2, 2, dtype=torch.float64)
        norms = jacobian_norms(cell, x, state, method=method)
        assert not norms.log_norm.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(before, cell.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(copies, state, strict=True))
    assert all(parameter.grad is None for parameter in cell.parameters())
