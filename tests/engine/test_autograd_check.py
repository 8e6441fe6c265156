"""The built-in check by plain autograd: what it reads, where it can read, and its own twin."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gradflow.cells import GRU, LSTM, RNN, Cell
from gradflow.engine.autograd_check import (
    autograd_log_norms,
    independent_twin,
    readable_steps,
    rows_by_copies,
)
from gradflow.engine.blocks import locate_block
from tests import cases
from tests.engine.measuring import EVERY_BLOCK, cell_of
from tests.engine.test_generic import Branching, Forgetful
from tests.reference import autograd_jacobian


@pytest.mark.parametrize(("kind", "block"), EVERY_BLOCK)
@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_the_check_reads_what_the_twin_reads(
    kind: str, block: str | tuple[str, str], norm: str
) -> None:
    """Unrolled autograd on torch's module gives the norms at the steps asked for."""
    subject = cases.random_subject(kind, cases.Setup(batch=1, steps=9))
    found = autograd_log_norms(
        subject.module,
        subject.inputs,
        subject.state,
        parts=subject.parts,
        block=block,
        norm=norm,
        steps=[1, 4, 9],
    )
    expected = autograd_jacobian.log_norms(subject, block=block, norm=norm)[[0, 3, 8], 0]
    cases.assert_same_log_norm(found, expected)


def test_it_works_where_gradients_are_switched_off() -> None:
    """A caller's torch.no_grad does not turn the check into zeros."""
    subject = cases.random_subject("gru", cases.Setup(batch=1))
    options = {"parts": ("h",), "block": "joint", "norm": "spectral", "steps": [1, 6]}
    with torch.no_grad():
        off = autograd_log_norms(subject.module, subject.inputs, subject.state, **options)
    on = autograd_log_norms(subject.module, subject.inputs, subject.state, **options)
    assert torch.equal(on, off)
    assert torch.isfinite(on).all()


@pytest.mark.parametrize("frozen", [False, True])
def test_a_cell_that_detaches_its_state_reads_zero(frozen: bool) -> None:
    """Where no path exists the check says -inf, whether or not the weights want gradients."""
    cell = Forgetful(3, 5, dtype=torch.float64).requires_grad_(not frozen)
    x, state = torch.zeros(3, 1, 3).double(), cell.initial_state(1)
    options = {"parts": ("h",), "block": "joint", "norm": "spectral", "steps": [1, 3]}
    assert torch.isneginf(autograd_log_norms(cell, x, state, **options)).all()


def test_copies_give_the_rows_of_a_jacobian() -> None:
    """Copy j is asked for entry j: together they are d(x^2)/dx = diag(2 x)."""
    copies = torch.tensor([1.0, 2.0, 3.0]).expand(3, 3).clone().requires_grad_()
    found = rows_by_copies(copies**2, copies)
    assert torch.equal(found, torch.diag(torch.tensor([2.0, 4.0, 6.0])))
    assert torch.equal(rows_by_copies(torch.ones(3, 3), copies), torch.zeros(3, 3))


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (LSTM(2, 3), "torch.nn.LSTMCell"),
        (GRU(2, 3), "torch.nn.GRUCell"),
        (RNN(2, 3, nonlinearity="relu"), "torch.nn.RNNCell"),
    ],
)
def test_torchs_own_cell_is_the_twin_of_a_built_in_one(cell: Cell, name: str) -> None:
    """The check differentiates code that is not ours, with the same weights."""
    module, subject = independent_twin(cell)
    assert subject == name
    assert f"torch.nn.{type(module).__name__}" == name
    for key, tensor in cell.state_dict().items():
        assert torch.equal(module.state_dict()[key], tensor)
    if isinstance(cell, RNN):
        assert isinstance(module, nn.RNNCell)
        assert module.nonlinearity == "relu"


def test_a_cell_that_torch_lacks_is_its_own_twin() -> None:
    """The GRU with the reset before the product, and a subclass with its own step."""
    before = GRU(2, 3, reset="before")
    assert independent_twin(before)[0] is before
    assert "reset before" in independent_twin(before)[1]
    special = Branching(2, 3)
    assert independent_twin(special) == (special, "Branching")


def test_steps_are_read_where_autograds_numbers_are_normal() -> None:
    """At most four of the first 100 steps, the first and the last usable among them."""
    steps = torch.arange(1, 201)
    gentle = steps * math.log(0.9)
    assert readable_steps(steps, gentle, torch.float64) == [1, 6, 22, 100]
    steep = steps * math.log(1e-4)
    found = readable_steps(steps, steep, torch.float64)
    assert found[0] == 1
    assert 1e-4 ** found[-1] >= 2**-1022 / 2**-52 > 1e-4 ** (found[-1] + 1)
    single = readable_steps(steps, steep, torch.float32)
    assert 1e-4 ** single[-1] >= 2**-126 / 2**-23 > 1e-4 ** (single[-1] + 1)


def test_steps_that_autograd_cannot_read_are_left_out() -> None:
    """Nothing beyond its range, no NaN, and a zero only where it is an exact one."""
    steps = torch.tensor([1, 2, 3, 4, 5, 150])
    logs = torch.tensor([-1.0, math.nan, -1e4, 1e4, -math.inf, -1.0])
    assert readable_steps(steps, logs, torch.float64) == [1]
    assert readable_steps(steps, logs, torch.float64, exact=True) == [1, 5]
    assert readable_steps(steps[1:4], logs[1:4], torch.float64) == []


def test_blocks_lie_where_the_parts_lie() -> None:
    """h first, then c, as wide as they are; joint is everything."""
    state = (torch.zeros(1, 2), torch.zeros(1, 5))
    block = locate_block(("h", "c"), ("h", "c"), state)
    assert (block.rows, block.columns, block.state_size) == (slice(0, 2), slice(2, 7), 7)
    joint = locate_block("joint", ("h", "c"), state)
    assert (joint.rows, joint.columns) == (slice(0, 7), slice(0, 7))


@cases.each_kind
def test_a_built_in_cells_check_agrees_with_itself(kind: str) -> None:
    """Twin and cell step alike, so that the check compares like with like."""
    subject = cases.random_subject(kind)
    cell = cell_of(subject.module)
    module, _ = independent_twin(cell)
    ours = cell.step(subject.inputs[0], subject.state).state
    theirs = subject.advance(subject.inputs[0], subject.state)
    again = module(subject.inputs[0], subject.state if len(subject.state) > 1 else subject.state[0])
    parts = again if isinstance(again, tuple) else (again,)
    for one, other, third in zip(ours, theirs, parts, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-14)
        assert torch.allclose(third, other, rtol=1e-12, atol=1e-14)
