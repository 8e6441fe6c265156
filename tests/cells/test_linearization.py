"""Closed-form derivatives of a step: forwards, backwards and dense, against autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradflow.cells import GRU, LSTM, RNN, Cell, Linearization, stack_cells
from tests.cases import Setup, each_kind, held_gru, held_lstm, random_subject
from tests.engine.measuring import cell_of
from tests.reference.autograd_jacobian import step_jacobians, trajectory
from tests.reference.subject import Subject

# Some 20 terms of order 1 per entry, summed in another order: a few units of float64's 1e-16.
ROUNDING = {"rtol": 1e-12, "atol": 1e-14}


def linearize(cell: Cell, subject: Subject) -> Linearization:
    """Return the cell's closed form along the subject's own trajectory."""
    before = [subject.state, *trajectory(subject)[:-1]]
    states = tuple(torch.stack(parts) for parts in zip(*before, strict=True))
    with torch.no_grad():
        found = cell.linearize(cell.drive(subject.inputs), states)
    assert found is not None
    return found


def block(steps: Tensor, columns: int, *, seed: int = 3) -> Tensor:
    """Return a random block of tangents that fits these Jacobians, (batch, state, columns)."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(*steps.shape[1:3], columns, generator=generator, dtype=torch.float64)
    return drawn.to(steps)


def assert_is_jacobian(own: Linearization, expected: Tensor, **tolerance: float) -> None:
    """Assert that push, pull and dense of every step are products with these matrices."""
    assert own.steps == len(expected)
    for t, matrix in enumerate(expected):
        torch.testing.assert_close(own.dense(t), matrix, **tolerance)
        # few and many columns go different ways
        for columns in (1, 3, 12):
            tangent = block(expected, columns, seed=t)
            torch.testing.assert_close(own.push(t, tangent), matrix @ tangent, **tolerance)
            torch.testing.assert_close(own.pull(t, tangent), matrix.mT @ tangent, **tolerance)


@each_kind
@pytest.mark.parametrize("start", ["random", "zero"])
def test_every_step_jacobian_is_autograds(kind: str, start: str) -> None:
    """For three different rows along six steps, with both biases at work."""
    subject = random_subject(kind, Setup(start=start, seed=2))
    own = linearize(cell_of(subject.module), subject)
    assert_is_jacobian(own, step_jacobians(subject), **ROUNDING)


@each_kind
def test_pull_is_the_transpose_of_push(kind: str) -> None:
    """<w, J v> equals <J^T w, v> for any v and w."""
    subject = random_subject(kind, Setup(seed=4))
    own = linearize(cell_of(subject.module), subject)
    jacobians = step_jacobians(subject)
    v, w = block(jacobians, 2, seed=1), block(jacobians, 2, seed=2)
    forwards = (w * own.push(3, v)).sum()
    backwards = (own.pull(3, w) * v).sum()
    torch.testing.assert_close(forwards, backwards, **ROUNDING)


@each_kind
def test_push_writes_where_it_is_told_to(kind: str) -> None:
    """push(..., out=buffer) fills and returns the buffer, for few columns and for many."""
    subject = random_subject(kind)
    own = linearize(cell_of(subject.module), subject)
    jacobians = step_jacobians(subject)
    for columns in (2, 16):
        tangent = block(jacobians, columns)
        buffer = torch.full_like(tangent, float("nan"))
        assert own.push(1, tangent, out=buffer) is buffer
        torch.testing.assert_close(buffer, jacobians[1] @ tangent, **ROUNDING)


@each_kind
def test_a_cell_without_bias_has_its_own_jacobian(kind: str) -> None:
    """Zero biases and no biases are the same step, so they have the same derivative."""
    subject = random_subject(kind)
    with torch.no_grad():
        for name, parameter in subject.module.named_parameters():
            if name.startswith("bias"):
                parameter.zero_()
    whole = cell_of(subject.module)
    bare = _without_bias(whole)
    assert_is_jacobian(linearize(bare, subject), step_jacobians(subject), **ROUNDING)


def _without_bias(cell: Cell) -> Cell:
    sizes = (cell.input_size, cell.hidden_size)
    options = {"bias": False, "dtype": cell.dtype}
    if isinstance(cell, LSTM):
        bare: Cell = LSTM(*sizes, **options)
    elif isinstance(cell, GRU):
        bare = GRU(*sizes, reset=cell.reset, **options)
    else:
        assert isinstance(cell, RNN)
        bare = RNN(*sizes, nonlinearity=cell.nonlinearity, **options)
    bare.load_state_dict({name: cell.get_parameter(name) for name in ("weight_ih", "weight_hh")})
    return bare


@each_kind
def test_an_ensemble_gives_each_row_its_own_members_jacobian(kind: str) -> None:
    """Row b of an ensemble's Jacobians is that of cell b alone."""
    subjects = [random_subject(kind, Setup(seed=seed, batch=1)) for seed in range(3)]
    ensemble = stack_cells([cell_of(subject.module) for subject in subjects])
    before = [[subject.state, *trajectory(subject)[:-1]] for subject in subjects]
    states = tuple(
        torch.stack([torch.cat([row[t][part] for row in before]) for t in range(6)])
        for part in range(len(subjects[0].state))
    )
    inputs = torch.cat([subject.inputs for subject in subjects], dim=1)
    with torch.no_grad():
        own = ensemble.linearize(ensemble.drive(inputs), states)
    expected = torch.cat([step_jacobians(subject) for subject in subjects], dim=1)
    assert_is_jacobian(own, expected, **ROUNDING)


@each_kind
def test_in_float32_the_derivative_is_float32s(kind: str) -> None:
    """The closed form computes in the cell's dtype, to that dtype's rounding."""
    subject = random_subject(kind, Setup(dtype=torch.float32))
    own = linearize(cell_of(subject.module), subject)
    expected = step_jacobians(subject)
    assert own.dense(0).dtype == torch.float32
    # 5e-6 is some 40 units of float32's 1.2e-7, for sums of about 20 terms
    assert_is_jacobian(own, expected, rtol=5e-6, atol=5e-6)


@pytest.mark.parametrize("bias", [15.0, -15.0, 30.0, -30.0])
@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before", "rnn"])
def test_a_saturated_slope_keeps_all_its_digits(kind: str, bias: float) -> None:
    """At |a| = 15 and 30 a slope of 3e-7 or 1e-13 agrees with one computed at twice the digits.

    The usual s (1 - s) and 1 - t^2 have lost 7 or all of their digits there, autograd's included,
    so the twin is the difference quotient of the step at 50 digits (exact to far more than 1e-10).
    """
    subject = random_subject(kind, Setup(hidden_size=2, batch=1, steps=1, start="zero"))
    with torch.no_grad():
        subject.module.bias_ih.fill_(bias)
        subject.module.bias_hh.zero_()
    own = linearize(cell_of(subject.module), subject).dense(0)[0]
    expected = _exact_jacobian(kind, subject)
    torch.testing.assert_close(own, expected, rtol=1e-11, atol=0)


def _exact_jacobian(kind: str, subject: Subject) -> Tensor:
    from tests.reference import mpmath_twin  # noqa: PLC0415  # slow to import, used here alone

    assert kind in ("lstm", "gru", "gru-before", "rnn")
    return mpmath_twin.jacobians(subject)[0, 0]


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before", "rnn", "rnn-relu"])
def test_a_dead_unit_has_zero_derivatives_not_nan(kind: str) -> None:
    """At pre-activations of 1e4 every slope underflows: all entries are finite."""
    subject = random_subject(kind, Setup(batch=2, steps=2))
    with torch.no_grad():
        subject.module.bias_ih.fill_(-1e4)
    own = linearize(cell_of(subject.module), subject)
    for t in range(2):
        assert torch.isfinite(own.dense(t)).all()


def test_keep_is_the_gate_as_realised() -> None:
    """`keep` is f of the LSTM and z of the GRU at each state; a plain RNN has none."""
    for subject, value in ((held_lstm(0.9), 0.9), (held_gru(0.3), 0.3)):
        keep = linearize(cell_of(subject.module), subject).keep
        assert keep is not None
        torch.testing.assert_close(keep, torch.full_like(keep, value), rtol=1e-15, atol=0)
    subject = random_subject("rnn")
    assert linearize(cell_of(subject.module), subject).keep is None


def test_units_that_do_not_see_each_other_are_told_as_a_diagonal() -> None:
    """With recurrent weights of zero dc'/dc is f, and dh'/dc is o sech^2(c') f."""
    subject = held_lstm(0.8)
    own = linearize(cell_of(subject.module), subject)
    diagonal = own.diagonal()
    assert diagonal is not None
    expected = step_jacobians(subject)
    h = slice(0, subject.hidden_size)
    c = slice(subject.hidden_size, None)
    for t in range(subject.steps):
        torch.testing.assert_close(
            torch.diag_embed(diagonal.keep[t]), expected[t][:, c, c], **ROUNDING
        )
        through = diagonal.readout["h"][t] * diagonal.keep[t]
        torch.testing.assert_close(torch.diag_embed(through), expected[t][:, h, c], **ROUNDING)


@each_kind
def test_units_that_do_see_each_other_are_no_diagonal(kind: str) -> None:
    """One non-zero recurrent weight is enough."""
    subject = random_subject(kind)
    assert linearize(cell_of(subject.module), subject).diagonal() is None
