"""`gradflow params` from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import in_process


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_textbooks_counts_come_first_when_asked(capsys: pytest.CaptureFixture[str]):
    """I=5, H=4 with one bias: 40, 120, 160; torch's two beside it."""
    flags = ["--input-size", "5", "--hidden", "4", "--one-bias"]
    answer = in_process(capsys, "params", *flags)
    assert answer.code == 0, answer.err
    rows = [line.split() for line in answer.out.splitlines()]
    counts = {row[0]: row[1:3] for row in rows if row and row[0] in ("rnn", "gru", "lstm")}
    assert counts == {"rnn": ["40", "44"], "gru": ["120", "132"], "lstm": ["160", "176"]}


def test_every_flag_reaches_the_count(capsys: pytest.CaptureFixture[str]):
    """Two layers, both directions, a projection and a head, against what torch builds."""
    flags = ["--cell", "lstm", "--input-size", "10", "--hidden", "20", "--layers", "2"]
    flags += ["--bidirectional", "--projection", "5", "--output-size", "3", "--format", "json"]
    document = json.loads(in_process(capsys, "params", *flags).out)
    (count,) = document["results"]["counts"]
    assert count["built"] == 5840 + 3 * 10 + 3
    bare = json.loads(in_process(capsys, "params", *flags, "--no-bias").out)
    assert bare["results"]["counts"][0]["one_bias"] == 5840 - 2 * 320 + 33
    flags += ["--batch", "4", "--steps", "6", "--dtype", "float64"]
    work = json.loads(in_process(capsys, "params", *flags).out)["results"]["workload"]
    assert work == {"batch": 4, "steps": 6, "value_bytes": 8}


def test_a_match_names_the_nearest_widths(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Input 10, two biases: an LSTM of 128 has 71680, a GRU of 149 71967, an RNN of 262 71788."""
    answer = in_process(capsys, "params", "--match", "lstm:128", "--out", "run")
    rows = [line.split() for line in answer.out.splitlines()]
    assert ["two", "71680", "gru", "149", "71967", "+287", "+0.4"] in rows
    assert ["two", "71680", "rnn", "262", "71788", "+108", "+0.15"] in rows
    assert (tmp_path / answer.err.splitlines()[-1]).name == "params.png"
    assert gradflow.load_result("run").matches[0].target == 71680
    assert (tmp_path / "run" / "matches.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--match", "lstm"], "--match must be a cell and its width, such as lstm:128"),
        (["--match", "lstm:0"], "such as lstm:128"),
        (["--match", "lsmt:8"], "Did you mean 'lstm'?"),
        (["--projection", "128"], "--projection must be smaller than --hidden, which is 128"),
        (["--projection", "-1"], "--projection must be at least 0"),
        (["--hidden", "0"], "--hidden must be at least 1"),
        (["--cell", "gruu"], "Did you mean 'gru'?"),
        (["--hidden", "9999999999"], "more than torch can index"),
        (["--layers", "10001"], "--layers must be at most 10000"),
    ],
)
def test_a_wrong_request_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """The flag is named, nothing is written, and the exit code is 2."""
    answer = in_process(capsys, "params", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert list(tmp_path.iterdir()) == []
