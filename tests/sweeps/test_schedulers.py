"""A scheduler that runs elsewhere: its workers are used, never ended, and their loss is told."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from distributed import Client

from gradflow.errors import SchedulerError
from gradflow.sweeps import clusters, crew, load_rows, run_sweep
from tests.sweeps.processes import PATIENCE, alive, started, wait_until
from tests.sweeps.work import begun, fatal, gated, kill_once, logged, tasks_of

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@dataclass(frozen=True)
class Cluster:
    """A scheduler and two workers, each a process of its own on this machine."""

    address: str
    scheduler: int
    workers: tuple[int, ...]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Start them as a lab does, from the command line; ports are free ones."""
    where, log = tmp_path / "scheduler.json", tmp_path / "scheduler.log"
    at = ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    with ExitStack() as stack:
        arguments = [*at, "--port", "0", "--scheduler-file", str(where)]
        scheduler = stack.enter_context(
            started("distributed.cli.dask_scheduler", arguments, log=log)
        )
        wait_until(lambda: scheduler.poll() is not None or _is_whole(where), "its start")
        assert scheduler.poll() is None, log.read_text()
        address = json.loads(where.read_text())["address"]
        arguments = [address, *at, "--nthreads", "1", "--local-directory", str(tmp_path)]
        workers = [
            stack.enter_context(
                started("distributed.cli.dask_worker", arguments, log=tmp_path / f"{name}.log")
            )
            for name in "ab"
        ]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        yield Cluster(address, scheduler.pid, tuple(worker.pid for worker in workers))


def _is_whole(file: Path) -> bool:
    """Return whether a file of JSON is there and written to its end."""
    with suppress(OSError, ValueError):
        return "address" in json.loads(file.read_text())
    return False


def test_a_sweep_runs_on_the_workers_of_a_scheduler(cluster: Cluster, tmp_path: Path):
    """On both, and they are still there afterwards, for the next sweep."""
    log = tmp_path / "log"
    tasks = tasks_of(log, 6, seconds=0.5)
    outcome = run_sweep(tasks, logged, folder=tmp_path, executor=cluster.address)
    assert [(row.row or {})["number"] for row in outcome.rows] == list(range(6))
    assert len({process for _, process in begun(log)}) == 2
    assert len(alive([cluster.scheduler, *cluster.workers])) == 3
    more = tasks_of(log, 7, seconds=0.5)
    assert len(run_sweep(more, logged, folder=tmp_path, executor=cluster.address).rows) == 7
    assert [number for number, _ in begun(log)][6:] == [6]


def test_a_worker_of_a_scheduler_that_is_killed_costs_no_row(cluster: Cluster, tmp_path: Path):
    """Its nanny starts it again, and the task that it had is begun again."""
    log, go = tmp_path / "log", tmp_path / "go"
    tasks = tasks_of(log, 6, seconds=0.1, gated=1, go=str(go))
    kill = kill_once(log, 1, go)
    outcome = run_sweep(tasks, gated, folder=tmp_path, executor=cluster.address, report=kill)
    assert [(row.row or {})["number"] for row in outcome.rows] == list(range(6))
    numbers = [number for number, _ in begun(log)]
    assert numbers.count(1) == 2
    assert set(numbers) == set(range(6))


def test_a_scheduler_that_is_killed_is_one_message_and_rows_stay(cluster: Cluster, tmp_path: Path):
    """What is stored stays, and another executor does the rest."""
    tasks = tasks_of(tmp_path / "log", 6, seconds=0.3)

    def kill_the_scheduler(what: str, done: int, total: int) -> None:
        if done == 2:
            os.kill(cluster.scheduler, signal.SIGKILL)

    with pytest.raises(SchedulerError, match=r"cannot be reached any more.*run the same command"):
        run_sweep(
            tasks, logged, folder=tmp_path, executor=cluster.address, report=kill_the_scheduler
        )
    stored = [row for row in load_rows(tmp_path) if row.is_done]
    assert 2 <= len(stored) < 6
    outcome = run_sweep(tasks, logged, folder=tmp_path, executor="serial")
    assert [(row.row or {})["number"] for row in outcome.rows] == list(range(6))


def test_a_scheduler_without_workers_is_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """After a while the progress says so, and after minutes, here seconds, it is an error."""
    monkeypatch.setattr(clusters, "_REMOTE_PATIENCE", 2.0)
    monkeypatch.setattr(crew, "_NOTICE", 0.5)
    for worker in cluster.workers:
        os.killpg(worker, signal.SIGKILL)
    seen: list[tuple[str, int, int]] = []
    with pytest.raises(SchedulerError, match="has no worker, and none came for 2 seconds"):
        run_sweep(
            tasks_of(tmp_path / "log", 1),
            logged,
            folder=tmp_path,
            executor=cluster.address,
            report=lambda *now: seen.append(now),
        )
    assert set(seen) == {("tasks, waiting for a worker", 0, 1)}


def test_an_address_where_nobody_listens_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It says how to start a scheduler, and how to name it."""
    monkeypatch.setattr(clusters, "_CONNECT", 1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    tasks = tasks_of(tmp_path / "log", 1)
    for wrong in (address, "tcp://no such host:1", "quic://127.0.0.1:1"):
        with pytest.raises(SchedulerError, match=r"cannot be reached.*`dask scheduler`"):
            run_sweep(tasks, logged, folder=tmp_path, executor=wrong)


def test_a_worker_without_gradflow_is_told_and_lives_on(cluster: Cluster, tmp_path: Path):
    """Sent a task that it cannot read it would end, and the next one with it."""
    (tmp_path / "gradflow.py").write_text("raise ModuleNotFoundError('not in this one')")
    with Client(cluster.address, set_as_default=False) as client:
        before = set(client.nthreads())
    for worker in cluster.workers:
        os.killpg(worker, signal.SIGKILL)
    arguments = [cluster.address, "--host", "127.0.0.1", "--local-directory", str(tmp_path)]
    path, log = {"PYTHONPATH": str(tmp_path)}, tmp_path / "c.log"
    with started("distributed.cli.dask_worker", arguments, log=log, folder=tmp_path, **path):
        with Client(cluster.address, set_as_default=False) as client:
            wait_until(lambda: len(set(client.nthreads()) - before) == 1, "its start")
            wait_until(lambda: not set(client.nthreads()) & before, "the end of the others")
            (address,) = client.nthreads()
        with pytest.raises(SchedulerError, match=rf"{address}.*not in this one.*same gradflow"):
            run_sweep(
                tasks_of(tmp_path / "log", 1), logged, folder=tmp_path, executor=cluster.address
            )
        with Client(cluster.address, set_as_default=False) as client:
            assert list(client.nthreads()) == [address]
            assert client.submit(sum, [1, 2]).result(timeout=PATIENCE) == 3


def test_a_worker_of_another_version_is_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its rows would be of another program."""
    monkeypatch.setattr(crew, "__version__", "0.0.7")
    with pytest.raises(SchedulerError, match=r"it has gradflow 0\.1.*same gradflow \(0\.0\.7\)"):
        run_sweep(tasks_of(tmp_path / "log", 1), logged, folder=tmp_path, executor=cluster.address)


def test_a_fatal_task_on_a_scheduler_fails_alone(cluster: Cluster, tmp_path: Path):
    """The scheduler itself tries it on some workers first; then it is alone, and fails."""
    log = tmp_path / "log"
    tasks = tasks_of(log, 3, seconds=0.1, fatal=[1])
    outcome = run_sweep(tasks, fatal, folder=tmp_path, executor=cluster.address)
    assert [row.status for row in outcome.rows] == ["done", "failed", "done"]
    assert outcome.rows[1].attempts == [number for number, _ in begun(log)].count(1)
