"""The autograd twin against the chain rule, differences, torch's fused layers and known decay."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests import cases
from tests.reference import autograd_jacobian
from tests.reference.subject import Subject


@cases.each_kind
def test_the_unroll_obeys_the_chain_rule(kind: str) -> None:
    """ds_T/ds_0 of one unroll is the product of the step Jacobians, newest on the left."""
    subject = cases.random_subject(kind)
    product = torch.eye(subject.state_size, dtype=torch.float64)
    unrolled = autograd_jacobian.jacobians(subject)
    for whole, step in zip(unrolled, autograd_jacobian.step_jacobians(subject), strict=True):
        product = step @ product
        assert torch.allclose(whole, product, rtol=1e-13, atol=1e-15)


@cases.each_kind
def test_central_differences_of_the_unroll_agree(kind: str) -> None:
    """Nudging one unit of s_0 moves s_T by that column of the Jacobian."""
    subject = cases.random_subject(kind, cases.Setup(hidden_size=3, steps=4))
    start = torch.cat(subject.state, dim=1)
    found = autograd_jacobian.jacobians(subject)[-1]
    for column in range(subject.state_size):
        nudge = torch.zeros_like(start)
        nudge[:, column] = 1e-6
        difference = _end(subject, start + nudge) - _end(subject, start - nudge)
        # The error is of order (1e-6)^2 from the difference and 1e-16 / 1e-6 from rounding.
        assert torch.allclose(difference / 2e-6, found[:, :, column], rtol=0, atol=1e-8)


def _end(subject: Subject, joint: Tensor) -> Tensor:
    with torch.no_grad():
        for x in subject.inputs:
            joint = subject.advance_joint(x, joint)
    return joint


@pytest.mark.parametrize(("kind", "layer"), [("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN)])
def test_the_trajectory_is_that_of_torchs_fused_layer(
    kind: str, layer: Callable[..., nn.RNNBase]
) -> None:
    """Unrolling the cell gives what torch's own layer gives on the same weights."""
    subject = cases.random_subject(kind)
    fused = layer(3, 5, dtype=torch.float64)
    fused.load_state_dict({f"{name}_l0": value for name, value in subject.weights.items()})
    start = tuple(part[None] for part in subject.state)
    outputs, _ = fused(subject.inputs, start if kind == "lstm" else start[0])
    hidden = torch.stack([state[0] for state in autograd_jacobian.trajectory(subject)])
    assert torch.allclose(hidden, outputs, rtol=1e-14, atol=1e-15)


@cases.each_kind
def test_a_row_does_not_feel_its_neighbours(kind: str) -> None:
    """The Jacobian of one row is the same alone and in a batch, and rows differ."""
    subject = cases.random_subject(kind)
    together = autograd_jacobian.jacobians(subject)
    for row in range(subject.batch):
        alone = autograd_jacobian.jacobians(subject.row(row))
        assert torch.allclose(together[:, row : row + 1], alone, rtol=1e-13, atol=1e-15)
    assert not torch.allclose(together[:, 0], together[:, 1])


@cases.each_kind
@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_log_norms_are_the_logarithms_of_the_norms(kind: str, norm: str) -> None:
    """Where nothing underflows, the scaled product and the plain one have one norm."""
    subject = cases.random_subject(kind)
    plain = autograd_jacobian.matrix_norm(autograd_jacobian.jacobians(subject), norm).log()
    cases.assert_same_log_norm(autograd_jacobian.log_norms(subject, norm=norm), plain)


def test_the_joint_state_is_h_then_c() -> None:
    """In one LSTM step dc_1/dc_0 is diagonal (the forget gate) and dh_1/dh_0 is not."""
    subject = cases.random_subject("lstm").first(1)
    (cell_block,) = autograd_jacobian.jacobians(subject, block=("c", "c"))
    (hidden_block,) = autograd_jacobian.jacobians(subject, block=("h", "h"))
    assert torch.equal(cell_block, torch.diag_embed(cell_block.diagonal(dim1=1, dim2=2)))
    assert (
        (cell_block.diagonal(dim1=1, dim2=2) > 0) & (cell_block.diagonal(dim1=1, dim2=2) < 1)
    ).all()
    assert (hidden_block != 0).all()
    joint = autograd_jacobian.jacobians(subject)[0]
    assert torch.equal(joint[:, 5:, 5:], cell_block)


def test_two_thousand_steps_of_a_tenth_are_minus_two_thousand_decades() -> None:
    """The log norm goes on where 0.1^T itself became zero at T = 324."""
    subject = cases.held_lstm(0.1, cases.Setup(hidden_size=2, batch=1, steps=2000))
    found = autograd_jacobian.log_norms(subject, block=("c", "c"))[-1]
    cases.assert_same_log_norm(found / math.log(10), [-2000.0], tolerance=1e-11)
    assert autograd_jacobian.jacobians(subject.first(330), block=("c", "c"))[-1].abs().max() == 0


def test_a_path_that_is_cut_reads_minus_infinity() -> None:
    """A held LSTM with a dead candidate does not carry h_0 anywhere, not even into h_1."""
    subject = cases.held_lstm(0.9)
    for block in (("h", "h"), ("c", "h")):
        assert torch.isneginf(autograd_jacobian.log_norms(subject, block=block)).all()
