"""Workers of this machine: the same rows as without them, and a worker that dies costs no row."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from gradflow.sweeps import SweepTask, load_rows, run_sweep
from tests.sweeps.processes import PATIENCE, alive, wait_until
from tests.sweeps.training import train
from tests.sweeps.work import begun, crashing, fatal, gated, kill_once, logged, tasks_of, variables

pytestmark = pytest.mark.timeout(3 * PATIENCE)
MEASURED = {"memory", "process"}


def test_rows_do_not_depend_on_the_executor(tmp_path: Path):
    """Serial and on two workers: equal bit for bit in all but time, memory and process."""
    grid = [(seed, rate) for seed in (0, 1) for rate in (0.01, 0.1)]
    tasks = [SweepTask({"seed": seed, "hidden": 5, "learning_rate": rate}) for seed, rate in grid]
    rows = {}
    for name, executor, workers in (("here", "serial", None), ("there", "local", 2)):
        outcome = run_sweep(
            tasks, train, folder=tmp_path / name, executor=executor, workers=workers
        )
        rows[name] = outcome.rows
    compared = {
        name: [
            (row.key, row.status, [(k, v) for k, v in (row.row or {}).items() if k not in MEASURED])
            for row in found
        ]
        for name, found in rows.items()
    }
    assert compared["here"] == compared["there"]
    assert {row.row["threads"] for row in rows["there"] if row.row} == {1}
    assert {row.row["process"] for row in rows["here"] if row.row} == {os.getpid()}
    assert os.getpid() not in {row.row["process"] for row in rows["there"] if row.row}


def test_a_killed_worker_costs_no_row(tmp_path: Path):
    """kill -9 in the middle of a task: it alone is begun again, and every row is there once."""
    log, go = tmp_path / "log", tmp_path / "go"
    tasks = tasks_of(log, 6, seconds=0.1, gated=1, go=str(go))
    kill = kill_once(log, 1, go)
    outcome = run_sweep(tasks, gated, folder=tmp_path, workers=2, report=kill)
    assert [(row.row or {}).get("number") for row in outcome.rows] == list(range(6))
    assert [row.attempts for row in outcome.rows] == [1, 2, 1, 1, 1, 1]
    numbers = [number for number, _ in begun(log)]
    assert numbers.count(1) == 2
    assert set(numbers) == set(range(6))
    assert load_rows(tmp_path) == outcome.rows


def test_tasks_that_kill_their_workers_fail_alone(tmp_path: Path):
    """Each is begun three times, the last time with nobody beside it; all others are done."""
    log = tmp_path / "log"
    tasks = tasks_of(log, 6, seconds=0.1, fatal=[1, 2])
    outcome = run_sweep(tasks, fatal, folder=tmp_path, workers=2)
    assert [(row.settings["number"], row.attempts) for row in outcome.failed] == [(1, 3), (2, 3)]
    for row in outcome.failed:
        assert row.reason is not None
        assert row.reason.startswith("its worker died each of the 3 times that it was begun")
    assert [row.settings["number"] for row in outcome.rows if row.is_done] == [0, 3, 4, 5]
    numbers = [number for number, _ in begun(log)]
    # Others may be there twice: a row that the driver has not fetched is lost with its worker.
    assert (numbers.count(1), numbers.count(2)) == (3, 3)
    assert sorted(numbers[-2:]) == [1, 2]
    assert set(numbers) == set(range(6))
    workers = {process for _, process in begun(log)}
    wait_until(lambda: not alive(workers), "the end of all workers")


def test_workers_start_with_what_makes_them_fast_and_leave_this_process_as_it_was(tmp_path: Path):
    """Their C library keeps freed memory for the next step, and their algebra has one thread."""
    wanted = {
        "MALLOC_MMAP_THRESHOLD_": "33554432",
        "MALLOC_TRIM_THRESHOLD_": "1073741824",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    before = dict(os.environ)
    (row,) = run_sweep([SweepTask({"names": list(wanted)})], variables, folder=tmp_path).rows
    assert row.row == wanted
    assert dict(os.environ) == before


def test_a_task_that_raises_in_a_worker_says_why(tmp_path: Path):
    """Its row is that of a serial run, and the worker goes on."""
    tasks = [SweepTask({"how": how}) for how in ("raise", "exit", "nan")]
    tasks.append(SweepTask({"row": {"number": 1}}))
    here = run_sweep(tasks, crashing, folder=tmp_path / "here", executor="serial").rows
    there = run_sweep(tasks, crashing, folder=tmp_path / "there", workers=1).rows
    assert [row.reason for row in there] == [row.reason for row in here]
    assert [(row.status, row.attempts) for row in there] == [("failed", 1)] * 3 + [("done", 1)]


def test_two_sweeps_run_beside_each_other(tmp_path: Path):
    """No port is fixed: each has free ones, also where dask's usual ones are taken."""
    with socket.socket() as taken:
        with suppress(OSError):  # taken by somebody else, which is as good
            taken.bind(("", 8787))
            taken.listen()
        outcome = run_sweep(tasks_of(tmp_path / "log", 1, seconds=0), logged, folder=tmp_path)
    assert [row.status for row in outcome.rows] == ["done"]
