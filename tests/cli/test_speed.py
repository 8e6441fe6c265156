"""`gradflow speed` from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import in_process

TINY = ["--hidden", "3", "--steps", "3", "--rounds", "1", "--threads", "1"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_speed_run_leaves_a_whole_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The document, the settings, both tables and both figures; read back it is the same result."""
    answer = in_process(capsys, "speed", *TINY, "--out", "run")
    assert answer.code == 0, answer.err
    names = {p.relative_to("run").as_posix() for p in Path("run").rglob("*") if p.is_file()}
    assert names == {
        "config.toml",
        "speed.csv",
        "ratios.csv",
        "figures/speed.png",
        "figures/speed.svg",
        "result.json",
    }
    assert "times as fast as restart" in answer.out
    result = gradflow.load_result("run")
    assert isinstance(result, gradflow.records.SpeedResult)
    assert [row.method for row in result.rows] == list(result.config["method"])


def test_json_has_rows_and_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    """One strict document, and nothing of the profiler's on standard error."""
    arguments = ["--cell", "gru,rnn", "--method", "chain,gradflow,floor", "--format", "json"]
    answer = in_process(capsys, "speed", *TINY, *arguments)
    document = json.loads(answer.out, parse_constant=pytest.fail)
    rows = document["results"]["rows"]
    assert [(row["cell"], row["method"]) for row in rows] == [
        (cell, method) for cell in ("gru", "rnn") for method in ("chain", "gradflow", "floor")
    ]
    assert {ratio["denominator"] for ratio in document["results"]["ratios"]} == {
        "gradflow",
        "floor",
    }
    assert "profiler" not in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "chian"], "Did you mean 'chain'?"),
        (["--hidden", "0"], "--hidden"),
        (["--threads", "two"], "--threads"),
        (["--threads", "100000"], "at most 1024"),
    ],
)
def test_a_wrong_request_is_one_message(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """Exit code 2, the flag and the cure, and no run folder."""
    answer = in_process(capsys, "speed", *TINY, *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert not Path("runs").exists()
