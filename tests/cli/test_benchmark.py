"""`gradflow benchmark` from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import in_process, in_shell

SMALL = [
    *("--task", "signal", "--delay", "6", "--hidden", "4", "--learning-rate", "0.01"),
    *("--seeds", "1", "--updates", "6", "--evaluate-every", "3", "--batch", "32"),
    *("--train-size", "120", "--validation-size", "40", "--test-size", "40"),
]
SERIAL = [*SMALL, "--executor", "serial"]
BREAKS = """
import torch
class Breaks(torch.nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.cell = torch.nn.GRUCell(input_size, hidden_size)
    def forward(self, x, h):
        if self.training:
            raise RuntimeError("no more of this")
        return self.cell(x, h)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_comparison_is_shown_and_stored(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Both tables, five CSV tables, four figures, the rows, and a result that is read back."""
    flags = ["--cell", "rnn,lstm", "--init", "torch-default,forget-bias:2", "--out", "run"]
    answer = in_process(capsys, "benchmark", *SERIAL, *flags)
    assert answer.code == 0, answer.err
    assert "Same hidden width, 4 units" in answer.out
    assert "Nearest parameter count, to" in answer.out
    assert "no memory" in answer.out
    assert "Left out" in answer.out
    names = {path.name for path in (tmp_path / "run").iterdir()}
    tables = {"benchmark.csv", "learning_rates.csv", "runs.csv", "curves.csv", "profiles.csv"}
    assert names >= {*tables, "result.json", "config.toml", "sweep.sqlite"}
    figures = {path.stem for path in (tmp_path / "run" / "figures").iterdir()}
    assert figures == {"learning", "accuracy", "cost", "gradient"}
    assert "<img" in gradflow.load_result("run")._repr_html_()


def test_the_same_command_trains_nothing_twice(capsys: pytest.CaptureFixture[str]):
    """Seconds are those of the first time; the plan says that nothing is left."""
    flags = ["--cell", "gru", "--out", "run", "--format", "json"]
    first, again = (
        json.loads(in_process(capsys, "benchmark", *SERIAL, *flags).out) for _ in range(2)
    )
    assert first["results"] == again["results"]
    assert first["schema"] == "gradflow/benchmark/1"
    plan = json.loads(in_process(capsys, "benchmark", *SERIAL, *flags, "--dry-run").out)
    assert (plan["schema"], plan["done"], plan["to_run"]) == ("gradflow/benchmark-plan/1", 1, 0)


def test_a_dry_run_trains_and_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The grid, an estimate, and what is there."""
    answer = in_process(capsys, "benchmark", *SMALL, "--cell", "rnn,lstm", "--dry-run")
    assert answer.code == 0
    assert "signal: 3 runs" in answer.out
    assert "Of 3 runs 0 are there; 3 would be made." in answer.out
    assert "a guess, no run is there yet" in answer.out
    assert list(tmp_path.iterdir()) == []


def test_a_crashed_run_is_reported_and_ends_with_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Its row says why, the others are there; tried again it is trained."""
    (tmp_path / "mine.py").write_text(BREAKS)
    flags = ["--cell", "rnn,mine.py:Breaks", "--match", "rnn:4", "--out", "run"]
    answer = in_process(capsys, "benchmark", *SERIAL, *flags)
    assert answer.code == 1
    assert "Check failed: every run came to its end" in answer.err
    assert "no more of this" in answer.err
    assert "no result" in answer.out
    assert answer.out.count("learned") >= 1


def test_a_diverged_run_is_data(capsys: pytest.CaptureFixture[str]):
    """Exit code 0, and a note."""
    flags = ["--cell", "rnn", "--optimizer", "sgd", "--clip", "0", "--learning-rate", "0.01,1e4"]
    answer = in_process(capsys, "benchmark", *SERIAL, *flags)
    assert answer.code == 0
    assert "1 of 2 runs diverged, which is a result" in answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "cpoy"], "Did you mean 'copy'?"),
        (["--cell", "lsmt"], "Did you mean 'lstm'?"),
        (["--cell", "mine.py:make"], "mine.py"),
        (["--init", "chrno"], "--init must name an initialization"),
        (["--cell", "rnn", "--init", "chrono"], "a plain RNN has none"),
        (["--task", "copy", "--symbols", "1"], "must not overlap"),
        (["--task", "adding", "--delay", "1"], "--delay"),
        (["--learning-rate", "0"], "--learning-rate must be greater than 0"),
        (["--match", "lstm"], "--match must be a cell and its width"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--executor", "lokal"], "Did you mean 'local'?"),
        (["--executor", "lokal", "--dry-run"], "Did you mean 'local'?"),
        (["--seeds", "1000000"], "1,000,000 runs at most"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--format", "pdf"], "--format knows no 'pdf'"),
    ],
)
def test_a_wrong_request_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """The flag is named, nothing is written, and the exit code is 2."""
    answer = in_process(capsys, "benchmark", *SMALL, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert "Traceback" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_where_sets_must_overlap_it_is_asked_for_and_told(capsys: pytest.CaptureFixture[str]):
    """One symbol of 8: each set is all 8 sequences, and the table says what that means."""
    flags = ["--task", "copy", "--symbols", "1", "--cell", "gru", "--overlap", "where-unavoidable"]
    answer = in_process(capsys, "benchmark", *SERIAL, *flags)
    assert answer.code == 0, answer.err
    assert "there are 8 different sequences" in answer.out


def test_workers_are_processes_and_standard_output_is_the_result_alone(tmp_path: Path):
    """`--executor local`, in a process of its own: strict JSON, whatever dask and torch say."""
    flags = ["--cell", "rnn,lstm", "--workers", "2", "--format", "json", "--out", "run"]
    answer = in_shell(tmp_path, "benchmark", *SMALL, *flags)
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert [run["status"] for run in document["results"]["runs"]] == ["done"] * 3
    assert all(check["passed"] for check in document["checks"])
