"""The log of a watched training on disk: a line is in the system's hands before anyone goes on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradflow.errors import RunFolderError
from gradflow.records.watch import FlowFinding, FlowSample, WatchRun
from gradflow.records.watch_log import (
    LOG_NAME,
    header_line,
    is_log,
    run_from_lines,
    sample_line,
)


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
        self._append(self._before + self._header)

    def _append(self, line: str) -> None:
        left = memoryview(line.encode("utf-8"))
        while left and self._descriptor is not None:
            left = left[os.write(self._descriptor, left) :]
