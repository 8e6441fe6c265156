"""Where a result came from: enough to run it again and to explain a difference.

Versions come from the installed packages' own records, so nothing heavy is imported for them.
"""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradflow import __version__

if TYPE_CHECKING:  # so that `gradflow doctor` can say what is broken when pydantic is
    from gradflow.settings import Settings

_CHECKOUT = Path(__file__).parent.parent


class Stopwatch:
    """When a run started and how long it has taken.

    >>> Stopwatch().seconds < 60
    True
    """

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._tick = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the stopwatch was made, on a clock that never jumps."""
        return round(time.perf_counter() - self._tick, 3)


def provenance(
    command: str, settings: Settings | None, watch: Stopwatch, argv: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the `environment` object of a result, plain JSON.

    Args:
        command: the question that was asked, such as "decay".
        settings: every setting in force, of which device, dtype and seed are repeated; None for
            a command that has none.
        watch: started before the measurement.
        argv: the command line, `sys.argv` when not given.
    """
    return {
        "gradflow": __version__,
        **git_state(),
        "argv": list(sys.argv if argv is None else argv),
        "settings_sha256": None if settings is None else settings.digest(command),
        "seed": getattr(settings, "seed", None),
        "python": platform.python_version(),
        "torch": package_version("torch"),
        "numpy": package_version("numpy"),
        "platform": platform.platform(),
        "threads": thread_count(),
        "device": getattr(settings, "device", "cpu"),
        "dtype": getattr(settings, "dtype", None),
        "started": watch.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": watch.seconds,
    }


def package_version(name: str) -> str | None:
    """Return the version of an installed package, None where it is not installed.

    >>> package_version("no-such-package") is None
    True
    """
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def thread_count() -> int | None:
    """Return the threads that torch computes with, None while nothing has imported torch."""
    torch = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())


@functools.cache
def git_state(folder: Path = _CHECKOUT) -> dict[str, Any]:
    """Return the commit that `folder` is a checkout of and whether it was changed since.

    Both are None where there is no checkout or no git.
    """
    if not (folder / ".git").exists():
        return {"git_sha": None, "git_dirty": None}
    sha = _git(folder, "rev-parse", "HEAD")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"git_sha": sha or None, "git_dirty": None if status is None else bool(status)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
