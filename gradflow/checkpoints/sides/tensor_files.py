"""Tensors out of a file, as sides of a parity question take them: by plain name, in float64."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from gradflow.checkpoints.files import read_file
from gradflow.checkpoints.layers.state_dicts import find_tensors
from gradflow.errors import CellLoadError, CheckpointError

ENDINGS = (".pt", ".pth", ".ckpt", ".tar", ".bin", ".npz", ".safetensors")


def is_tensor_file(spec: str) -> bool:
    """Return whether a text names a file of tensors.

    >>> is_tensor_file("runs/right.pt"), is_tensor_file("lstm.py:step")
    (True, False)
    """
    return spec.lower().endswith(ENDINGS)


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Return all floating tensors of a file by name, in float64, without wrappers and prefixes.

    Nothing in the file is run; see `read_file`.

    Raises:
        CellLoadError: there is no such file, it cannot be read without running something in it, or
            it holds no floating tensors by name.
    """
    try:
        named = find_tensors(read_file(path, whole=True)).tensors
    except CheckpointError as error:
        raise CellLoadError(str(error)) from error
    tensors = {name: each.double() for name, each in named.items() if each.is_floating_point()}
    if not tensors:
        raise CellLoadError(f"{path} holds no named tensors of floating numbers.")
    return tensors
