"""Subnormal numbers are flushed while measuring, and the setting is put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from gradflow.engine import jacobian_norms
from gradflow.engine.denormals import flushed_denormals, flushes_denormals
from gradflow.errors import Interrupted, ShapeError
from tests import cases
from tests.engine.measuring import cell_of

each_setting = pytest.mark.parametrize("before", [False, True])
CAN_FLUSH = torch.set_flush_denormal(False)


@pytest.fixture(autouse=True)
def _keep_setting() -> Iterator[None]:
    before = flushes_denormals()
    yield
    torch.set_flush_denormal(before)


@each_setting
def test_the_setting_is_told_and_restored(before: bool) -> None:
    """Inside the block numbers are flushed where the CPU can; after it as they were before."""
    torch.set_flush_denormal(before)
    assert flushes_denormals() == (before and CAN_FLUSH)
    with flushed_denormals():
        assert flushes_denormals() == CAN_FLUSH
    assert flushes_denormals() == (before and CAN_FLUSH)


@each_setting
def test_a_fault_inside_restores_the_setting(before: bool) -> None:
    """An exception leaves the block as quietly as a result does."""
    torch.set_flush_denormal(before)
    with pytest.raises(ZeroDivisionError), flushed_denormals():
        raise ZeroDivisionError
    assert flushes_denormals() == (before and CAN_FLUSH)


@each_setting
def test_measuring_restores_the_setting(before: bool) -> None:
    """Neither a measurement, nor one that is refused, nor one that is stopped changes it."""
    torch.set_flush_denormal(before)
    subject = cases.held_lstm(0.5)
    cell = cell_of(subject.module)

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    jacobian_norms(cell, subject.inputs, subject.state)
    assert flushes_denormals() == (before and CAN_FLUSH)
    with pytest.raises(ShapeError):
        jacobian_norms(cell, subject.inputs, subject.state, at=[0])
    with pytest.raises(Interrupted):
        jacobian_norms(cell, subject.inputs, subject.state, progress=stop)
    assert flushes_denormals() == (before and CAN_FLUSH)


def test_flushing_changes_no_norm() -> None:
    """A state that fades through the subnormal numbers gives f^T with and without flushing."""
    subject = cases.held_lstm(0.1, cases.Setup(hidden_size=2, batch=1, steps=340))
    cell = cell_of(subject.module)
    found = []
    for setting in (False, True):
        torch.set_flush_denormal(setting)
        found.append(jacobian_norms(cell, subject.inputs, subject.state, "joint").log_norm)
    cases.assert_same_log_norm(found[0], found[1])
