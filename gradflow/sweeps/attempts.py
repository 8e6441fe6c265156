"""One attempt at a task, the same in this process and in a worker of a cluster.

Settings come and rows go as JSON text, so that a row is the same whatever way it travelled, and
torch computes with one thread, so that its sums are taken in the same order everywhere.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gradflow.errors import SettingError
from gradflow.sweeps.tasks import strict_json

Work = Callable[[Mapping[str, Any], str], dict[str, Any]]
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
