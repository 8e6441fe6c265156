"""Workers on this machine's cores, which end with this process however it ends."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker

from distributed import LocalCluster

from gradflow.errors import SchedulerError

# dask starts a small web server in any case, at a fixed port that another sweep may have.
_NO_PAGE = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


@contextmanager
def local_workers(count: int) -> Iterator[LocalCluster]:
    """Start workers, each watched by a nanny that starts it again if it dies.

    When this process is gone, they are too: each waits for the end of a pipe that it holds.

    Raises:
        SchedulerError: they cannot be started.
    """
    with ExitStack() as stack:
        try:
            with _interrupts_later(), _interrupts_only_here():
                cluster = LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=None,
                    scheduler_kwargs=_NO_PAGE,
                    silence_logs=logging.CRITICAL,
                )
                stack.enter_context(_closed(cluster))
        except (OSError, RuntimeError) as problem:
            raise SchedulerError(
                f"{count} worker processes cannot be started here: {problem}. "
                "Ask for fewer with --workers, or for none with --executor serial."
            ) from None
        yield cluster


@contextmanager
def _closed(cluster: LocalCluster) -> Iterator[None]:
    with cluster:
        try:
            yield
        except BaseException:
            _end_at_once(cluster)
            raise


def _end_at_once(cluster: LocalCluster) -> None:
    """Kill the workers of a sweep that is stopped: their tasks will be begun again anyway.

    Asked in peace, a worker would first wait some seconds for its task.
    """
    for nanny in cluster.workers.values():
        process = nanny.pid
        nanny.close_gracefully()  # it starts no other worker now
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Raise what Ctrl-C asks for at the end: half a cluster could not be closed."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes here
        yield
        return
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if asked:
        raise KeyboardInterrupt


@contextmanager
def _interrupts_only_here() -> Iterator[None]:
    """Let Ctrl-C, which a terminal sends to every process, reach the driver alone.

    The signal mask of this thread goes on to the threads and processes that are made meanwhile.
    Python's resource tracker must run before: to start it, the thread that makes the first process
    would take the signal out of its mask.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
