"""The loss of a model's answer, as it was asked for or as the targets suggest."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from gradflow.engine.masks import masked_loss
from gradflow.errors import SettingError, ShapeError
from gradflow.experiments.inspect.batch import Batch, first_tensor

Loss = str | Callable[..., Tensor]
LOSSES = ("mse", "cross_entropy")
IGNORED = -100  # the class that torch's cross-entropy leaves out


def loss_of(answer: object, batch: Batch, loss: Loss | None) -> Tensor | None:
    """Return the loss of a model's answer, None where none was given and none can be guessed.

    A function is called as loss(answer, targets), or loss(answer) without targets. Without a loss,
    targets of whole numbers mean cross-entropy and others the squared error.

    Raises:
        SettingError: no such loss, or one that needs targets.
        ShapeError: output and targets do not fit, or the loss is not one number.
    """
    if callable(loss):
        value = loss(answer) if batch.targets is None else loss(answer, batch.targets)
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise ShapeError("a loss must be one number, as a tensor that keeps its graph.")
        return value.reshape(())
    if loss is not None and loss not in LOSSES:
        raise SettingError(f"--loss knows {' and '.join(LOSSES)}; got {loss!r}.")
    if batch.targets is None:
        if loss is not None:
            raise SettingError(f"the loss {loss!r} compares with targets, and there are none.")
        return None
    name = loss or guessed_loss(batch.targets)
    output = first_tensor(answer)
    return _cross_entropy(output, batch) if name == "cross_entropy" else _squared(output, batch)


def guessed_loss(targets: Tensor) -> str:
    """Return which loss targets are for: whole numbers are classes."""
    return "mse" if targets.dtype.is_floating_point else "cross_entropy"


def _cross_entropy(output: Tensor, batch: Batch) -> Tensor:
    targets = batch.targets
    assert targets is not None
    targets = _class_numbers(targets, output.shape[-1])
    targets = targets.squeeze(-1) if targets.dim() == output.dim() else targets
    if output.shape[:-1] != targets.shape:
        raise ShapeError(
            "cross_entropy needs logits (..., classes) and a class number for each; got output "
            f"{tuple(output.shape)} and targets {tuple(targets.shape)}."
        )
    return _mean_loss("cross_entropy", output, targets, batch)


def _class_numbers(targets: Tensor, classes: int) -> Tensor:
    """Return targets as whole numbers; a number that is none was meant for another loss."""
    whole = targets.long()
    if bool((whole != targets).any()):
        raise ShapeError(
            "cross_entropy needs whole class numbers as targets; got numbers such as "
            f"{float(targets[whole != targets][0]):g}. For numbers to be met use mse."
        )
    outside = whole[((whole < 0) | (whole >= classes)) & (whole != IGNORED)]
    if len(outside):
        raise ShapeError(
            f"the model gives {classes} logits, so class numbers lie from 0 to {classes - 1}; got "
            f"{int(outside[0])}."
        )
    return whole


def _squared(output: Tensor, batch: Batch) -> Tensor:
    targets = batch.targets
    assert targets is not None
    if output.dim() == targets.dim() + 1 and output.shape[-1] == 1:
        output = output.squeeze(-1)
    elif targets.dim() == output.dim() + 1 and targets.shape[-1] == 1:
        targets = targets.squeeze(-1)
    if output.shape != targets.shape:
        raise ShapeError(
            "mse needs targets of the output's shape; got output "
            f"{tuple(output.shape)} and targets {tuple(targets.shape)}."
        )
    return _mean_loss("squared_error", output, targets.to(output), batch)


def _mean_loss(name: str, output: Tensor, targets: Tensor, batch: Batch) -> Tensor:
    """Return the mean; of answers by step of a padded batch, over the samples' own steps."""
    axis = batch.axis_of_samples(targets.shape)
    if axis is not None and batch.lengths is not None:
        if axis == 0:
            output, targets = output.transpose(0, 1), targets.transpose(0, 1)
        return masked_loss(output, targets, batch.lengths, name)
    if name == "squared_error":
        return nn.functional.mse_loss(output, targets)
    return nn.functional.cross_entropy(output.flatten(0, -2), targets.flatten())
