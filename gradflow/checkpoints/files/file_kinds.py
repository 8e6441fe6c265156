"""What a file of weights is, told by its first bytes, because endings are often wrong.

What is no checkpoint is refused here, in words that say what it is instead: a Git LFS pointer, a
web page, a TorchScript archive, half a download.
"""

from __future__ import annotations

import difflib
import struct
import zipfile
from pathlib import Path
from typing import Literal

from gradflow.checkpoints.files.archives import kind_of_archive
from gradflow.errors import CheckpointError

Kind = Literal["torch", "torch-legacy", "npz", "safetensors"]

_HEAD = 512  # bytes; a tar archive's mark lies at 257
_LEGACY_TORCH = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # the number that opens torch's old format
_GIT_LFS = (b"version https://git-lfs", b"version https://hawser")
# (first bytes, what the file is, what to do)
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x93NUMPY", "one NumPy array without a name", "Save the weights by name, by numpy.savez."),
    (
        b"\x89HDF",
        "an HDF5 file, as Keras writes",
        "Save its weights by name: numpy.savez('w.npz', **{w.path: w.numpy() for w in m.weights}).",
    ),
    (b"GGUF", "a GGUF file", "Give the weights that it was made from."),
    (b"\x1f\x8b", "compressed by gzip", "Unpack it first: gunzip, or tar -xzf."),
    (b"BZh", "compressed by bzip2", "Unpack it first."),
    (b"\xfd7zXZ", "compressed by xz", "Unpack it first."),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "Unpack it first."),
    (b"7z\xbc\xaf", "a 7z archive", "Unpack it first."),
)


def kind_of_file(path: Path) -> Kind:
    """Return what format a checkpoint has.

    Args:
        path: a file of weights, of any ending.

    Raises:
        CheckpointError: there is no such file, or it is something else; the message says what.
    """
    require_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as problem:
        raise CheckpointError(f"{path} cannot be read: {problem.strerror}.") from problem
    if not head:
        raise CheckpointError(f"{path} is empty (0 bytes): it was never written, or lost.")
    if head.startswith(b"PK"):
        return _zip_kind(path)
    if _is_safetensors(head, path.stat().st_size):
        return "safetensors"
    if head[:1] == b"\x80" and head[2:].startswith(_LEGACY_TORCH):
        return "torch-legacy"
    raise CheckpointError(f"{path} is no checkpoint: {_what_else(path, head)}")


def require_file(path: Path) -> None:
    """Raise CheckpointError unless the path is a file; offer the nearest one that is."""
    _require_name(path)
    if path.is_dir():
        raise CheckpointError(_of_folder(path))
    if path.is_file():
        return
    if path.exists():
        raise CheckpointError(f"{path} is no regular file; a checkpoint is a file on disk.")
    folder = path.parent
    if not folder.is_dir():
        raise CheckpointError(f"there is no folder {folder} (looked from {Path.cwd()}).")
    if path.with_name(f"{path.name}.index").exists():
        raise CheckpointError(
            f"{path} is a TensorFlow checkpoint in several files, which torch cannot read. "
            "Save its weights by name, by numpy.savez."
        )
    others = [file.name for file in folder.iterdir() if file.is_file()]
    close = difflib.get_close_matches(path.name, others, n=1)
    hint = f"Did you mean {folder / close[0]}?" if close else f"Looked from {Path.cwd()}."
    raise CheckpointError(f"there is no file {str(path)!r}. {hint}")


def _require_name(path: Path) -> None:
    """Raise where no disk takes the name, or where shown as it is it would move the terminal."""
    name = repr(str(path))
    try:
        missing = not path.exists()
    except OSError as problem:  # too long a name, a folder that may not be entered
        raise CheckpointError(f"{name} cannot be read: {problem.strerror}.") from problem
    if missing and not str(path).isprintable():
        raise CheckpointError(f"there is no file {name} (looked from {Path.cwd()}).")


def _zip_kind(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            return kind_of_archive(path, archive)
    except CheckpointError:
        raise
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as problem:
        raise CheckpointError(
            f"{path} is cut off or damaged: it begins as an archive, but the table at its end is "
            f"missing or broken ({path.stat().st_size} bytes came). Copy or download it again."
        ) from problem


def _is_safetensors(head: bytes, size: int) -> bool:
    """Return whether these bytes are a length and the beginning of a JSON table that long."""
    length = int.from_bytes(head[:8], "little")
    return len(head) > 8 and head[8:9] == b"{" and 2 <= length < max(size, 2**27)


def _of_folder(path: Path) -> str:
    if any(path.glob("*.distcp")):
        return (
            f"{path} is a distributed checkpoint; a checkpoint is one file. Join it: python -m "
            f"torch.distributed.checkpoint.format_utils dcp_to_torch {path} model.pt"
        )
    endings = (".pt", ".pth", ".ckpt", ".tar", ".safetensors", ".npz", ".bin")
    inside = sorted(file.name for file in path.iterdir() if file.suffix.lower() in endings)
    listing = f" In it: {', '.join(inside[:4])}." if inside else ""
    return f"{path} is a folder; a checkpoint is one file.{listing}"


def _what_else(path: Path, head: bytes) -> str:
    """Return what a file is that is no checkpoint, and what to do."""
    if head.startswith(_GIT_LFS):
        size = head.partition(b"size ")[2].split(b"\n")[0].decode("ascii", "replace")
        stands = f" for {size} bytes that were not downloaded" if size else ""
        return f"it is a Git LFS pointer, a text that stands{stands}. Run `git lfs pull`."
    for mark, what, cure in _OTHERS:
        if head.startswith(mark):
            return f"it is {what}. {cure}"
    if head[257:262] == b"ustar":
        return "it is a tar archive. Unpack it first (tar -xf) and give the file of weights in it."
    if path.suffix.lower() == ".onnx":
        return "it is an ONNX model. Save its W, R and B by numpy.savez, or give the torch model."
    if head[:1] == b"\x80":
        return (
            "it is a bare pickle, not torch's format, and to read it would run its code. Where "
            "you trust it, load it yourself and save the tensors: torch.save(weights, 'model.pt')."
        )
    return _of_text(head)


def _is_text(head: bytes) -> bool:
    """Return whether these bytes are UTF-8 (a last letter may be cut) without control codes."""
    try:
        head[: -3 if len(head) == _HEAD else None].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(byte >= 32 or byte in b"\t\r\n" for byte in head) and bool(head.strip())


def _of_text(head: bytes) -> str:
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "it is a web page, which a download gave in place of the file. Download it again."
    if start.startswith((b"{", b"[")):
        return "it is JSON text. Give the file of weights that it belongs to."
    if _is_text(head):
        shown = head[:40].decode("utf-8", "replace").strip().splitlines()[0]
        return f"it is text that begins with {shown!r}. Give the file that torch.save wrote."
    return (
        f"its first bytes are {head[:8].hex(' ')}, of no format that is known here. "
        "Known: torch.save's, .safetensors, .npz."
    )
