"""Drives a sweep in a process of its own, which tests stop in every way.

python -m tests.sweeps.drive FOLDER EXECUTOR COUNT SECONDS
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gradflow.errors import Interrupted
from gradflow.sweeps import run_sweep
from tests.sweeps.work import logged, tasks_of


def main(arguments: Sequence[str]) -> int:
    """Run a sweep of `logged` with two workers; print a line for each row that is stored."""
    folder, executor, count, seconds = arguments

    def acknowledge(what: str, done: int, total: int) -> None:
        sys.stdout.write(f"{done}\n")
        sys.stdout.flush()

    tasks = tasks_of(Path(folder) / "log", int(count), seconds=float(seconds))
    try:
        run_sweep(
            tasks,
            logged,
            folder=Path(folder),
            executor=executor,
            workers=2,
            report=acknowledge,
        )
    except Interrupted as stop:
        sys.stderr.write(f"Interrupted: {stop}\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
