"""Zip archives: which of them are torch's or NumPy's, and what the others are.

torch.save and numpy.savez both write zip archives, and so do TorchScript, torch.export, Keras and
stable-baselines3; what lies inside tells them apart.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

from gradflow.errors import CheckpointError, UnsafeCheckpointError

_GIBIBYTE = 2**30
_MOST_UNPACKED = _GIBIBYTE  # what may come out of an archive that is packed far more densely
_DENSEST = 100  # ratio of unpacked to packed; weights that were trained reach 2 at most


def kind_of_archive(path: Path, archive: zipfile.ZipFile) -> Literal["torch", "npz"]:
    """Return whether torch.save or numpy.savez wrote an archive.

    Raises:
        UnsafeCheckpointError: it holds a program (TorchScript, torch.export).
        CheckpointError: it is another archive, or it unpacks to far more than it holds.
    """
    require_moderate(path, archive)
    names = archive.namelist()
    inner = {name.partition("/")[2] or name for name in names}
    if "constants.pkl" in inner or any(name.startswith("code/") for name in inner):
        raise UnsafeCheckpointError(
            f"{path} is a TorchScript archive: a program with its weights. Only weights are read "
            "here. Where you trust it, save them alone:\n"
            f"torch.save(torch.jit.load({str(path)!r}).state_dict(), 'weights.pt')"
        )
    if "data.pkl" in inner:
        return "torch"
    if any(name.startswith(("models/", "serialized_exported_program")) for name in inner):
        raise UnsafeCheckpointError(
            f"{path} is a program saved by torch.export. Only weights are read here. Where you "
            f"trust it: torch.save(torch.export.load({str(path)!r}).state_dict, 'weights.pt')"
        )
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    raise CheckpointError(_of_other_archive(path, names))


def require_moderate(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise CheckpointError where a small archive would unpack to a huge one."""
    packed = path.stat().st_size  # not the entries' own claim: they may overlap
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > max(_MOST_UNPACKED, _DENSEST * packed):
        raise CheckpointError(
            f"{path} ({packed} bytes) would unpack to {unpacked / _GIBIBYTE:.0f} GiB, more than "
            f"{_DENSEST} times its size, which no trained weights do. It is not unpacked."
        )


def is_stored_plainly(path: Path) -> bool:
    """Return whether no entry of an archive is compressed, so that it can be mapped to memory."""
    with zipfile.ZipFile(path) as archive:
        return all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())


def _of_other_archive(path: Path, names: list[str]) -> str:
    weights = [name for name in names if name.endswith((".pt", ".pth", ".safetensors", ".bin"))]
    if weights:
        return (
            f"{path} is an archive of {len(names)} files. Unpack it and give the weights in it: "
            f"{', '.join(weights[:3])}."
        )
    if any(name.endswith(".h5") for name in names):
        return (
            f"{path} is a Keras model. Save its weights by name: "
            "numpy.savez('w.npz', **{w.path: w.numpy() for w in model.weights})."
        )
    shown = f", such as {names[0]}" if names else ""
    return f"{path} is an archive of {len(names)} files{shown}, and no file of weights."
