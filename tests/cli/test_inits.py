"""`gradflow inits` from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import in_process

SMALL = ["--hidden", "4", "--input-size", "2", "--steps", "20", "--seeds", "2"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_initializations_are_compared_and_stored(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Eleven rows in two tables, four CSV tables, the figure, and a result that is read back."""
    answer = in_process(capsys, "inits", *SMALL, "--out", "run")
    assert answer.code == 0, answer.err
    for name in gradflow.InitsSettings().init:
        assert sum(name in line.split() for line in answer.out.splitlines()) == 2
    assert (tmp_path / answer.err.splitlines()[-1]).name == "inits.png"
    stored = {path.name for path in (tmp_path / "run").glob("*.csv")}
    assert stored == {"inits.csv", "gates.csv", "curves.csv", "singular_values.csv"}
    assert len(gradflow.load_result("run").inits) == 11
    assert "<img" in gradflow.load_result("run")._repr_html_()


def test_names_may_be_repeated_joined_and_numbered(capsys: pytest.CaptureFixture[str]):
    """Comma lists and repeated flags are one list; each scheme goes under its one name."""
    flags = ["--init", "chrono:30,he", "--init", "xavier + forget-bias", "--format", "json"]
    document = json.loads(in_process(capsys, "inits", *SMALL, *flags).out)
    names = [entry["init"] for entry in document["results"]["inits"]]
    assert names == ["chrono:30", "he", "xavier+forget-bias:1"]
    assert document["config"]["init"] == names
    assert all(check["passed"] for check in document["checks"])


def test_a_horizon_that_is_not_reached_is_null_with_its_reason(
    capsys: pytest.CaptureFixture[str],
):
    """Strict JSON: null, and beside it why."""
    flags = ["--init", "forget-bias:5", "--format", "json"]
    (entry,) = json.loads(in_process(capsys, "inits", *SMALL, *flags).out)["results"]["inits"]
    assert entry["horizon"] is None
    assert entry["horizon_reason"].startswith("not reached within 20 steps: 10^")
    answer = in_process(capsys, "inits", *SMALL, *flags)
    assert "Not gone within 20 steps" in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--init", "chrno"], "--init must name an initialization"),
        (["--init", "chrono:1"], "more than 2; got 'chrono:1'"),
        (["--init", "he:2"], "--init knows no number for 'he'"),
        (["--cell", "lsmt"], "Did you mean 'lstm'?"),
        (["--threshold", "1"], "--threshold must be less than 1"),
        (["--threshold", "0"], "--threshold must be greater than 0"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--input", "none"], "--input must be one of a few names"),
        (["--state", "q"], "--state 'q' is no part of the state of lstm"),
        (["--cell", "rnn", "--init", "chrono"], "a plain RNN has none"),
    ],
)
def test_a_wrong_request_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """The flag is named, nothing is written, and the exit code is 2."""
    answer = in_process(capsys, "inits", *SMALL, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert list(tmp_path.iterdir()) == []
