"""What is stored of a weight: its dtype in words, and whether there are numbers to compute with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from gradflow.checkpoints.layers.found import NonFinite

_TRUSTED = 2**20  # numbers that a tensor may claim without holding each of them


class NoNumbers(Exception):
    """A tensor without numbers to compute with; the message says why not."""

    quantised = False


class WholeNumbers(NoNumbers):
    """Weights stored as whole numbers."""

    quantised = True


def require_numbers(name: str, tensor: Tensor) -> None:
    """Raise NoNumbers unless a tensor holds real floating-point numbers.

    Args:
        name: what it is called in the file.
        tensor: as stored.
    """
    if tensor.is_quantized or not (tensor.is_floating_point() or tensor.is_complex()):
        raise WholeNumbers(
            f"{name} is quantised (stored as {dtype_name([tensor])}). Give the floating-point "
            "checkpoint that it was made from"
        )
    if tensor.is_complex():
        raise NoNumbers(f"{name} is complex, and the states that are measured are real")
    if tensor.device.type == "meta":
        raise NoNumbers(f"{name} was saved without its numbers (on torch's meta device)")
    if tensor.layout is not torch.strided:
        raise NoNumbers(f"{name} is sparse. Save it as tensor.to_dense()")
    if tensor.numel() == 0:
        raise NoNumbers(
            f"{name} is empty; DeepSpeed and FSDP keep the numbers in shards beside it. Save the "
            "whole state dict"
        )
    held = tensor.untyped_storage().nbytes() // tensor.element_size()
    if tensor.numel() > max(held, _TRUSTED):
        raise NoNumbers(f"{name} claims {tensor.numel()} numbers and holds {held}")


def dtype_name(tensors: Iterable[Tensor]) -> str:
    """Return the dtype in words, or all of them where they differ.

    >>> dtype_name([torch.zeros(1).half(), torch.zeros(1)])
    'float16, float32'
    """
    names = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors})
    return ", ".join(names)


def find_nonfinite(tensors: Mapping[str, Tensor]) -> tuple[NonFinite, ...]:
    """Return where numbers are not finite, for each tensor that has any.

    Args:
        tensors: in float64, by what they are called in the file.
    """
    found = []
    for name, tensor in tensors.items():
        bad = ~torch.isfinite(tensor)
        if not bool(bad.any()):
            continue
        nans = int(torch.isnan(tensor).sum())
        first = tuple(int(index) for index in bad.nonzero()[0])
        found.append(NonFinite(name, nans, int(bad.sum()) - nans, first))
    return tuple(found)
