"""What a user's model is run on: inputs, targets and lengths."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from gradflow.errors import ShapeError

Layout = Literal["batch_first", "time_first"]
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
    x = inputs if isinstance(inputs, PackedSequence) else _tensor(inputs, "the inputs")
    numbers = None if own is None else _lengths(own)
    if isinstance(x, Tensor):
        _require_fitting(x, numbers)
    return Batch(x, None if targets is None else _tensor(targets, "the targets"), numbers)


def _lengths(own: object) -> Tensor:
    numbers = torch.as_tensor(own, device="cpu")
    whole = numbers.to(torch.int64)
    if numbers.dim() != 1 or bool((whole != numbers).any()):
        raise ShapeError(f"lengths are one whole number a sample; got {numbers.tolist()}.")
    return whole


def _require_fitting(x: Tensor, lengths: Tensor | None) -> None:
    """Raise unless there are numbers, and the lengths may be those of one of the first two axes."""
    if x.numel() == 0:
        raise ShapeError(
            f"a batch needs a sample and a step at least; got inputs {tuple(x.shape)}."
        )
    if lengths is None:
        return
    sizes = tuple(x.shape[:2])
    fits = [axis for axis in range(len(sizes)) if sizes[axis] == len(lengths)]
    if len(sizes) < 2 or not fits:
        raise ShapeError(
            f"lengths are one a sample; got {len(lengths)} for inputs {tuple(x.shape)}."
        )
    most = max(sizes[1 - axis] for axis in fits)
    if int(lengths.min()) < 1 or int(lengths.max()) > most:
        raise ShapeError(
            f"lengths of inputs {tuple(x.shape)} lie from 1 to {most}; got {lengths.tolist()}."
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


def _parts(batch: object) -> tuple[object, object, object]:
    if isinstance(batch, Mapping):
        lower = {str(key).lower(): value for key, value in batch.items()}  # X and y are usual
        found = [
            next((lower[key] for key in names if key in lower), None) for names in _KEYS.values()
        ]
        if found[0] is None:
            known = ", ".join(repr(key) for key in _KEYS["inputs"])
            raise ShapeError(
                f"a batch has inputs under one of the keys {known}; got {list(batch)}."
            )
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
