"""Norms by vectors alone: estimates from below with an interval, against the whole matrix."""

from __future__ import annotations

import inspect
import math

import pytest
import torch

from gradflow.cells import GRU
from gradflow.engine import jacobian_norms
from gradflow.engine.orthonormal_basis import OrthonormalBasis
from gradflow.errors import UnknownNameError
from tests import cases
from tests.engine.measuring import EVERY_BLOCK, cell_of, measure, saturated_rnn, silent
from tests.engine.test_generic import NoFormula

SETUP = cases.Setup(hidden_size=20, batch=2, steps=40)
AT = [1, 7, 40]


@pytest.mark.parametrize(("kind", "block"), EVERY_BLOCK)
def test_the_estimate_is_the_norm(kind: str, block: str | tuple[str, str]) -> None:
    """Where it says `converged` the estimate is good to 1e-6, and the norm lies in its interval."""
    subject = cases.random_subject(kind, SETUP)
    exact = measure(subject, block=block, at=AT, method="dense").log_norm
    found = measure(subject, block=block, at=AT, method="krylov")
    assert found.method == "krylov"
    assert found.converged is not None
    assert found.log_norm_upper is not None
    assert found.converged.all()
    cases.assert_same_log_norm(found.log_norm, exact, tolerance=1e-6)
    slack = 1e-12 * exact.abs().clamp_min(1.0)  # the lower bound is proved up to round-off
    assert (found.log_norm <= exact + slack).all()
    assert (found.log_norm_upper >= exact - 1e-6).all()


def test_vectors_go_as_far_below_float64_as_the_matrix() -> None:
    """0.1^T at T = 2000, from a matrix that no unit leaves alone."""
    setup = cases.Setup(hidden_size=16, batch=1)
    subject = silent(cases.held_gru(0.1, setup, candidate_gain=0.5), 2000)
    exact = measure(subject, at=[1, 300, 2000], method="dense").log_norm
    found = measure(subject, at=[1, 300, 2000], method="krylov").log_norm
    assert exact[-1, 0] < -2000
    cases.assert_same_log_norm(found, exact, tolerance=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-305, 1e200])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_vectors_pass_a_step_that_leaves_the_numbers_at_once(
    scale: float, dtype: torch.dtype
) -> None:
    """W = scale I with open slopes gives T ln(scale), where two steps would leave every dtype."""
    if dtype == torch.float32:
        scale = scale ** (1 / 9)
    subject = saturated_rnn(0.0, dtype=dtype)  # at h = 0 all slopes are 1
    with torch.no_grad():
        dict(subject.module.named_parameters())["weight_hh"].mul_(scale)
    found = measure(subject, at=[1, 2, 6], method="krylov")
    expected = torch.tensor([1.0, 2.0, 6.0]).double() * math.log(scale)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    cases.assert_same_log_norm(found.log_norm[:, 0], expected, tolerance=tolerance)


def test_a_direction_that_overtakes_the_leading_one_is_seen() -> None:
    """Each unit of a GRU without recurrent weights is a singular vector at every T.

    Which of them leads changes from T to T: what led before is no proof of what leads now.
    """
    torch.manual_seed(7)
    cell = GRU(1, 100, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.zero_()
        cell.weight_ih.normal_()
    x, at = torch.randn(12, 3, 1, dtype=torch.float64), list(range(1, 13))
    exact = jacobian_norms(cell, x, cell.initial_state(3), at=at, method="diagonal").log_norm
    found = jacobian_norms(cell, x, cell.initial_state(3), at=at, method="krylov")
    assert found.converged is not None
    assert found.converged.float().mean() > 0.5
    cases.assert_same_log_norm(
        found.log_norm[found.converged], exact[found.converged], tolerance=1e-6
    )
    assert (found.log_norm <= exact + 1e-12).all()


@pytest.mark.parametrize("hidden_size", [5, 40])
def test_rows_of_a_batch_are_estimated_as_they_would_be_alone(hidden_size: int) -> None:
    """One GRU row is held open (J = I), one sees no number from step 3 on, one is ordinary.

    The first is known after one push, the second never, and the third takes its time.
    """
    torch.manual_seed(3)
    cell = GRU(1, hidden_size, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.fill_(1.0)
        cell.weight_hh.normal_(std=0.3)
    x = torch.randn(5, 3, 1, dtype=torch.float64)
    x[:, 0], x[2:, 1] = 1e4, torch.nan
    state = (torch.randn(3, hidden_size, dtype=torch.float64),)
    found = jacobian_norms(cell, x, state, method="krylov")
    for row in range(3):
        alone = jacobian_norms(
            cell, x[:, row : row + 1], (state[0][row : row + 1],), method="dense"
        ).log_norm[:, 0]
        lost = alone.isnan()
        assert torch.equal(found.log_norm[:, row].isnan(), lost)
        cases.assert_same_log_norm(found.log_norm[~lost, row], alone[~lost], tolerance=1e-6)


def test_a_basis_stays_orthonormal_when_nothing_new_comes() -> None:
    """Blocks among the old vectors, or of zeros, add random directions with coefficients of 0."""
    basis = OrthonormalBasis(torch.eye(12, 3, dtype=torch.float64).unsqueeze(0))
    for block in (basis.newest.clone(), torch.zeros(1, 12, 3, dtype=torch.float64)):
        coefficients = basis.extend(block)
        assert coefficients[:, -3:].abs().max() < 1e-15
        found = basis.newest
        torch.testing.assert_close(
            found.mT @ found, torch.eye(3).double()[None], rtol=0, atol=1e-14
        )
        assert found[:, :3].abs().max() < 1e-14  # beside the first three axes


def test_an_estimate_is_the_same_every_time() -> None:
    """Its random vectors come from a fixed seed, not from torch's own generator."""
    subject = cases.random_subject("lstm", SETUP)
    first = measure(subject, at=AT, method="krylov").log_norm
    torch.manual_seed(123)
    assert torch.equal(measure(subject, at=AT, method="krylov").log_norm, first)


def test_the_exact_ways_have_no_interval() -> None:
    """Only an estimate has an upper end; the other methods are exact."""
    for method in ("auto", "dense", "generic"):
        norms = measure(cases.random_subject("gru"), method=method)
        assert norms.log_norm_upper is norms.converged is None


def test_what_vectors_cannot_measure_is_refused() -> None:
    """The Frobenius norm needs every column; a cell without a closed form has no pull."""
    subject = cases.random_subject("rnn")
    unchecked = inspect.unwrap(jacobian_norms)
    cell = cell_of(subject.module)
    with pytest.raises(UnknownNameError, match="spectral norm alone"):
        unchecked(cell, subject.inputs, subject.state, norm="frobenius", method="krylov")
    bare = NoFormula(3, 5, dtype=torch.float64)
    with pytest.raises(UnknownNameError, match="gives its own derivative"):
        unchecked(bare, subject.inputs, subject.state, method="krylov")
