"""Standard output carries the result and nothing else; everything else goes to standard error."""

from __future__ import annotations

import ctypes
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING

from gradflow.errors import OutputError

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDEST = 10_000  # columns; no table of ours comes near


def say(text: str) -> None:
    """Write a line to standard error; a reader that went away is no reason to stop."""
    if sys.stderr is None:  # closed by the caller; print would fall back to standard output
        return
    with suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def write_result(text: str) -> None:
    """Write the result to standard output.

    A reader that stops early (`| head`) is no error, and the run is still saved.

    Raises:
        OutputError: the disk behind standard output is full, or the like.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as problem:
        discard_output()
        raise OutputError(f"standard output cannot be written: {problem.strerror}.") from None


@contextmanager
def kept_for_the_result() -> Iterator[None]:
    """Send to standard error what anything else writes to standard output meanwhile.

    That is not Python's `print` alone: LAPACK in C and a process that a user's cell starts write to
    the descriptor itself.
    """
    kept = None
    with suppress(OSError, ValueError, AttributeError):  # closed, or no file
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            with suppress(OSError, AttributeError):  # C has a buffer of its own
                ctypes.CDLL(None).fflush(None)
            os.dup2(kept, 1)
            os.close(kept)


def discard_output() -> None:
    """Send what is still in standard output's buffer nowhere, so that Python can end in peace."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def write_table(table: RenderableType) -> None:
    """Show a table: in the terminal's colours and width, or plain and never cut when piped."""
    from rich.console import Console
    from rich.measure import Measurement

    if sys.stdout is not None and sys.stdout.isatty():
        Console().print(table)
        return
    buffer = io.StringIO()
    console = Console(
        file=buffer, force_terminal=False, no_color=True, width=WIDEST, legacy_windows=False
    )
    needed = Measurement.get(console, console.options, table).maximum
    console.width = max(80, min(needed, WIDEST))
    console.print(table)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    write_result("\n".join(lines) + "\n")


def tolerate_any_text() -> None:
    """Let a terminal that has no UTF-8 show an escape instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
