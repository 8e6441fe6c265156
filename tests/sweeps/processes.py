"""Processes that tests start, watch and stop; every wait has an end, for a machine that is busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 90.0  # seconds; what is waited for takes one or two on a quiet machine


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Return as soon as something happened."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"{what} did not happen in {PATIENCE:.0f} seconds"
        time.sleep(0.05)


def alive(processes: Iterable[int]) -> list[int]:
    """Return those of the processes that still run (a zombie does not)."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def family(process: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    return [child.pid for child in psutil.Process(process).children(recursive=True)]


@contextmanager
def started(
    module: str,
    arguments: Sequence[str],
    *,
    log: Path | None = None,
    folder: Path = ROOT,
    **variables: str,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python module in a session of its own; whatever of it is left is killed at the end.

    What it writes goes to the file `log`, or can be read from its pipes: one that writes a lot
    needs the file. It works in `folder`, and `variables` are added to its environment.
    """
    strict = ["-W", "error"] if module.startswith("tests.") else []  # of ours, not of others
    output = subprocess.PIPE if log is None else log.open("wb")
    process = subprocess.Popen(
        [sys.executable, *strict, "-m", module, *arguments],
        cwd=folder,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**os.environ, **variables},
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not isinstance(output, int):
            output.close()
