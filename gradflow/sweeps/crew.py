"""Hands tasks to the workers of a dask cluster, and tells a killed worker from a failed task.

A worker works on one task at a time, however many threads it has, and gets one when it is free, no
sooner: so a worker that dies takes along the task that it worked on and no other. dask says of a
task that its worker died, not whose fault it was; so such a task is begun again, up to `TRIES`
times, and the last time alone, when everything else is done. Only a task that kills its worker with
nobody else there is recorded as failed.

A worker that cannot read what it is sent (gradflow is not installed there, or another version is)
would end, and every other one with it; so each is asked what it has before it gets anything.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait

from distributed import Client, KilledWorker

from gradflow import __version__
from gradflow.errors import SchedulerError
from gradflow.sweeps.attempts import Attempt, WorkName, attempt_by_name, installed_version
from gradflow.sweeps.executors import Finished
from gradflow.sweeps.tasks import SweepTask

TRIES = 3
_DIED = (
    "its worker died each of the {times} times that it was begun, the last time with no other "
    "task beside it"
)
_GLANCE = 1.0  # seconds between two looks at who is there, when no task ends
_NOTICE = 30.0  # seconds without a worker, after which that is said (again)


class Crew:
    """The workers behind a client of dask.

    Args:
        client: of the scheduler.
        where: the scheduler, as errors call it.
        patience: seconds to wait for a worker when there is none; None to wait for ever.
    """

    def __init__(self, client: Client, where: str, *, patience: float | None) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)
        self._where = where
        self._patience = patience
        self._seen = self._noticed = time.monotonic()
        self._members: set[str] = set()  # addresses of workers that have the right gradflow
        self._waiting: deque[SweepTask] = deque()
        self._suspects: deque[SweepTask] = deque()  # begun only when nothing else runs
        self._running: dict[Future[Attempt], SweepTask] = {}
        self._lost: Counter[str] = Counter()  # how often a task's worker died, by its key
        self._accompanied: set[str] = set()  # keys of tasks that ran while another did

    def run(self, tasks: Sequence[SweepTask], work: WorkName) -> Generator[Finished | None]:
        """Yield each task as soon as it is over, and None now and then while there is no worker.

        Raises:
            SchedulerError: the scheduler or all its workers are gone, or one cannot run `work`.
        """
        self._waiting.extend(tasks)
        while self._waiting or self._suspects or self._running:
            self._hand_out(work)
            if self._is_to_notice():
                yield None
            ended, _ = wait(self._running, timeout=_GLANCE, return_when=FIRST_COMPLETED)
            for task, result in map(self._end, ended):
                if result is not None:
                    yield Finished(task, result, self._lost[task.key] + 1)
                elif not self._tried_again(task):
                    times = self._lost[task.key]
                    yield Finished(task, Attempt(None, _DIED.format(times=times)), times)

    def _hand_out(self, work: WorkName) -> None:
        for _ in range(self._free()):
            if self._waiting:
                self._begin(self._waiting.popleft(), work)
            elif self._suspects and not self._running:
                self._begin(self._suspects.popleft(), work)

    def _tried_again(self, task: SweepTask) -> bool:
        """Put a task whose worker died back, unless it has had all its tries."""
        lost = self._lost[task.key]
        if lost < TRIES - 1:
            self._waiting.append(task)
        elif lost < TRIES or task.key in self._accompanied:
            self._suspects.append(task)
        else:
            return False
        return True

    def _begin(self, task: SweepTask, work: WorkName) -> None:
        if self._running:
            self._accompanied |= {task.key, *(other.key for other in self._running.values())}
        else:
            self._accompanied.discard(task.key)
        future = self._executor.submit(attempt_by_name, work, task.text, task.key)
        self._running[future] = task

    def _end(self, future: Future[Attempt]) -> tuple[SweepTask, Attempt | None]:
        """Return an ended task and what came of it, None where its worker died."""
        task = self._running.pop(future)
        try:
            return task, future.result()
        except KilledWorker as death:
            self._lost[task.key] += death.allowed_failures + 1
            return task, None
        except CancelledError:
            raise self._gone("the connection was lost") from None
        except Exception as problem:  # what the work itself raises is no exception any more here
            raise self._unfit("a worker", f"{type(problem).__name__}: {problem}") from None

    def _free(self) -> int:
        """Return how many more tasks can be begun at once."""
        try:
            workers = set(self._client.nthreads())
            self._check(workers - self._members)
        except OSError as problem:
            if isinstance(problem, SchedulerError):
                raise
            raise self._gone(str(problem)) from None
        self._members &= workers
        now = time.monotonic()
        if workers:
            self._seen = now
        elif self._patience is not None and now - self._seen > self._patience:
            raise SchedulerError(
                f"{self._where} has no worker, and none came for {self._patience:.0f} seconds. "
                "Start one and run the same command again: it goes on from the stored rows."
            )
        return max(0, len(self._members) - len(self._running))

    def _is_to_notice(self) -> bool:
        """Return whether there has been no worker for a while, and nothing was said of it."""
        now = time.monotonic()
        if now - max(self._seen, self._noticed) < _NOTICE:
            return False
        self._noticed = now
        return True

    def _check(self, strangers: Iterable[str]) -> None:
        """Take those workers in that have the same gradflow as this process."""
        asked = list(strangers)
        if not asked:
            return
        answers = self._client.run(installed_version, workers=asked, on_error="return")
        for address, answer in answers.items():
            if isinstance(answer, OSError):  # it is gone already
                continue
            if isinstance(answer, Exception):
                raise self._unfit(f"the worker {address}", f"{type(answer).__name__}: {answer}")
            if answer != __version__:
                raise self._unfit(f"the worker {address}", f"it has gradflow {answer}")
            self._members.add(address)

    def _unfit(self, who: str, why: str) -> SchedulerError:
        return SchedulerError(
            f"{who} of {self._where} cannot do this work: {why}. Workers need the same gradflow "
            f"({__version__}), dask and files as this process has."
        )

    def _gone(self, why: str) -> SchedulerError:
        return SchedulerError(
            f"{self._where} cannot be reached any more: {why}. Start it and run the same command "
            "again: it goes on from the stored rows."
        )
