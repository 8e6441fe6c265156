"""A sweep does each task once, stores each row as it comes, and goes on where it stopped."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradflow.errors import Interrupted, RunFolderError, SettingError, UnknownNameError
from gradflow.sweeps import SweepTask, load_rows, plan_sweep, run_sweep
from gradflow.sweeps.row_store import RowStore
from tests.sweeps.training import train
from tests.sweeps.work import begun, crashing, logged, tasks_of


def row_task(number: int, **row: object) -> SweepTask:
    """Return a task of `crashing` that returns a row."""
    return SweepTask({"number": number, "row": {"number": number, **row}})


def test_the_key_of_a_task_is_the_sha256_of_its_settings():
    """Computed here from the canonical text itself: sorted keys, no blanks."""
    text = b'{"cell":"gru","gates":[0.5,1],"seed":3}'
    task = SweepTask({"seed": 3, "gates": (0.5, 1), "cell": "gru"})
    assert task.key == hashlib.sha256(text).hexdigest()
    assert task.key != SweepTask({"seed": 4, "gates": (0.5, 1), "cell": "gru"}).key


def test_settings_that_are_no_json_are_refused():
    """A number that is not finite has no form that all read alike."""
    with pytest.raises(SettingError, match="must be strict JSON"):
        _ = SweepTask({"rate": float("inf")}).key


def test_rows_come_in_the_order_of_the_tasks_and_tell_how_it_went(tmp_path: Path):
    """A row as the work returned it, its keys in order, and when, how long and how often."""
    tasks = [row_task(number, b=1, a=[number, None]) for number in (2, 0, 1)]
    outcome = run_sweep([*tasks, tasks[0]], crashing, folder=tmp_path, executor="serial")
    assert [row.key for row in outcome.rows] == [task.key for task in tasks]
    assert [list(row.row or {}) for row in outcome.rows] == [["number", "b", "a"]] * 3
    assert [row.settings for row in outcome.rows] == [dict(task.settings) for task in tasks]
    assert all((row.status, row.attempts, row.reason) == ("done", 1, None) for row in outcome.rows)
    assert all(0 <= (row.seconds or -1) < 60 for row in outcome.rows)
    assert outcome.failed == ()


def test_what_is_stored_is_not_done_again(tmp_path: Path):
    """The same call twice; then with one more task, which alone is run."""
    log = tmp_path / "log"
    for count in (3, 3, 4):
        tasks = tasks_of(log, count, seconds=0)
        outcome = run_sweep(tasks, logged, folder=tmp_path, executor="serial")
        assert [(row.row or {})["number"] for row in outcome.rows] == list(range(count))
    assert [number for number, _ in begun(log)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "ArithmeticError: no number came of it"),
        ("exit", "SystemExit: 3"),
        ("nan", "the results of a task must be strict JSON"),
        ("object", "the results of a task must be strict JSON"),
    ],
)
def test_a_task_that_crashes_is_a_row_with_its_reason(tmp_path: Path, how: str, reason: str):
    """The others are done all the same, and nothing is raised."""
    tasks = [row_task(0), SweepTask({"how": how}), row_task(1)]
    outcome = run_sweep(tasks, crashing, folder=tmp_path, executor="serial")
    assert [row.status for row in outcome.rows] == ["done", "failed", "done"]
    (failed,) = outcome.failed
    assert failed.row is None
    assert (failed.reason or "").startswith(reason)


def test_failed_tasks_are_done_again_when_asked(tmp_path: Path):
    """Not by themselves: what crashed once mostly crashes again, after hours."""
    task = SweepTask({"how": "raise"})
    run_sweep([task], crashing, folder=tmp_path, executor="serial")
    (kept,) = run_sweep([task], logged, folder=tmp_path, executor="serial").rows
    assert kept.reason == "ArithmeticError: no number came of it"
    again = run_sweep([task], logged, folder=tmp_path, executor="serial", retry_failed=True)
    (renewed,) = again.rows
    assert renewed.reason == "KeyError: 'log'"
    assert [row.reason for row in load_rows(tmp_path)] == [renewed.reason]


def test_a_stopped_sweep_keeps_its_rows_and_goes_on(tmp_path: Path):
    """Ctrl-C after the second of four rows; then the other two are done, and no more."""
    log = tmp_path / "log"
    tasks = tasks_of(log, 4, seconds=0)

    def stop(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="2 of 4 tasks are stored") as stopped:
        run_sweep(tasks, logged, folder=tmp_path, executor="serial", report=stop)
    partial = getattr(stopped.value.partial, "rows", ())
    assert [row.settings["number"] for row in partial] == [0, 1]
    assert [row.status for row in load_rows(tmp_path)] == ["done", "done", "waiting", "waiting"]
    run_sweep(tasks, logged, folder=tmp_path, executor="serial")
    assert [number for number, _ in begun(log)] == [0, 1, 2, 3]


def test_progress_counts_the_stored_tasks_too(tmp_path: Path):
    """A resumed sweep begins where it stopped, and tells so before it does anything."""
    tasks = [row_task(number) for number in range(3)]
    run_sweep(tasks[:2], crashing, folder=tmp_path, executor="serial")
    seen: list[tuple[str, int, int]] = []
    run_sweep(
        tasks, crashing, folder=tmp_path, executor="serial", report=lambda *now: seen.append(now)
    )
    assert seen == [("tasks", 2, 3), ("tasks", 3, 3)]


def test_serial_tasks_compute_with_one_thread(tmp_path: Path):
    """As workers do; else their sums would be taken in another order."""
    task = SweepTask({"seed": 0, "hidden": 4, "learning_rate": 0.1})
    (row,) = run_sweep([task], train, folder=tmp_path, executor="serial").rows
    assert (row.row or {})["threads"] == 1


def test_two_sweeps_in_one_folder_are_kept_apart(tmp_path: Path):
    """The second is refused while the first runs, and may have the folder after it."""
    with (
        RowStore(tmp_path),
        pytest.raises(RunFolderError, match="another gradflow works on the sweep"),
    ):
        run_sweep([row_task(0)], crashing, folder=tmp_path, executor="serial")
    assert len(run_sweep([row_task(0)], crashing, folder=tmp_path, executor="serial").rows) == 1


def test_an_executor_that_does_not_exist_is_named(tmp_path: Path):
    """The nearest name is offered, and what an address looks like."""
    with pytest.raises(UnknownNameError, match=r"tcp://.*Did you mean 'serial'"):
        run_sweep([row_task(0)], crashing, folder=tmp_path / "run", executor="seral")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_what_is_there_and_writes_nothing(tmp_path: Path):
    """In a folder that is not there, and in one with a done and a failed task."""
    tasks = [row_task(0), SweepTask({"how": "raise"}), row_task(1)]
    plan = plan_sweep(tasks, folder=tmp_path / "run")
    assert (plan.total, plan.done, plan.failed, len(plan.to_run)) == (3, 0, 0, 3)
    assert (plan.seconds, plan.calibrated) == (None, False)
    assert list(tmp_path.iterdir()) == []
    run_sweep(tasks[:2], crashing, folder=tmp_path / "run", executor="serial")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    plan = plan_sweep(tasks, folder=tmp_path / "run")
    assert (plan.done, plan.failed, plan.to_run) == (1, 1, (tasks[2],))
    plan = plan_sweep(tasks, folder=tmp_path / "run", retry_failed=True)
    assert plan.to_run == (tasks[1], tasks[2])
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}


def test_an_estimate_is_scaled_by_what_stored_tasks_took(tmp_path: Path):
    """Guessed at 1, 2 and 3 seconds; the first took 0.2, so the other two take 0.4 and 0.6."""
    tasks = tasks_of(tmp_path / "log", 3, seconds=0.2)

    def cost(settings: object) -> float:
        return float(settings["number"] + 1)  # type: ignore[index]

    plan = plan_sweep(tasks, folder=tmp_path, cost=cost)
    assert (plan.seconds, plan.calibrated) == (6.0, False)
    run_sweep(tasks[:1], logged, folder=tmp_path, executor="serial")
    (first,) = load_rows(tmp_path)
    plan = plan_sweep(tasks, folder=tmp_path, cost=cost)
    assert plan.calibrated
    assert plan.seconds == pytest.approx(5 * (first.seconds or 0), rel=1e-9)
    assert plan.wall_seconds(2) == pytest.approx(2.5 * (first.seconds or 0), rel=1e-9)
    assert plan.wall_seconds(99) == plan.wall_seconds(2)


@pytest.fixture
def foreign_folder() -> Iterator[Path]:
    """A folder of a user that may not write in it, with that user in force (root may anywhere)."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        run_sweep([row_task(0)], crashing, folder=folder, executor="serial")
        folder.chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(user)
            folder.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_a_read_only_folder_is_one_message_and_its_rows_stay(foreign_folder: Path):
    """Nothing runs for hours to be lost; the rows can be read, and are what they were."""
    before = (foreign_folder / "sweep.sqlite").read_bytes()
    with pytest.raises(RunFolderError, match=r"may not be changed by you.*are safe"):
        run_sweep([row_task(1)], crashing, folder=foreign_folder, executor="serial")
    assert [row.row for row in load_rows(foreign_folder)] == [{"number": 0}]
    assert (foreign_folder / "sweep.sqlite").read_bytes() == before
