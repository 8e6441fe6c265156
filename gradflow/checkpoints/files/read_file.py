"""Reading a file of weights without running anything in it: .pt .pth .ckpt .tar .safetensors .npz.

What the format is goes by the content, not by the ending. torch's files are read with
`weights_only=True`, which builds tensors and calls nothing else. Facts that often lie beside the
weights (a Namespace of hyper-parameters, a best loss of NumPy's) are replaced by something inert;
whatever else would have to be called is refused with its name.
"""

from __future__ import annotations

import io
import pickle
import struct
import warnings
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from gradflow.checkpoints.files.archives import is_stored_plainly
from gradflow.checkpoints.files.file_kinds import Kind, kind_of_file
from gradflow.checkpoints.files.numpy_archives import read_numpy_archive
from gradflow.checkpoints.files.pickled_names import is_fact, names_in_pickle, refused_names
from gradflow.checkpoints.files.refusals import refusal_of_names
from gradflow.checkpoints.files.tensor_names import may_be_recurrent
from gradflow.errors import CheckpointError

_FILLED = {"AttributeDict": OrderedDict, "defaultdict": OrderedDict, "deque": list}
# What parsers raise of bytes that were damaged.
_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, NotImplementedError),
    *(RuntimeError, TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error),
)


def read_file(path: str | Path, *, whole: bool = False) -> object:
    """Return what a file of weights holds, tensors on the CPU, as it is nested in the file.

    A large file is mapped to memory or read in part, so that only recurrent weights cost memory.

    Args:
        path: the file, of any ending; `~` is the home folder.
        whole: read the numbers of all tensors; else those of no recurrent layer may lack theirs
            (on torch's meta device).

    Raises:
        UnsafeCheckpointError: to read it would run code that is pickled in it.
        QuantisedError: it holds packed whole numbers.
        CheckpointError: it is missing, cut off, or no checkpoint at all.
    """
    place = Path(path).expanduser()
    kind = kind_of_file(place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of storage classes that old files name
            return _read(place, kind, whole=whole)
    except CheckpointError:
        raise
    except MemoryError as problem:
        raise CheckpointError(f"{place} needs more memory than there is.") from problem
    except OSError as problem:
        raise CheckpointError(f"{place} cannot be read: {problem.strerror}.") from problem
    except _DAMAGE as problem:
        raise CheckpointError(
            f"{place} is damaged: {_first_line(problem)}. Copy it again, or save it again."
        ) from problem


def _read(place: Path, kind: Kind, *, whole: bool) -> object:
    if kind == "safetensors":
        return _read_safetensors(place, whole=whole)
    if kind == "npz":
        return read_numpy_archive(place, whole=whole)
    return _read_torch(place, legacy=kind == "torch-legacy")


def _read_safetensors(place: Path, *, whole: bool) -> dict[str, torch.Tensor]:
    try:
        with safe_open(place, framework="pt", device="cpu") as stored:
            names = list(stored.keys())
            return {
                name: stored.get_tensor(name)
                if whole or may_be_recurrent(name)
                else torch.empty(stored.get_slice(name).get_shape(), device="meta")
                for name in names
            }
    except SafetensorError as problem:
        raise CheckpointError(
            f"{place} is a damaged or cut off .safetensors file: {_first_line(problem)}. "
            "Copy or download it again."
        ) from problem


def _read_torch(place: Path, *, legacy: bool) -> object:
    names = _pickled_names(place, legacy=legacy)
    refused = refused_names(names)
    if refused:
        raise refusal_of_names(place, refused)
    mapped = not legacy and is_stored_plainly(place)
    with torch.serialization.safe_globals([_stand_in(name) for name in names if is_fact(name)]):
        try:
            return torch.load(str(place), map_location="cpu", weights_only=True, mmap=mapped)
        except pickle.UnpicklingError as problem:
            raise CheckpointError(_of_unpickling(place, problem)) from problem


def _pickled_names(place: Path, *, legacy: bool) -> list[str]:
    try:
        if legacy:
            with place.open("rb") as file:
                return names_in_pickle(file, legacy=True)
        with zipfile.ZipFile(place) as archive:
            entry = next(n for n in archive.namelist() if n.partition("/")[2] == "data.pkl")
            return names_in_pickle(io.BytesIO(archive.read(entry)))
    except _DAMAGE as problem:
        raise CheckpointError(
            f"{place} is damaged or cut off: {_first_line(problem)}. Copy or download it again."
        ) from problem


def _stand_in(name: str) -> type:
    """Return an inert class that torch takes for the one of this name: it keeps nothing."""
    module, _, plain = name.rpartition(".")

    def make(cls: type, *_: Any, **__: Any) -> Any:  # a container where it will be filled
        container = _FILLED.get(plain)
        return object.__new__(cls) if container is None else container()

    def ignore(*_: Any, **__: Any) -> None:
        return None

    inert = {"__new__": make, "__init__": ignore, "__setstate__": ignore}
    return type(plain, (), inert | {"__module__": module, "__qualname__": plain})


def _of_unpickling(place: Path, problem: BaseException) -> str:
    """Return torch's own reason, without its advice to run the file's code."""
    reason = str(problem).partition("WeightsUnpickler error:")[2].strip() or _first_line(problem)
    reason = reason.splitlines()[0].partition(" Please use")[0].strip()[:160]
    if "Unsupported operand" in reason:
        reason = "it was saved with another pickle_protocol than torch's own, 2"
    return (
        f"{place} cannot be read by torch.load(weights_only=True): {reason}.\n"
        "Save the weights alone, without a pickle_protocol: torch.save(weights, 'model.pt')"
    )


def _first_line(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].strip().rstrip(".")[:160]
