"""Cells without a closed form, differentiated by torch.func or, failing that, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gradflow.cells import GRU, LSTM, RNN, Step
from gradflow.engine import jacobian_norms
from gradflow.engine.generic import GenericLinearization, linearize, step_jacobians
from gradflow.engine.trajectory import run_in_chunks
from tests import cases
from tests.engine.measuring import EVERY_BLOCK, cell_of, measure
from tests.reference import autograd_jacobian


class NoFormula(RNN):
    """A tanh RNN that does not know its own derivative."""

    def linearize(self, *_: Any, **__: Any) -> Any:
        """Return nothing, as a user's cell does."""


class Branching(NoFormula):
    """A cell that looks at each row's numbers and takes another way where they are negative."""

    def compute(self, drive: Tensor, state: tuple[Tensor, ...]) -> Step:
        """Step row by row: tanh(W h + a), and half of it where the first entry of h is negative."""
        rows = []
        for a, h in zip(drive, state[0], strict=True):
            new = torch.tanh(a + self.weight_hh @ h + self.bias_hh)
            rows.append(0.5 * new if h[0].item() < 0 else new)
        return Step(parts=self.parts, state=(torch.stack(rows),), gates={}, candidate=None)


class WritingInPlace(NoFormula):
    """A cell that fills a buffer of its own, which torch.vmap refuses."""

    def compute(self, drive: Tensor, state: tuple[Tensor, ...]) -> Step:
        """Step by writing into a tensor of zeros."""
        new = torch.zeros_like(self.weight_hh[0]).repeat(len(drive), 1)
        new += torch.tanh(drive + state[0] @ self.weight_hh.mT + self.bias_hh)
        return Step(parts=self.parts, state=(new,), gates={}, candidate=None)


class Forgetful(NoFormula):
    """A cell that detaches its state, as some training loops do by mistake."""

    def compute(self, drive: Tensor, state: tuple[Tensor, ...]) -> Step:
        """Step from a state that gradients do not pass."""
        return super().compute(drive, (state[0].detach(),))


class ForgetfulByBranch(Branching):
    """A detaching cell that torch.vmap cannot take either."""

    def compute(self, drive: Tensor, state: tuple[Tensor, ...]) -> Step:
        """Step from a state that gradients do not pass."""
        return super().compute(drive, (state[0].detach(),))


def _like_torch(form: type[RNN], *, steps: int = 12) -> tuple[RNN, autograd_jacobian.Subject]:
    subject = cases.random_subject("rnn", cases.Setup(steps=steps))
    cell = form(3, 5, dtype=torch.float64)
    cell.load_state_dict(subject.module.state_dict())
    return cell, subject


@pytest.mark.parametrize(("kind", "block"), EVERY_BLOCK)
@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_the_generic_way_is_the_closed_form(
    kind: str, block: str | tuple[str, str], norm: str
) -> None:
    """Step Jacobians by torch.func and by formula give one product, in every block."""
    subject = cases.random_subject(kind, cases.Setup(steps=25))
    own = measure(subject, block=block, norm=norm)
    generic = measure(subject, block=block, norm=norm, method="generic")
    assert (own.method, generic.method) == ("dense", "generic")
    cases.assert_same_log_norm(generic.log_norm, own.log_norm)
    if own.direct_log_norm is not None:
        cases.assert_same_log_norm(generic.direct_log_norm, own.direct_log_norm)


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before", "rnn", "rnn-relu"])
def test_step_jacobians_are_autograds(kind: str) -> None:
    """Every J_t of every row is what autograd gives for that one step."""
    subject = cases.random_subject(kind)
    cell = cell_of(subject.module)
    (chunk,) = run_in_chunks(cell, subject.inputs, subject.state, subject.steps)
    with torch.no_grad():
        found = step_jacobians(cell, chunk.drive, chunk.states)
    expected = autograd_jacobian.step_jacobians(subject)
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("form", [NoFormula, WritingInPlace])
def test_a_cell_without_a_formula_takes_the_generic_way_by_itself(form: type[RNN]) -> None:
    """Method "auto" takes torch.func, and where torch.vmap refuses, plain autograd."""
    cell, subject = _like_torch(form)
    norms = jacobian_norms(cell, subject.inputs, subject.state)
    assert norms.method == "generic"
    cases.assert_same_log_norm(norms.log_norm, autograd_jacobian.log_norms(subject))


def test_a_cell_that_branches_on_values_is_followed_on_its_branch() -> None:
    """Rows take different branches at different steps, and each Jacobian is its own branch's."""
    cell, subject = _like_torch(Branching)
    norms = jacobian_norms(cell, subject.inputs, subject.state)
    (chunk,) = run_in_chunks(cell, subject.inputs, subject.state, subject.steps)
    taken = chunk.states[0][..., 0] < 0
    assert taken.any()
    assert not taken.all()
    twin = autograd_jacobian.Subject(cell, subject.inputs, subject.state)
    cases.assert_same_log_norm(norms.log_norm, autograd_jacobian.log_norms(twin))


@pytest.mark.parametrize("form", [Forgetful, ForgetfulByBranch])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_detached_state_is_an_exact_zero(form: type[RNN], frozen: bool) -> None:
    """A cell that detaches its state carries nothing: zero from step 1, and no crash."""
    cell, subject = _like_torch(form)
    cell.requires_grad_(not frozen)
    norms = jacobian_norms(cell, subject.inputs, subject.state)
    assert norms.first_zero_step == (1, 1, 1)
    assert norms.zero_reason == ("exact",) * 3


def test_the_generic_linearization_pushes_and_pulls_its_own_matrix() -> None:
    """push is J v, pull is J^T w, dense is J, for a block of columns."""
    cell, subject = _like_torch(NoFormula)
    (chunk,) = run_in_chunks(cell, subject.inputs, subject.state, subject.steps)
    steps = linearize(cell, chunk.drive, chunk.states)
    assert isinstance(steps, GenericLinearization)
    assert steps.keep is None
    assert steps.diagonal() is None
    block = torch.randn(3, 5, 2, dtype=torch.float64)
    for t in (0, 11):
        matrix = steps.dense(t)
        assert torch.allclose(steps.push(t, block), matrix @ block, rtol=1e-14, atol=0)
        assert torch.allclose(steps.pull(t, block), matrix.mT @ block, rtol=1e-14, atol=0)
    closed = linearize(cell_of(subject.module), chunk.drive, chunk.states)
    assert torch.allclose(closed.dense(3), steps.dense(3), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("steps", [1, 700])
def test_long_generic_runs_are_cut_into_chunks(steps: int) -> None:
    """More steps than one chunk holds change nothing."""
    setup = cases.Setup(hidden_size=3, batch=2, steps=steps)
    subject = cases.random_subject("lstm", setup, weight_scale=0.5)
    own, generic = (measure(subject, method=method) for method in ("dense", "generic"))
    cases.assert_same_log_norm(generic.log_norm, own.log_norm)
    assert own.keep_min is not None
    assert generic.keep_min is not None
    assert torch.allclose(own.keep_min, generic.keep_min, rtol=1e-14)


@pytest.mark.parametrize("cell", [LSTM(2, 3), GRU(2, 3), GRU(2, 3, reset="before"), RNN(2, 3)])
def test_float32_cells_are_measured_in_float32(cell: LSTM | GRU | RNN) -> None:
    """The generic way follows the cell's own dtype; only the logarithms are float64."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(20, 2, 2, generator=generator)
    state = tuple(torch.randn(2, 3, generator=generator) for _ in cell.parts)
    own, generic = (jacobian_norms(cell, x, state, method=m) for m in ("dense", "generic"))
    assert own.log_norm.dtype == generic.log_norm.dtype == torch.float64
    # 20 products in float32: a few hundred units of its round-off
    cases.assert_same_log_norm(generic.log_norm, own.log_norm, tolerance=1e-4)


@pytest.mark.parametrize(
    ("form", "weight", "method"),
    [
        *[(RNN, 0.5, method) for method in ("dense", "generic", "krylov")],
        *[(RNN, 0.0, method) for method in ("dense", "generic", "krylov", "diagonal")],
        *[(form, 0.5, "auto") for form in (NoFormula, WritingInPlace)],
    ],
)
def test_what_is_no_number_has_no_derivative(form: type[RNN], weight: float, method: str) -> None:
    """From the step on that reads a nan, each way gives nan: relu's slope there is not 0 or 1."""
    cell = form(1, 3, nonlinearity="relu", dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.fill_(weight)
        cell.weight_ih.fill_(1.0)
    x = torch.ones(3, 2, 1, dtype=torch.float64)
    x[1, 0] = torch.nan
    found = jacobian_norms(cell, x, cell.initial_state(2), method=method).log_norm
    assert found.isnan().tolist() == [[False, False], [True, False], [True, False]]
