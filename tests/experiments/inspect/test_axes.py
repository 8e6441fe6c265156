"""Samples that move each other, padding that is read, halves that have read one step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.experiments.inspect import inspect
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import FINE, draw, one


@pytest.mark.parametrize("viewed", [True, False])
def test_time_and_batch_mixed_up_is_found_with_and_without_a_loss(viewed: bool):
    """The output of one sample moves with the input of another; in a right model by 0 exactly."""
    for loss in (None, lambda output: output.sum()):
        model = models.Forecaster(right=False, viewed=viewed)
        found = one(inspect(model, draw(5, 8, 3), loss=loss), "GF107")
        assert found.severity == "error"
        assert found.value > 0.001


def test_equal_numbers_of_steps_and_samples_need_the_layout_to_be_told():
    """Nothing tells then which axis is which; with the layout said, the mix-up is found."""
    x = draw(6, 6, 3)
    assert inspect(models.Forecaster(right=False), x).healthy
    said = inspect(models.Forecaster(right=False), x, layout="batch_first")
    assert one(said, "GF107").severity == "error"
    assert inspect(models.Forecaster(right=True), x, layout="batch_first").healthy


def test_padding_that_is_read_is_found():
    """Run unpacked, a sample of 2 steps in 12 has nearly all its gradient in its padding."""
    x, lengths = draw(3, 12, 3), [12, 5, 2]
    found = one(inspect(models.Padded(packed=False), x, lengths), "GF106")
    assert found.value > 0.9
    right = inspect(models.Padded(packed=True), x, lengths, loss=lambda output: output.sum())
    assert right.healthy
    assert FINE in right.verdict[0]


def test_padded_steps_that_no_loss_reads_are_no_fault():
    """A forward layer that answers at every step, and a loss of the samples' own steps."""
    torch.manual_seed(0)
    model = nn.Sequential(models.EveryStep(), nn.Linear(5, 1))
    batch = (draw(20, 4, 3), draw(20, 4, 1), [20, 10, 5, 3])
    assert inspect(model, batch).healthy
    assert inspect(model, batch[0], lengths=batch[2]).healthy
    every = inspect(model, batch, loss=lambda output, _: output.sum())
    assert one(every, "GF106").value > 0.5


def test_the_reversed_half_of_the_last_output_is_a_structural_zero():
    """It has read one step; the last state has read them all."""
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4, bidirectional=True)
    x = draw(10, 2, 3)
    result = inspect(layer, x, loss=lambda answer: answer[0][-1].sum())
    found = one(result, "GF105")
    assert (found.direction, found.layer) == ("reverse", "lstm, layer 0")
    assert inspect(layer, x, loss=lambda answer: answer[1][0].sum()).healthy
