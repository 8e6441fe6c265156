"""A driver that is stopped, in whatever way, leaves its rows whole and no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gradflow.sweeps import load_rows, run_sweep
from tests.sweeps.processes import PATIENCE, alive, family, started, wait_until
from tests.sweeps.work import begun, logged, tasks_of

pytestmark = pytest.mark.timeout(3 * PATIENCE)
COUNT, SECONDS = 12, 0.3


def read_lines(process: subprocess.Popen[bytes], count: int) -> int:
    """Return the last of `count` numbers that a driver printed: so many rows it acknowledged."""
    assert process.stdout is not None
    assert process.stderr is not None
    lines = [process.stdout.readline() for _ in range(count)]
    assert lines[-1], process.stderr.read().decode()
    return int(lines[-1])


def resume(folder: Path) -> None:
    """Do the rest of the sweep here, and check that each row is there once."""
    tasks = tasks_of(folder / "log", COUNT, seconds=SECONDS)
    outcome = run_sweep(tasks, logged, folder=folder, executor="serial")
    assert [(row.row or {})["number"] for row in outcome.rows] == list(range(COUNT))


def test_a_killed_driver_loses_nothing_acknowledged_and_leaves_no_process(tmp_path: Path):
    """kill -9 of the driver: its workers end by themselves, and no stored task is done again."""
    arguments = [str(tmp_path), "local", str(COUNT), str(SECONDS)]
    with started("tests.sweeps.drive", arguments) as driver:
        acknowledged = read_lines(driver, 3)
        children = family(driver.pid)
        assert len(children) >= 2
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait(PATIENCE)
        wait_until(lambda: not alive(children), "the end of all workers")
    stored = {row.settings["number"] for row in load_rows(tmp_path) if row.is_done}
    assert acknowledged <= len(stored) < COUNT
    at_the_kill = begun(tmp_path / "log")
    assert alive({process for _, process in at_the_kill}) == []
    resume(tmp_path)
    again = {number for number, _ in begun(tmp_path / "log")[len(at_the_kill) :]}
    assert again == set(range(COUNT)) - stored


@pytest.mark.parametrize("executor", ["serial", "local"])
def test_control_c_ends_with_130_and_the_sweep_goes_on_later(tmp_path: Path, executor: str):
    """A terminal sends the signal to the whole group; one line is said, and no process is left."""
    arguments = [str(tmp_path), executor, str(COUNT), str(SECONDS)]
    with started("tests.sweeps.drive", arguments) as driver:
        acknowledged = read_lines(driver, 2)
        children = family(driver.pid)
        os.killpg(driver.pid, signal.SIGINT)
        _, said = driver.communicate(timeout=PATIENCE)
        assert driver.returncode == 130, said
        wait_until(lambda: not alive(children), "the end of all processes")
    stored = [row for row in load_rows(tmp_path) if row.is_done]
    assert acknowledged <= len(stored) < COUNT
    assert said.decode().splitlines() == [
        f"Interrupted: {len(stored)} of {COUNT} tasks are stored. "
        "The same command goes on from there."
    ]
    resume(tmp_path)


def test_control_c_while_workers_start_leaves_none(tmp_path: Path):
    """Half a cluster could not be closed; so it is whole first, and then closed."""
    arguments = [str(tmp_path), "local", str(COUNT), str(SECONDS)]
    with started("tests.sweeps.drive", arguments) as driver:
        wait_until(lambda: len(family(driver.pid)) >= 2, "the start of the first worker")
        children = family(driver.pid)
        os.killpg(driver.pid, signal.SIGINT)
        _, said = driver.communicate(timeout=PATIENCE)
        assert driver.returncode == 130, said
        wait_until(lambda: not alive(children), "the end of all workers")
    (line,) = said.decode().splitlines()
    assert line.endswith(f"of {COUNT} tasks are stored. The same command goes on from there.")
    resume(tmp_path)


def test_a_terminated_driver_leaves_no_process(tmp_path: Path):
    """SIGTERM is how a batch system ends a job whose time is over."""
    arguments = [str(tmp_path), "local", str(COUNT), str(SECONDS)]
    with started("tests.sweeps.drive", arguments) as driver:
        acknowledged = read_lines(driver, 1)
        children = family(driver.pid)
        driver.terminate()
        driver.wait(PATIENCE)
        wait_until(lambda: not alive(children), "the end of all workers")
    assert acknowledged <= sum(row.is_done for row in load_rows(tmp_path)) < COUNT
