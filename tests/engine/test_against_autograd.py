"""The engine against torch.autograd on torch's own cells, and against fifty digits."""

from __future__ import annotations

import pytest
import torch

from gradflow.cells import stack_cells
from gradflow.engine import jacobian_norms
from tests import cases
from tests.engine.measuring import EVERY_BLOCK, PARTS, cell_of, measure
from tests.reference import autograd_jacobian, direct_path, mpmath_twin

each_norm = pytest.mark.parametrize("norm", ["spectral", "frobenius"])
each_block = pytest.mark.parametrize(("kind", "block"), EVERY_BLOCK)
THIRTY = cases.Setup(steps=30)


@each_block
@each_norm
@pytest.mark.parametrize("weight_scale", [0.7, 2.0])
def test_every_block_is_what_autograd_says(
    kind: str, block: str | tuple[str, str], norm: str, weight_scale: float
) -> None:
    """Random biases and states, three different rows: equal to 1e-10 at each of 30 steps."""
    subject = cases.random_subject(kind, THIRTY, weight_scale=weight_scale)
    jacobians = autograd_jacobian.jacobians(subject, block=block)
    expected = autograd_jacobian.matrix_norm(jacobians, norm)
    found = measure(subject, block=block, norm=norm).log_norm.exp()
    assert (found / expected - 1).abs().max() <= 1e-10
    assert abs(found[-1, 0] / found[-1, 1] - 1) > 1e-3  # three rows, three norms


@cases.each_kind
@each_norm
def test_a_thousand_steps_lose_no_digit(kind: str, norm: str) -> None:
    """Where the states forget, the log norm at T = 1000 is that of 50 digits."""
    setup = cases.Setup(hidden_size=3, batch=1, steps=1000)
    subject = cases.random_subject(kind, setup, weight_scale=0.5)
    found = measure(subject, block="joint", norm=norm, at=[1, 10, 1000]).log_norm
    expected = mpmath_twin.log_norms(subject, norm=norm, at=[1, 10, 1000])
    assert expected[-1, 0] < -200
    cases.assert_same_log_norm(found, expected)


@cases.each_kind
def test_an_ensemble_is_its_members(kind: str) -> None:
    """Three cells stacked into one run give what each gives by itself, by every method."""
    subjects = [cases.random_subject(kind, cases.Setup(seed=seed, steps=20)) for seed in range(3)]
    members = [cell_of(subject.module) for subject in subjects]
    cell = stack_cells(members)
    x, state = subjects[0].inputs, subjects[0].state
    for method in ("dense", "generic"):
        together = jacobian_norms(cell, x, state, method=method)
        for row, member in enumerate(members):
            rows = tuple(part[row : row + 1] for part in state)
            alone = jacobian_norms(member, x[:, row : row + 1], rows)
            cases.assert_same_log_norm(together.log_norm[:, row], alone.log_norm[:, 0])
            _assert_same_keep_gates(together, alone, row)


def _assert_same_keep_gates(together: object, alone: object, row: int) -> None:
    for name in ("direct_log_norm", "keep_min", "keep_max"):
        whole, single = getattr(together, name), getattr(alone, name)
        assert (whole is None) == (single is None)
        if whole is not None:
            assert torch.allclose(whole[..., row], single[..., 0], rtol=1e-13, atol=0)


def test_an_ensemble_of_held_cells_takes_the_diagonal_way() -> None:
    """Stacked held cells keep f^T each: rows do not mix their gates."""
    subjects = [cases.held_lstm(gate, cases.Setup(steps=20)) for gate in (0.1, 0.5, 0.9)]
    cell = stack_cells([cell_of(subject.module) for subject in subjects])
    norms = jacobian_norms(cell, subjects[0].inputs, subjects[0].state)
    assert norms.method == "diagonal"
    for row, subject in enumerate(subjects):
        expected = autograd_jacobian.log_norms(subject, block=("c", "c"))[:, row]
        cases.assert_same_log_norm(norms.log_norm[:, row], expected)


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before"])
@each_norm
def test_the_direct_path_is_the_product_of_realised_keep_gates(kind: str, norm: str) -> None:
    """With random weights each step has its own gates; their product is measured, not assumed."""
    subject = cases.random_subject(kind, THIRTY)
    norms = measure(subject, norm=norm)
    gates = direct_path.keep_gates(subject)
    found = norms.direct_log_norm
    cases.assert_same_log_norm(found, direct_path.direct_log_norms(subject, norm=norm))
    assert norms.keep_min is not None
    assert norms.keep_max is not None
    assert torch.allclose(norms.keep_min, gates.amin(dim=(0, 2)), rtol=1e-14)
    assert torch.allclose(norms.keep_max, gates.amax(dim=(0, 2)), rtol=1e-14)


def test_the_range_of_the_keep_gate_is_that_of_the_whole_run() -> None:
    """An input that shuts the gate at step 3 and opens it at step 5 is seen at step 1100."""
    setup = cases.Setup(hidden_size=2, batch=1, steps=1100)
    subject = cases.random_subject("lstm", setup)
    subject.inputs[2:5:2] *= 20 * torch.tensor([[[1.0]], [[-1.0]]])
    gates = direct_path.keep_gates(subject)
    norms = measure(subject, at=[1100])
    assert norms.keep_min is not None
    assert norms.keep_max is not None
    assert norms.keep_min.item() == pytest.approx(gates.min().item(), rel=1e-12)
    assert norms.keep_max.item() == pytest.approx(gates.max().item(), rel=1e-12)
    assert gates[600:].min() > gates.min()
    assert gates[600:].max() < gates.max()


def test_the_direct_path_carries_nothing_across_blocks() -> None:
    """The forget gates lead from c to c alone: to h, or from h, the direct path is zero."""
    subject = cases.random_subject("lstm")
    for block in (("h", "c"), ("c", "h"), ("h", "h")):
        direct = measure(subject, block=block).direct_log_norm
        assert direct is not None
        assert torch.isneginf(direct).all()
    joint, own = (measure(subject, block=block).direct_log_norm for block in ("joint", ("c", "c")))
    assert joint is not None
    assert torch.equal(joint, own)


@pytest.mark.parametrize("kind", ["rnn", "rnn-relu"])
def test_a_plain_rnn_has_no_direct_path(kind: str) -> None:
    """Without a keep gate there is no product of keep gates, not even a zero one."""
    norms = measure(cases.random_subject(kind))
    assert norms.direct_log_norm is norms.keep_min is norms.keep_max is None


@pytest.mark.parametrize("kind", PARTS)
def test_the_state_at_the_end_is_torchs(kind: str) -> None:
    """Beside the norms the run returns s_T, the state that torch's cell reaches."""
    subject = cases.random_subject(kind, THIRTY)
    expected = autograd_jacobian.trajectory(subject)[-1]
    for ours, theirs in zip(measure(subject).final_state, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-13)
