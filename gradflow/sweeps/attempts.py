"""One attempt at a task, the same in this process and in a worker of a cluster.

Settings come and rows go as JSON text, so that a row is the same whatever way it travelled, and
torch computes with one thread, so that its sums are taken in the same order everywhere.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gradflow import __version__
from gradflow.errors import SettingError
from gradflow.sweeps.tasks import strict_json

Work = Callable[[Mapping[str, Any], str], dict[str, Any]]
WorkName = tuple[str, str]  # the module and the function in it
_LONGEST_REASON = 500  # characters of an exception's message


@dataclass(frozen=True)
class Attempt:
    """What came of one attempt: a row as JSON text, or the reason why there is none."""

    row: str | None
    reason: str | None
    started: str | None = None
    seconds: float | None = None


def attempt(work: Work, settings: str, key: str) -> Attempt:
    """Run `work` once on settings given as JSON text; what it raises becomes the reason."""
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    tick = time.perf_counter()
    row = reason = None
    try:
        with one_thread():
            row = strict_json(work(json.loads(settings), key), "results").decode()
    except SettingError as problem:
        reason = str(problem)
    except (Exception, SystemExit) as problem:  # a user's cell may raise anything
        reason = _reason(problem)
    return Attempt(row, reason, started, round(time.perf_counter() - tick, 6))


def name_of(work: Work) -> WorkName:
    """Return the name by which a worker imports a function.

    Raises:
        SettingError: it is no function at the top of a module.
    """
    module, name = getattr(work, "__module__", ""), getattr(work, "__qualname__", "")
    if getattr(sys.modules.get(module), name, None) is not work or module == "__main__":
        raise SettingError(
            f"workers import what they do by its name, and {work!r} has none that they know. "
            "Define it with def at the top of a module that can be imported there."
        )
    return module, name


def attempt_by_name(work: WorkName, settings: str, key: str) -> Attempt:
    """Import a work and run it once, in a worker.

    It goes by name because a worker that meets an unknown module while it reads a message ends.
    """
    module, name = work
    return attempt(getattr(importlib.import_module(module), name), settings, key)


def installed_version() -> str:
    """Return the version of gradflow here, that is, in the process that is asked."""
    return __version__


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread meanwhile, where anything has imported it."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _reason(problem: BaseException) -> str:
    text = str(problem).strip()[:_LONGEST_REASON]
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
