"""How a step's input enters it: the derivative by which a stack of layers is pulled down."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradflow.cells import Linearization
from tests.cases import Setup, each_kind, random_subject
from tests.engine.measuring import cell_of
from tests.reference.autograd_jacobian import trajectory
from tests.reference.subject import Subject


def input_jacobians(subject: Subject) -> Tensor:
    """Return ds_t/dx_t along the subject's run by autograd, (time, batch, state, input)."""
    found = []
    for x, state in zip(subject.inputs, [subject.state, *trajectory(subject)], strict=False):
        leaf = x.clone().requires_grad_()
        new = torch.cat(subject.advance(leaf, state), dim=1)
        rows = [torch.autograd.grad(unit.sum(), leaf, retain_graph=True)[0] for unit in new.T]
        found.append(torch.stack(rows, dim=1))
    return torch.stack(found)


@each_kind
def test_the_input_is_reached_through_the_drive(kind: str) -> None:
    """W_ih^T times what reaches the pre-activations is (ds_t/dx_t)^T, by autograd on torch."""
    subject = random_subject(kind, Setup(input_size=4, steps=3, seed=6))
    cell = cell_of(subject.module)
    before = [subject.state, *trajectory(subject)[:-1]]
    states = tuple(torch.stack(parts) for parts in zip(*before, strict=True))
    with torch.no_grad():
        own = cell.linearize(cell.drive(subject.inputs), states)
    assert own is not None
    units = torch.eye(subject.state_size, dtype=torch.float64).repeat(subject.batch, 1, 1)
    for t, expected in enumerate(input_jacobians(subject)):
        found = torch.matmul(cell.weight_ih.mT.detach(), own.pull_drive(t, units))
        # a handful of terms of order 1
        torch.testing.assert_close(found.mT, expected, rtol=1e-12, atol=1e-14)


def test_a_linearization_that_does_not_know_says_so() -> None:
    """A derivative of a user's own need not tell how the input enters."""

    class Still(Linearization):
        steps = 1

        def push(self, t, tangent, out=None):
            return tangent

        def pull(self, t, cotangent):
            return cotangent

        def dense(self, t):
            return torch.eye(1).expand(1, 1, 1)

    with pytest.raises(NotImplementedError, match="Still does not tell how its input enters"):
        Still().pull_drive(0, torch.ones(1, 1, 1))
