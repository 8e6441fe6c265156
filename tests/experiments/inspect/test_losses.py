"""Losses of a model's answer: which they are, at which steps, and that padding is not in them."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from gradflow.errors import SettingError, ShapeError
from gradflow.experiments.inspect import inspect
from gradflow.experiments.inspect.batch import Batch, read_batch
from gradflow.experiments.inspect.losses import loss_of
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import draw

LENGTHS = [5, 3, 1]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("steps", [5, 3])
def test_a_loss_by_step_is_of_the_own_steps_alone(batch_first: bool, steps: int):
    """Of padded squared errors and cross-entropies, also where steps and samples are as many."""
    lengths = torch.tensor(LENGTHS).clamp(max=steps)
    output, targets = draw(3, steps, 4), torch.randint(4, (3, steps))
    right = [
        functional.cross_entropy(output.flatten(0, 1), targets.flatten(), reduction="none"),
        (output[..., 0] - targets).square().flatten(),
    ]
    given = [(output, targets), (output[..., 0], targets.float())]
    axis = 0 if batch_first else 1
    for losses, pair in zip(right, given, strict=True):
        answer, wanted = (each.transpose(0, axis) for each in pair)
        found = loss_of(answer, Batch(None, wanted, lengths, batch_axis=axis), None)
        own = [losses.reshape(3, steps)[row, : lengths[row]] for row in range(3)]
        assert found.item() == pytest.approx(torch.cat(own).mean().item())


def test_a_loss_of_the_whole_sequence_is_a_plain_mean():
    """One answer a sample: lengths say nothing of it, and an ignored class counts for nothing."""
    output, targets = draw(3, 4), torch.tensor([1, -100, 3])
    found = loss_of(output, Batch(None, targets, torch.tensor(LENGTHS)), None)
    kept = functional.cross_entropy(output[[0, 2]], targets[[0, 2]])
    assert found.item() == pytest.approx(kept.item())


def test_padding_has_no_gradient_of_a_loss_by_step():
    """The state after a sample's own end moves no loss."""
    x, targets = draw(5, 3, 3), draw(5, 3, 5)
    result = inspect(models.EveryStep(), (x, targets, torch.tensor(LENGTHS)))
    assert result.healthy
    assert result.layers[0].log10_dL_dh[-1] is not None


@pytest.mark.parametrize("step", [0, 7, 14])
def test_a_loss_may_stand_at_any_step(step: int):
    """What comes later has a gradient of exactly zero, and that is no cut."""
    result = inspect(models.EveryStep(), draw(15, 2, 3), loss=lambda output: output[step].sum())
    curve = result.layers[0].log10_dL_dh
    assert [value is not None for value in curve] == [t <= step for t in range(15)]
    assert result.healthy


def test_what_a_batch_may_be():
    """A tensor, pairs and triples, mappings with the usual names; else a message."""
    x, y = draw(2, 3, 4), torch.tensor([0, 1])
    assert read_batch({"x": x, "labels": y, "lens": [3, 2]}).lengths.tolist() == [3, 2]
    assert read_batch((x.numpy(), y, [3, 2])).targets is not None
    for wrong in ({"a": x}, (x, y, y, y), "text"):
        with pytest.raises(ShapeError):
            read_batch(wrong)
    for lengths, message in (([3], "one a sample"), ([4, 1], "from 1 to 3"), ([0, 3], "from 1")):
        with pytest.raises(ShapeError, match=message):
            read_batch(x, lengths)
    with pytest.raises(ShapeError, match="a sample and a step"):
        read_batch(x[:, :0])
    with pytest.raises(SettingError, match="there are none"):
        loss_of(x, Batch(x), "mse")
    with pytest.raises(ShapeError, match="targets of the output's shape"):
        loss_of(x, Batch(x, draw(2, 5)), "mse")


def test_targets_that_are_no_classes_are_refused():
    """torch would cut 99.5 to class 99, and read beyond the logits."""
    model, x = models.Classifier(), draw(3, 5, 3)
    with pytest.raises(
        ShapeError, match=r"whole class numbers as targets; got numbers such as 0.5"
    ):
        inspect(model, (x, torch.tensor([0.5, 1.0, 0.0])), loss="cross_entropy")
    with pytest.raises(ShapeError, match="from 0 to 1; got 7"):
        inspect(model, (x, torch.tensor([0, 7, 1])))
