"""One driver per run folder: a lock that the system takes back when its holder is gone."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from gradflow.errors import RunFolderError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".sweep.lock"
_HELD = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}


class FolderLock:
    """Held from its making to `release`, or to the end of the process, however it ends.

    It is a file of its own: closing any handle of a database would drop the database's own locks.
    A disk that knows no locks gives none, and then nothing keeps two drivers apart.

    Raises:
        RunFolderError: another process holds it.
        OSError: the file cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._file)
        except OSError as problem:
            if problem.errno in _HELD:
                os.close(self._file)
                raise RunFolderError(
                    f"another gradflow works on the sweep in {str(folder)!r}, and two would do "
                    "each task twice. Wait for it, or name another folder with --out."
                ) from None

    def release(self) -> None:
        """Let another process drive; nothing where that was done before."""
        with suppress(OSError):
            os.close(self._file)
        self._file = -1


def _lock(file: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
