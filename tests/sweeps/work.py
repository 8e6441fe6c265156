"""Works of sweeps, in a module that a worker's process can import."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradflow.sweeps import SweepTask

Settings = Mapping[str, Any]


def logged(settings: Settings, key: str) -> dict[str, Any]:
    """Note in the file `log` that the task begins, and in which process; then take a while."""
    with Path(settings["log"]).open("a") as log:
        log.write(f"{settings['number']} {os.getpid()}\n")
    time.sleep(settings["seconds"])
    return {"number": settings["number"], "process": os.getpid()}


def gated(settings: Settings, key: str) -> dict[str, Any]:
    """Like `logged`, but the task with the number `gated` does not end until the file `go` is."""
    row = logged(settings, key)
    while settings["number"] == settings["gated"] and not Path(settings["go"]).exists():
        time.sleep(0.02)
    return row


def fatal(settings: Settings, key: str) -> dict[str, Any]:
    """Like `logged`, but a task whose number is in `fatal` kills its own process."""
    row = logged(settings, key)
    if settings["number"] in settings["fatal"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return row


def variables(settings: Settings, key: str) -> dict[str, Any]:
    """Return the environment variables that `names` lists."""
    return {name: os.environ.get(name) for name in settings["names"]}


def crashing(settings: Settings, key: str) -> dict[str, Any]:
    """Fail in the way that `how` says; else return the row that `row` is."""
    how = settings.get("how")
    if how == "raise":
        raise ArithmeticError("no number came of it")
    if how == "exit":
        sys.exit(3)
    if how == "nan":
        return {"loss": float("nan")}
    if how == "object":
        return {"loss": object()}
    return dict(settings["row"])


def tasks_of(log: Path, count: int, *, seconds: float = 0.05, **more: Any) -> list[SweepTask]:
    """Return tasks for `logged`, numbered from 0."""
    base = {"log": str(log), "seconds": seconds, **more}
    return [SweepTask({"number": number, **base}) for number in range(count)]


def kill_once(log: Path, number: int, go: Path) -> Callable[[str, int, int], None]:
    """Return a report that kills the worker of the task `number` in its middle, once."""

    def report(what: str, done: int, total: int) -> None:
        if number in dict(begun(log)) and not go.exists():
            os.kill(dict(begun(log))[number], signal.SIGKILL)
            go.touch()

    return report


def begun(log: Path) -> list[tuple[int, int]]:
    """Return the number and the process of every task that began so far, in order."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(number), int(process)) for number, process in map(str.split, lines)]
