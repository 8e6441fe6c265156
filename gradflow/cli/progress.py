"""Progress of long runs on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gradflow.cli.streams import say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_SECONDS = 2.0  # a run that is over by then needs no progress
PLAIN_SECONDS = 10.0  # between two lines in a log file


class ProgressReport:
    """Called as `report(what, done, total)`; silent for a run that is soon over.

    A context manager, so that the live line is gone whatever ends the run.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._shown_at = time.monotonic()
        self.live: Progress | None = None  # the bar, once it is shown
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of `what` are done."""
        if not self._enabled:
            return
        now = time.monotonic()
        if self.live is not None and self._task is not None:
            self.live.update(self._task, description=what, completed=done, total=total)
        elif sys.stderr is not None and sys.stderr.isatty():
            if now - self._shown_at >= QUIET_SECONDS:
                self._start_live(what, done, total)
        elif now - self._shown_at >= PLAIN_SECONDS:
            self._shown_at = now
            say(f"{what}: {done} of {total}")

    def _start_live(self, what: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.live = Progress(console=Console(stderr=True), transient=True)
        self._task = self.live.add_task(what, completed=done, total=total)
        self.live.start()
