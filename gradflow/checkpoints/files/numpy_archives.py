"""Weights in an .npz: arrays by name, read one by one, and none that would run code."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gradflow.checkpoints.files.tensor_names import may_be_recurrent
from gradflow.errors import CheckpointError, UnsafeCheckpointError

Shape = tuple[int, ...]


def read_numpy_archive(path: Path, *, whole: bool = False) -> dict[str, Tensor]:
    """Return the arrays of an .npz as tensors; those of no recurrent layer without their numbers.

    Args:
        path: the file.
        whole: read the numbers of all of them.

    Raises:
        UnsafeCheckpointError: an array of Python objects, which are pickled.
        CheckpointError: numbers that torch does not have.
    """
    with zipfile.ZipFile(path) as archive:
        headers = {name.removesuffix(".npy"): _header(archive, name) for name in archive.namelist()}
    for name, (_, dtype) in headers.items():
        if dtype.hasobject:
            raise UnsafeCheckpointError(
                f"{path} holds pickled Python objects in {name!r}: to read them would run code; "
                "nothing of it was run.\nSave every array by its own name: "
                "numpy.savez('weights.npz', **arrays)"
            )
    with np.load(path, allow_pickle=False) as stored:
        return {
            name: _tensor(path, name, stored[name])
            if whole or may_be_recurrent(name)
            else torch.empty(shape, device="meta")
            for name, (shape, _) in headers.items()
        }


def _header(archive: zipfile.ZipFile, name: str) -> tuple[Shape, np.dtype[np.generic]]:
    """Return an array's shape and dtype without reading its numbers."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    return shape, dtype


def _tensor(path: Path, name: str, array: NDArray[np.generic]) -> Tensor:
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    try:
        return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))))
    except TypeError as problem:
        raise CheckpointError(
            f"{path}: {name!r} is of NumPy's dtype {array.dtype}, which torch does not have. "
            "Save it as float32 or float64."
        ) from problem
