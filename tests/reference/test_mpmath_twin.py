"""The 50-digit twin against autograd, against differences at 50 digits, and against itself."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from torch import nn

from tests import cases
from tests.reference import autograd_jacobian, closed_forms, mpmath_twin
from tests.reference.mpmath_cells import exact, exact_step

LONG = cases.Setup(hidden_size=4, batch=1, steps=1000)
FEW = (1, 10, 100, 1000)


@cases.each_kind
def test_jacobians_equal_autograds_at_every_short_prefix(kind: str) -> None:
    """Two derivations of ds_T/ds_0, one by formula and one by autograd, are one matrix."""
    subject = cases.random_subject(kind)
    found = mpmath_twin.jacobians(subject)
    expected = autograd_jacobian.jacobians(subject)
    # Six products of float64 matrices: a few units in the last place of the largest entry.
    largest = expected.abs().amax(dim=(2, 3), keepdim=True)
    assert ((found - expected).abs() <= 1e-14 * largest).all()


@cases.each_kind
def test_states_equal_torchs(kind: str) -> None:
    """The states the twin walks through are those of the torch module."""
    subject = cases.random_subject(kind)
    expected = torch.stack([torch.cat(s, dim=1) for s in autograd_jacobian.trajectory(subject)])
    assert torch.allclose(mpmath_twin.trajectory(subject), expected, rtol=1e-14, atol=1e-14)


@cases.each_kind
@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_log_norms_agree_over_a_thousand_steps(kind: str, norm: str) -> None:
    """Where the states forget, float64 with a running scale keeps 12 digits for 1000 steps."""
    subject = cases.random_subject(kind, LONG, weight_scale=0.5)
    found = autograd_jacobian.log_norms(subject, norm=norm)[[step - 1 for step in FEW]]
    expected = mpmath_twin.log_norms(subject, norm=norm, at=FEW)
    assert expected[-1, 0] < -100
    cases.assert_same_log_norm(found, expected)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_blocks_and_rows_are_the_same_in_both_twins(kind: str) -> None:
    """Any (row part, column part) block means the same in both twins, for every row."""
    subject = cases.random_subject(kind)
    for block in [(a, b) for a in subject.parts for b in subject.parts]:
        found = mpmath_twin.log_norms(subject, block=block, norm="frobenius")
        expected = autograd_jacobian.log_norms(subject, block=block, norm="frobenius")
        cases.assert_same_log_norm(found, expected)


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before", "rnn", "rnn-relu"])
def test_the_step_jacobian_is_the_limit_of_differences(kind: str) -> None:
    """A central difference at 50 digits, step 1e-15, leaves an error of about 1e-30."""
    subject = cases.random_subject(kind, cases.Setup(hidden_size=3, batch=1))
    step = exact_step(subject.module)
    with mpmath.workdps(50):
        x, state = exact(subject.inputs[0, 0]), exact(torch.cat(subject.state, dim=1)[0])
        _, jacobian = step(x, state)
        for column in range(len(state)):
            nudge = np.full(len(state), mpmath.mpf(0), dtype=object)
            nudge[column] = mpmath.mpf(10) ** -15
            difference = step(x, state + nudge)[0] - step(x, state - nudge)[0]
            slope = difference / (2 * nudge[column])
            assert max(abs(slope - jacobian[:, column])) < mpmath.mpf(10) ** -28


def test_more_digits_change_nothing() -> None:
    """Fifty digits are enough: a hundred round to the same float64."""
    subject = cases.random_subject("lstm", cases.Setup(hidden_size=3, batch=1, steps=200))
    fifty = mpmath_twin.log_norms(subject, norm="frobenius")
    hundred = mpmath_twin.log_norms(subject, norm="frobenius", digits=100)
    assert torch.equal(fifty, hundred)


def test_weights_are_taken_exactly() -> None:
    """A float64 enters as the binary fraction it is: 0.1 is not one tenth."""
    with mpmath.workdps(50):
        (value,) = exact(torch.tensor([0.1], dtype=torch.float64))
        fraction = Fraction(int(value * 2**60), 2**60)
        assert value != mpmath.mpf("0.1")
    assert fraction == Fraction(0.1)


def test_far_below_float64_the_log_norm_is_still_exact() -> None:
    """0.001^400 is 10^-1200: no float64, but its logarithm is."""
    subject = cases.held_gru(0.001, cases.Setup(hidden_size=2, batch=1, steps=400))
    found = mpmath_twin.log_norms(subject, at=[400])
    cases.assert_same_log_norm(found, [[closed_forms.held_log_norm(0.001, 400, size=2)]])


def test_a_zero_block_is_minus_infinity() -> None:
    """A held LSTM with a dead candidate does not read h_0 at all."""
    subject = cases.held_lstm(0.5, cases.Setup(batch=1, steps=2))
    for norm in ("spectral", "frobenius"):
        found = mpmath_twin.log_norms(subject, block=("c", "h"), norm=norm)
        assert torch.isneginf(found).all()


def test_a_cell_without_a_formula_is_refused() -> None:
    """The twin knows four formulas and does not guess a fifth."""
    with pytest.raises(TypeError, match="no exact formula for a Linear"):
        exact_step(nn.Linear(2, 2))
