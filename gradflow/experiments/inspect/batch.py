"""What a user's model is run on: inputs, targets and lengths, and the loss made of its answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from gradflow.cells.masking import length_mask
from gradflow.errors import SettingError, ShapeError

Layout = Literal["batch_first", "time_first"]
Loss = str | Callable[..., Tensor]
LOSSES = ("mse", "cross_entropy")
_KEYS = {
    "inputs": ("inputs", "input", "x", "data"),
    "targets": ("targets", "target", "labels", "label", "y"),
    "lengths": ("lengths", "length", "lens"),
}


@dataclass(frozen=True)
class Batch:
    """Inputs as the model takes them, with targets and lengths where they are known."""

    inputs: Any
    targets: Tensor | None = None
    lengths: Tensor | None = None

    def cast(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Batch:
        """Return the batch with its floating numbers in another dtype; whole numbers stay."""
        return Batch(
            _cast(self.inputs, dtype, device),
            _cast(self.targets, dtype, device),
            self.lengths,
        )


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
    targets = targets.long()
    targets = targets.squeeze(-1) if targets.dim() == output.dim() else targets
    if output.shape[:-1] != targets.shape:
        raise ShapeError(
            "cross_entropy needs logits (..., classes) and a class number for each; got output "
            f"{tuple(output.shape)} and targets {tuple(targets.shape)}."
        )
    losses = nn.functional.cross_entropy(
        output.flatten(0, -2), targets.flatten(), reduction="none"
    ).reshape(targets.shape)
    return _mean(losses, batch)


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
    return _mean((output - targets.to(output)) ** 2, batch)


def _mean(losses: Tensor, batch: Batch) -> Tensor:
    """Return the mean; of a padded sequence of losses, over the samples' own steps."""
    lengths = batch.lengths
    if lengths is None or losses.dim() < 2 or losses.shape[0] == losses.shape[1]:
        return losses.mean()
    for batch_axis in (0, 1):
        steps = losses.shape[1 - batch_axis]
        if losses.shape[batch_axis] == len(lengths) and steps >= int(lengths.max()):
            mask = length_mask(lengths, steps)
            return losses[(mask.T if batch_axis == 0 else mask).to(losses.device)].mean()
    return losses.mean()


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
    return value.to(dtype) if isinstance(value, PackedSequence) else value
