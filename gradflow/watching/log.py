"""The log of a watched training on disk: a line is in the system's hands before anyone goes on."""

from __future__ import annotations

import errno
import importlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from gradflow.errors import RunFolderError
from gradflow.records.watch import FlowFinding, FlowSample, WatchRun
from gradflow.records.watch_log import (
    LOG_NAME,
    header_line,
    is_log,
    run_from_lines,
    sample_line,
)

fcntl: Any = None
with suppress(ImportError):  # Windows has none
    fcntl = importlib.import_module("fcntl")
_OPEN: WeakValueDictionary[Path, FlowLog] = WeakValueDictionary()


class FlowLog:
    """Appends samples to `watch.jsonl` in a run folder, which is made with the first of them.

    Each line is handed over whole, unbuffered: a program that is killed loses none that `write`
    returned from. A log of an earlier run of the same training is continued.

    Args:
        folder: the run folder.
        config: the settings of the watch, for the header.
        environment: the provenance, for the header.

    Raises:
        RunFolderError: the folder holds a `watch.jsonl` that is no log of ours.
    """

    def __init__(
        self, folder: Path, *, config: Mapping[str, Any], environment: Mapping[str, Any]
    ) -> None:
        self.path = folder / LOG_NAME
        self._header = header_line(config, environment)
        self._descriptor: int | None = None
        self._before = ""
        self.earlier = self._read_earlier()

    def write(self, sample: FlowSample, findings: Iterable[FlowFinding] = ()) -> None:
        """Append a sample.

        Raises:
            OSError: the disk is full, the folder cannot be made or written.
        """
        if self._descriptor is None:
            self._open()
        self._append(sample_line(sample, findings))

    def close(self) -> None:
        """Close the file; a log without samples leaves none."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
            if _OPEN.get(self.path.resolve()) is self:
                del _OPEN[self.path.resolve()]

    def _read_earlier(self) -> WatchRun | None:
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise RunFolderError(
                f"out names a folder for the log, and {str(self.path)!r} cannot be read: "
                f"{problem.strerror}. Name another folder."
            ) from None
        lines = text.splitlines()
        if not lines:
            return None
        # a line that a killed program left unfinished stays one line, which readers pass over
        self._before = "" if text.endswith("\n") else "\n"
        if not is_log(lines[0]):
            raise RunFolderError(
                f"{str(self.path)!r} is there and is no log of a watched training, so nothing is "
                "added to it. Name another folder with out=."
            )
        return run_from_lines(lines)

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self.path, how, 0o666)
        self._lock(self._descriptor)
        self._append(self._before + self._header)

    def _lock(self, descriptor: int) -> None:
        """Take the log for this watch, which it is until its file is closed or its process ends.

        POSIX record locks: a process that was forked from a killed one does not go on holding them,
        and for two watches in one process there is the list.
        """
        mine = self.path.resolve()
        taken = _OPEN.get(mine) is not None
        if fcntl is not None and not taken:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as problem:  # or a disk that knows no locks
                taken = problem.errno in (errno.EACCES, errno.EAGAIN)
        if taken:
            self.close()
            raise RunFolderError(
                f"another watch writes {str(self.path)!r}, and two trainings in one log could not "
                "be told apart. Name another folder with out=, or close that watch."
            )
        _OPEN[mine] = self

    def _append(self, line: str) -> None:
        left = memoryview(line.encode("utf-8"))
        while left and self._descriptor is not None:
            left = left[os.write(self._descriptor, left) :]
