"""Vanishing is judged against a need alone: a lag that was asked for, or a loss."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gradflow.experiments.inspect import inspect
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import FINE, codes, draw, one


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


def last_step(answer: tuple[Tensor, tuple[Tensor, Tensor]]) -> Tensor:
    """A loss that reads the last state alone."""
    return answer[1][0].sum()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("steps", [60, 100])
def test_an_untrained_layer_is_not_ill_because_a_loss_reads_its_last_step(kind: str, steps: int):
    """Nobody said that the early steps matter: the horizon is told, and how to say that they do."""
    torch.manual_seed(0)
    layer = getattr(nn, kind)(8, 32)
    result = inspect(layer, draw(steps, 4, 8), loss=lambda answer: answer[0][-1].sum())
    found = one(result, "GF101")
    assert found.severity == "info"
    assert f"steps, against {steps} in the data" in found.message
    assert result.healthy
    assert FINE in result.verdict[0]
    assert f"of {steps}; if the task needs more, say --needs-lag N" in result.verdict[1]


def test_data_out_of_all_proportion_to_the_horizon_are_a_warning():
    """Of 400 steps a default LSTM reads the last 18: the rest of the data moves no weight."""
    torch.manual_seed(0)
    result = inspect(nn.LSTM(4, 16), draw(400, 2, 4), loss=last_step)
    found = one(result, "GF101")
    assert found.severity == "warning"
    assert "against 400 needed" in found.message
    assert result.passed  # the command fails on errors, unless asked


def test_a_lag_beyond_the_data_is_not_known_to_be_reached():
    """The gradient reaches all of 20 steps; whether it reaches 60, only 60 steps can tell."""
    result = inspect(models.held_lstm(0.99), draw(20, 4, 4), needs_lag=60)
    found = one(result, "GF109")
    assert (found.severity, found.value) == ("warning", 20)
    assert FINE not in result.verdict[0]
    assert inspect(models.held_lstm(0.99), draw(20, 4, 4), needs_lag=20).healthy
    short = inspect(models.held_lstm(0.1), draw(20, 4, 4), needs_lag=60)
    assert one(short, "GF101").severity == "error"
    assert "GF109" not in codes(short)


def test_one_layer_that_remembers_is_enough():
    """The layer above may forget: it reads what the one below has kept."""
    torch.manual_seed(0)
    stack = nn.LSTM(4, 16, 2)
    with torch.no_grad():
        stack.bias_ih_l0[16:32] = 6.0
        stack.bias_hh_l0[16:32] = 0.0
    assert "GF101" not in codes(inspect(stack, draw(60, 4, 4), needs_lag=60))
    with torch.no_grad():
        stack.bias_ih_l0[16:32] = 0.0
    assert one(inspect(stack, draw(60, 4, 4), needs_lag=60), "GF101").severity == "error"
