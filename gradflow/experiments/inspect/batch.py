"""What a user's model is run on: inputs, targets and lengths, and the loss made of its answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from gradflow.engine.masks import masked_loss
from gradflow.errors import SettingError, ShapeError

Layout = Literal["batch_first", "time_first"]
Loss = str | Callable[..., Tensor]
LOSSES = ("mse", "cross_entropy")
IGNORED = -100  # the class that torch's cross-entropy leaves out
_KEYS = {
    "inputs": ("inputs", "input", "x", "data"),
    "targets": ("targets", "target", "labels", "label", "y"),
    "lengths": ("lengths", "length", "lens"),
}


@dataclass(frozen=True)
class Batch:
    """Inputs as the model takes them, with targets and lengths where they are known.

    `batch_axis` is the axis of samples in answers by step, for where steps and samples are as many
    and nothing else tells them apart.
    """

    inputs: Any
    targets: Tensor | None = None
    lengths: Tensor | None = None
    batch_axis: int | None = None

    def cast(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Batch:
        """Return the batch with its floating numbers in another dtype; whole numbers stay."""
        inputs, targets = (_cast(each, dtype, device) for each in (self.inputs, self.targets))
        return replace(self, inputs=inputs, targets=targets)

    def axis_of_samples(self, shape: Sequence[int]) -> int | None:
        """Return which of the first two axes of answers by step is the samples'; None if neither.

        Known where lengths are: as many samples, and steps enough for the longest.
        """
        if self.lengths is None or len(shape) < 2:
            return None
        count, longest = len(self.lengths), int(self.lengths.max())
        axes = [axis for axis in (0, 1) if shape[axis] == count and shape[1 - axis] >= longest]
        if len(axes) == 2 and self.batch_axis is not None:
            return self.batch_axis
        return axes[0] if axes else None


def read_batch(batch: object, lengths: object = None) -> Batch:
    """Return a batch from what a user hands over.

    Args:
        batch: a tensor or array, a packed sequence, (inputs, targets), (inputs, targets, lengths),
            or a mapping with such keys.
        lengths: the samples' own steps, where they are not in the batch.

    Raises:
        ShapeError: it is none of these.
    """
    if isinstance(batch, Batch):
        return batch
    inputs, targets, own = _parts(batch)
    own = lengths if lengths is not None else own
    return Batch(
        inputs if isinstance(inputs, PackedSequence) else _tensor(inputs, "the inputs"),
        None if targets is None else _tensor(targets, "the targets"),
        None if own is None else torch.as_tensor(own).to(torch.int64).cpu(),
    )


def call_model(model: nn.Module, batch: Batch, layout: Layout | None = None) -> Any:
    """Return a model's answer; lengths go to a parameter of its `forward` that asks for them.

    A bare layer of torch's gets its batch packed, which is how it is told of lengths.
    """
    x = batch.inputs
    if batch.lengths is None or isinstance(x, PackedSequence):
        return model(x)
    if isinstance(model, nn.RNNBase):
        first = model.batch_first if layout is None else layout == "batch_first"
        packed = pack_padded_sequence(x, batch.lengths, batch_first=first, enforce_sorted=False)
        return model(packed)
    name = lengths_parameter(model)
    return model(x) if name is None else model(x, **{name: batch.lengths})


def lengths_parameter(model: nn.Module) -> str | None:
    """Return the parameter of a model's forward that takes lengths, None where none does."""
    names = list(inspect.signature(model.forward).parameters)
    return next((name for name in names[1:] if "len" in name.lower()), None)


def first_tensor(answer: object) -> Tensor:
    """Return a model's output: the tensor, or the first one of a tuple, list, mapping or pack.

    Raises:
        ShapeError: there is none.
    """
    if isinstance(answer, PackedSequence):
        return answer.data
    if isinstance(answer, Tensor):
        return answer
    values = list(answer.values()) if isinstance(answer, Mapping) else answer
    if isinstance(values, list | tuple) and len(values):
        return first_tensor(values[0])
    raise ShapeError(
        "a model must return a tensor, or a tuple or dict that begins with one; "
        f"got a {type(answer).__name__}."
    )


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


def _parts(batch: object) -> tuple[object, object, object]:
    if isinstance(batch, Mapping):
        found = [
            next((batch[key] for key in names if key in batch), None) for names in _KEYS.values()
        ]
        if found[0] is None:
            raise ShapeError(f"a batch has inputs under the key 'inputs'; got {list(batch)}.")
        return found[0], found[1], found[2]
    if isinstance(batch, tuple | list) and not isinstance(batch, PackedSequence):
        if not 1 <= len(batch) <= 3:
            raise ShapeError(
                "a batch is inputs, (inputs, targets) or (inputs, targets, lengths); got "
                f"{len(batch)} parts."
            )
        padded = [*batch, None, None]
        return padded[0], padded[1], padded[2]
    return batch, None, None


def _tensor(value: object, what: str) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.ndarray | list | float | int | np.generic):
        return torch.as_tensor(np.asarray(value))
    raise ShapeError(f"{what} must be a tensor or an array; got a {type(value).__name__}.")


def _cast(value: Any, dtype: torch.dtype, device: torch.device | str) -> Any:
    if isinstance(value, Tensor):
        return value.to(device, dtype if value.dtype.is_floating_point else value.dtype)
    packed: Any = value  # whose type says less of `to` than it takes
    return packed.to(device, dtype) if isinstance(value, PackedSequence) else value
