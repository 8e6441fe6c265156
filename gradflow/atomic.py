"""Writes a set of files so that none is ever half-written under its final name.

All contents go to temporary names beside their places first: that is where a disk runs full or
a program is killed. Only then are they renamed, in the order given.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

TEMPORARY = ".writing"


def write_files(files: Mapping[Path, bytes], *, before_renaming: Callable[[], None]) -> None:
    """Write every file whole, or none: folders that are missing are made, and go again on failure.

    Args:
        files: path to contents; renamed into place in this order.
        before_renaming: called once all contents are safe on the disk.

    Raises:
        OSError, ValueError: the disk is full, a folder is not writable, a path is no path.
    """
    made: list[Path] = []
    written: dict[Path, Path] = {}
    try:
        for path, data in files.items():
            _make_folder(path.parent, made)
            _remove_abandoned(path.parent)
            written[path] = _temporary_name(path)
            _write(written[path], data)
        before_renaming()
        for path, temporary in written.items():
            temporary.replace(path)
    except BaseException:
        for temporary in written.values():
            with suppress(OSError):
                temporary.unlink()
        for folder in reversed(made):
            with suppress(OSError):  # not empty: some of it was renamed already
                folder.rmdir()
        raise


def _temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}{TEMPORARY}")


def _make_folder(folder: Path, made: list[Path]) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        made.append(path)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # else a power cut could leave an empty file under the final name


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files whose writer, on this machine, is gone (it was killed)."""
    for path in folder.glob(f".*{TEMPORARY}"):
        writer = path.name.removesuffix(TEMPORARY)
        process = writer.rpartition(".")[2]
        if writer.endswith(f".{platform.node()}.{process}") and not _runs(process):
            with suppress(OSError):
                path.unlink()


def _runs(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError, OverflowError):
        return True
    return True
