"""`gradflow runs` lists a sweep and compares two runs; it writes nothing."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gradflow.sweeps import SweepTask, run_sweep
from tests.cli.terminal import SMALL, in_process, in_shell

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measured(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a loss that falls with the seed, `times` what it was; seed 1 of `crash` has none."""
    if settings["crash"] and settings["seed"] == 1:
        raise ArithmeticError("no number came of it")
    return {"loss": settings["times"] / (1 + settings["seed"]), "curve": [1, 2]}


def make_sweep(folder: str, count: int, *, times: float = 1.0, crash: bool = False) -> None:
    """Run a sweep of `count` seeds."""
    tasks = [SweepTask({"seed": seed, "times": times, "crash": crash}) for seed in range(count)]
    run_sweep(tasks, measured, folder=Path(folder), executor="serial")


def test_a_sweep_is_listed(capsys: pytest.CaptureFixture[str]):
    """As a table, as CSV, and as strict JSON with its curves; failed tasks are data here."""
    make_sweep("run", 2, crash=True)
    table = in_process(capsys, "runs", "run")
    assert (table.code, table.err) == (0, "")
    assert table.out.startswith("run: 2 tasks (1 done, 1 failed, 0 waiting)\n")
    assert "Task 2: ArithmeticError: no number came of it" in table.out
    rows = list(
        csv.DictReader(io.StringIO(in_process(capsys, "runs", "run", "--format", "csv").out))
    )
    assert [row["status"] for row in rows] == ["done", "failed"]
    document = json.loads(in_process(capsys, "runs", "run", "--format", "json").out)
    assert document["schema"] == "gradflow/runs/1"
    assert document["results"]["counts"] == {"done": 1, "failed": 1, "waiting": 0}
    assert document["results"]["rows"][0]["row"] == {"loss": 1.0, "curve": [1, 2]}
    assert document["environment"]["python"]


def test_failed_tasks_are_listed_alone(capsys: pytest.CaptureFixture[str]):
    """Also by the variable, as every setting."""
    make_sweep("run", 2, crash=True)
    answer = in_process(capsys, "runs", "run", "--failed", "--format", "csv")
    assert [row["seed"] for row in csv.DictReader(io.StringIO(answer.out))] == ["1"]
    assert in_process(capsys, "runs", "run", "--no-failed", "--format", "csv").out.count("\n") == 3


def test_a_long_sweep_is_listed_whole_and_plain(capsys: pytest.CaptureFixture[str]):
    """Each task on a line of its own; nothing is cut."""
    make_sweep("run", 201)
    lines = in_process(capsys, "runs", "run", "--metric", "loss").out.splitlines()
    assert lines[0] == "run: 201 tasks (201 done, 0 failed, 0 waiting)"
    assert lines[2].split() == ["task", "seed", "status", "begun", "seconds", "loss"]
    assert lines[-2].split()[0] == "201"


def test_two_runs_of_a_command_are_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Numbers, ratios and what differs; with a factor it judges, and writes nothing."""
    for steps in ("6", "12"):
        asked = ["decay", "--cell", "lstm", *SMALL, "--steps", steps, "--out", f"run{steps}"]
        assert in_process(capsys, *asked).code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    compare = ["runs", "compare", "run6", "run12", "--metric", "tolerance,rate"]
    answer = in_process(capsys, *compare, "--factor", "1.5")
    assert (answer.code, answer.err) == (0, "")
    assert "steps  6  12" in answer.out
    document = json.loads(in_process(capsys, *compare, "--format", "json").out)
    rates = [n for n in document["results"]["numbers"] if n["metric"] == "curves.rate"]
    assert [number["ratio"] for number in rates] == pytest.approx([1.0] * len(rates))
    assert rates
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("factor", "code"), [("1.9", 1), ("2.1", 0)])
def test_a_sweep_that_got_worse_exits_with_1(
    capsys: pytest.CaptureFixture[str], factor: str, code: int
):
    """All losses are twice what they were; the message names the first that is past."""
    make_sweep("a", 2)
    make_sweep("b", 3, times=2.0)
    asked = ["runs", "compare", "a", "b", "--metric", "loss", "--factor", factor]
    answer = in_process(capsys, *asked)
    assert answer.code == code
    assert "1 of 3 done tasks are in b alone; left out." in answer.out
    past = "Check failed: loss is at most 1.9 times what it was (0 of 2; of seed 0: 1, then 2)\n"
    assert answer.err == (past if code else "")


def test_what_cannot_be_compared_is_a_wrong_request(capsys: pytest.CaptureFixture[str]):
    """One message each, nothing on standard output."""
    make_sweep("a", 1)
    for words, said in (
        ([], "takes the run folder of a sweep"),
        (["nowhere"], "there is none in 'nowhere'"),
        (["compare", "a", "nowhere"], "there is none at 'nowhere'"),
        (["compare", "a", "a", "--metric", "los"], "Did you mean 'loss'?"),
        (["compare", "a", "a", "--factor", "0"], "--factor must be greater than 0"),
        (["a", "--format", "yaml"], "--format knows no 'yaml'"),
    ):
        answer = in_process(capsys, "runs", *words)
        assert (answer.code, answer.out) == (2, ""), words
        assert said in answer.err
        assert "Traceback" not in answer.err


def test_listing_needs_no_torch(tmp_path: Path):
    """Who looks at a sweep that runs does not wait for torch to load."""
    make_sweep("run", 1)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('loaded')")
    answer = in_shell(tmp_path, "runs", "run", path=tmp_path)
    assert (answer.code, answer.err) == (0, "")


def test_a_result_of_another_command_is_shown_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A decay by its table, a watched training by its log; nothing is measured again."""
    asked = ["--cell", "lstm", "--steps", "30", "--hidden", "4"]
    first = in_process(capsys, "decay", *asked, "--out", "decay")
    shown = in_process(capsys, "runs", "decay")
    assert (shown.code, shown.out) == (0, first.out)
    document = json.loads(in_process(capsys, "runs", "decay", "--format", "json").out)
    assert document == json.loads((tmp_path / "decay" / "result.json").read_text())
    Path("watched").mkdir()
    shutil.copy(ROOT / "examples" / "watched_training.jsonl", "watched/watch.jsonl")
    watched = in_process(capsys, "runs", "watched")
    assert (watched.code, "horizon" in watched.out) == (0, True)
    for flag in (["--failed"], ["--metric", "rate"]):  # there are no tasks to choose among
        refused = in_process(capsys, "runs", "decay", *flag)
        assert refused.code == 2
        assert f"Leave {flag[0]} out" in refused.err
