"""`gradflow step` from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import in_process

BOOK = [
    *("step", "lstm", "--c", "2", "--forget-gate", "0.8", "--input-gate", "0.25"),
    *("--candidate", "-0.4", "--output-gate", "0.5"),
]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (BOOK, "c=1.5, h=0.45257"),
        (["step", "gru", "--h", "2", "--update-gate", "0.75", "--candidate", "-0.4"], "h=1.4"),
        (["step", "--forget-gate", "0.9,0.8,0.5"], "direct coefficient 0.36"),
        (["step", "--forget-gate", "0.9", "--forget-gate", "0.8,0.5"], "direct coefficient 0.36"),
        (["step", "--forget-gate", "0.9,0.9"], "direct coefficient 0.81"),
        (["step", "--c=-2", "--candidate", "-.5,-1e-3"], "c=-1.6651,"),
        (["step", "gru", "--update-gate", "0.25", "--convention", "write"], "h=0.75"),
    ],
)
def test_the_first_line_is_the_answer(
    capsys: pytest.CaptureFixture[str], arguments: list[str], answer: str
):
    """Negative numbers are values, not flags; a value that comes twice is two steps."""
    result = in_process(capsys, *arguments)
    assert result.code == 0, result.err
    assert answer in result.out.splitlines()[0]


def test_the_figure_is_drawn_when_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """With --figure the last line names the drawing, without it the run folder."""
    drawn = in_process(capsys, *BOOK, "--figure")
    assert (tmp_path / drawn.err.splitlines()[-1]).name == "step.png"
    plain = in_process(capsys, *BOOK)
    assert (tmp_path / plain.err.splitlines()[-1]).is_dir()
    assert not list((tmp_path / plain.err.splitlines()[-1]).glob("figures/*"))


def test_a_stored_run_is_read_back_and_repeated(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The document of the run folder is the JSON output, and its settings make it again."""
    answer = in_process(capsys, *BOOK, "--format", "json", "--out", "run")
    document = json.loads(answer.out)
    assert document["schema"] == "gradflow/step/1"
    assert document["results"]["steps"][0]["after"]["c"] == 1.5
    assert all(check["passed"] for check in document["checks"])
    stored = gradflow.load_result("run")
    again = in_process(capsys, "step", "--config", "run/config.toml", "--format", "json")
    assert json.loads(again.out)["results"] == json.loads(json.dumps(stored.results_json()))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--forget-gate", "1.2"], "--forget-gate must lie between 0 and 1"),
        (["--candidate", "-1.5"], "--candidate must lie between -1 and 1"),
        (["gru", "--forget-gate", "0.5"], "--forget-gate is not for a GRU, because it keeps by"),
        (["--h", "1"], "--h is not for an LSTM"),
        (["--convention", "keep"], "--convention is not for an LSTM"),
        (["--forget-gate", "0.1,0.2", "--candidate", "0,0,0"], "like --forget-gate, which has 2"),
        (["--c", "much"], "--c must be a number; got 'much'"),
        (["lsmt"], "Did you mean 'lstm'?"),
        (["gru", "--convention", "kept"], "Did you mean 'keep'?"),
        (["--forget-gate", "0.1,,0.2"], "--forget-gate must be a number"),
    ],
)
def test_a_wrong_request_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """The flag is named, nothing is written, and the exit code is 2."""
    answer = in_process(capsys, "step", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert list(tmp_path.iterdir()) == []
