"""Where a fault in a user's code happened, in words: the error, its message, file and line."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import torch

LONGEST = 200  # letters of a message that is not ours

_OURS = (Path(__file__).resolve().parents[1], Path(torch.__file__).resolve().parent)
_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib"))
_STANDARD = Path(sysconfig.get_path("stdlib")).resolve()


def describe_fault(error: BaseException) -> str:
    """Return "TypeError: message (cell.py:12)" in one line.

    The place is the deepest one in the user's own code; it is left out where there is none.

    >>> describe_fault(ValueError("no such width"))
    'ValueError: no such width'
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    text = " ".join(str(error).split())
    if len(text) > LONGEST:
        text = text[:LONGEST].rstrip() + " ..."
    if isinstance(error, SystemExit):
        said = f"sys.exit({error.code!r})"
    else:
        said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = place_of_fault(error)
    return f"{said} ({place})" if place else said


def place_of_fault(error: BaseException) -> str | None:
    """Return "cell.py:12", the deepest line of the user's code that the error came through."""
    frames = [
        (Path(frame.filename).resolve(), frame.lineno)
        for frame in reversed(traceback.extract_tb(error.__traceback__))
        if not frame.filename.startswith("<")  # <stdin>, <string>
    ]
    frames = [frame for frame in frames if not _is_within(frame[0], _OURS)]
    for own in (
        [frame for frame in frames if not _is_within(frame[0], (_STANDARD, *_INSTALLED))],
        [frame for frame in frames if _is_within(frame[0], _INSTALLED)],
    ):
        if own:
            return f"{own[0][0].name}:{own[0][1]}"
    return None


def _is_within(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
