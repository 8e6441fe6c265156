"""Vanishing is judged against a need alone: a lag that was asked for, or a loss."""

from __future__ import annotations

import pytest

from gradflow.experiments.inspect import inspect
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import FINE, draw, one


@pytest.mark.parametrize("asked", [True, False])
def test_forget_gates_at_a_tenth_vanish_against_sixty_steps(asked: bool):
    """Against a lag that was asked for it is an error, against a loss at the end a warning."""
    batch = draw(60, 4, 4)
    if asked:
        result = inspect(models.held_lstm(0.1), batch, needs_lag=60)
    else:
        result = inspect(models.held_lstm(0.1), batch, loss=lambda answer: answer[1][0].sum())
    found = one(result, "GF101")
    assert 3 < found.value < 6
    assert "against 60 needed" in found.message
    assert (found.severity, found.gate) == ("error" if asked else "warning", "forget")
    assert result.passed != asked
    assert FINE not in " ".join(result.verdict)


def test_forget_gates_at_a_tenth_are_no_fault_without_a_need():
    """Vanishing is judged against a need alone."""
    assert inspect(models.held_lstm(0.1), draw(60, 4, 4)).healthy
    every_step = inspect(models.held_lstm(0.1), draw(60, 4, 4), loss=lambda a: a[0].sum())
    assert every_step.healthy


def test_forget_gates_at_0_99_grow_a_little_and_are_no_illness():
    """With default recurrent weights the Jacobian grows 10^1.5-fold in 60 steps."""
    result = inspect(models.held_lstm(0.99), draw(60, 4, 4), needs_lag=60)
    assert result.healthy
    assert result.layers[0].horizon is None
    assert 0.5 < result.layers[0].log10_norm[-1] < 2.5
    assert "not reached within the data's 60 steps" in one(result, "GF100").message


def test_without_data_layers_run_longer_than_the_lag_that_is_needed():
    """A horizon of 100 steps is told from one of 1000 only by a run that long."""
    result = inspect(models.held_lstm(0.1), needs_lag=150)
    assert result.layers[0].lag[-1] == 151
    assert "151 steps" in result.verdict[2]
