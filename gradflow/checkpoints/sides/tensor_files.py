"""Tensors out of a file: .pt .pth .ckpt .tar .bin (weights only), .npz, .safetensors."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from gradflow.errors import CellLoadError

ENDINGS = (".pt", ".pth", ".ckpt", ".tar", ".bin", ".npz", ".safetensors")
_WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "net", "weights")
_PREFIXES = ("module.", "_orig_mod.", "model.", "net.")


def is_tensor_file(spec: str) -> bool:
    """Return whether a text names a file of tensors.

    >>> is_tensor_file("runs/right.pt"), is_tensor_file("lstm.py:step")
    (True, False)
    """
    return spec.lower().endswith(ENDINGS)


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Return all floating tensors of a file by name, in float64, without wrappers and prefixes.

    Nothing in the file is run: pickled code is refused.

    Raises:
        CellLoadError: there is no such file, it cannot be read, or it holds no tensors.
    """
    place, what = Path(path).expanduser(), repr(str(path))
    try:
        if not place.is_file():
            raise CellLoadError(f"there is no file {what} (looked from {Path.cwd()}).")
        tensors = _tensors(_unwrapped(_load(place)))
    except CellLoadError:
        raise
    except pickle.UnpicklingError as error:
        raise CellLoadError(
            f"{what} holds more than tensors, and reading that would run code of the file. Save "
            "the weights alone: torch.save(module.state_dict(), path)."
        ) from error
    except Exception as error:  # damage shows as whatever zipfile, zlib, torch or tokenize raise
        raise CellLoadError(
            f"{what} cannot be read: {_reason(error)}. It must hold tensors by name, as "
            "torch.save, numpy.savez or safetensors write them."
        ) from error
    if not tensors:
        raise CellLoadError(f"{what} holds no named tensors.")
    return _without_prefix(tensors)


def _reason(error: Exception) -> str:
    """Return the first line of what went wrong, without NumPy's advice to run the file's code."""
    if "allow_pickle" in str(error):
        return "it is no NumPy archive of numbers, and pickled objects are never loaded"
    said = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return str(said.splitlines()[0][:200].rstrip("."))


def _load(place: Path) -> Any:
    if place.suffix.lower() == ".npz":
        # Of an open file: NumPy leaves one that it opened itself open where it is damaged.
        with place.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    if place.suffix.lower() == ".safetensors":
        return load_file(place)
    return torch.load(place, map_location="cpu", weights_only=True)


def _unwrapped(found: Any) -> Any:
    while isinstance(found, Mapping):
        inner = next((found[key] for key in _WRAPPERS if isinstance(found.get(key), Mapping)), None)
        if inner is None:
            return found
        found = inner
    return found


def _tensors(found: Any) -> dict[str, Tensor]:
    if not isinstance(found, Mapping):
        return {}
    given = {str(k): v for k, v in found.items() if isinstance(v, Tensor | np.ndarray)}
    tensors = {name: torch.as_tensor(value) for name, value in given.items()}
    return {name: value.double() for name, value in tensors.items() if value.is_floating_point()}


def _without_prefix(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for prefix in _PREFIXES * 2:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
    return tensors
