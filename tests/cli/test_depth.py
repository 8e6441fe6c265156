"""`gradflow depth` from the shell."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import gradflow
from gradflow.config import DepthSettings, resolve_settings
from tests.cli.terminal import in_process

SMALL = ["--hidden", "4", "--input-size", "3", "--steps", "6", "--batch", "3"]
ONE = ["--layers", "2", "--residual", "no"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_run_folder_holds_the_whole_result(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Document, settings, both tables and both figures; the last line names the heat map."""
    answer = in_process(capsys, "depth", *SMALL)
    assert answer.code == 0, answer.err
    (folder,) = (tmp_path / "runs").iterdir()
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert names == [
        "config.toml",
        "depth.csv",
        "figures/curves.png",
        "figures/curves.svg",
        "figures/depth.png",
        "figures/depth.svg",
        "lags.csv",
        "result.json",
    ]
    assert (tmp_path / answer.err.splitlines()[-1]) == folder / "figures" / "depth.png"
    assert len(gradflow.load_result(folder).maps) == 2


def test_every_flag_reaches_the_measurement(capsys: pytest.CaptureFixture[str]):
    """Cells, layers, directions, links, dropout, lengths and what is read, in one request."""
    flags = [*SMALL, "--cell", "gru,rnn", "--layers", "2", "--bidirectional", "--residual", "no"]
    flags += ["--dropout", "0.1", "--recurrent-dropout", "0.2", "--masks", "sequence"]
    flags += ["--shortest", "2", "--read", "reverse output", "--state", "h", "--norm", "frobenius"]
    flags += ["--init", "xavier", "--seed", "3", "--format", "json", "--out", "run"]
    answer = in_process(capsys, "depth", *flags)
    assert answer.code == 0, answer.err
    document = json.loads(answer.out, parse_constant=pytest.fail)
    maps = document["results"]["maps"]
    assert [(m["cell"], m["layers"], m["directions"], m["masks"]) for m in maps] == [
        ("gru", 2, 2, "sequence"),
        ("rnn", 2, 2, "sequence"),
    ]
    assert {(m["read"], m["block"], m["norm"]) for m in maps} == {
        ("reverse output", "h", "frobenius")
    }
    assert document["results"]["lengths"] == [6, 4, 2]
    assert all(check["passed"] for check in document["checks"])
    assert document["config"]["init"] == "xavier"


def test_the_preset_is_the_default():
    """`--config depth` measures what no flag at all measures."""
    assert resolve_settings(DepthSettings, flags={}, config="depth") == DepthSettings()


def test_csv_is_a_row_per_layer(capsys: pytest.CaptureFixture[str]):
    """One map of two layers and the input."""
    answer = in_process(capsys, "depth", *SMALL, *ONE, "--config", "depth", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert [row["layer"] for row in rows] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--read", "reverse state"], "Use --bidirectional, or --read state"),
        (["--residual", "yes", "--layers", "1"], "--residual yes: a residual link adds"),
        (["--shortest", "2", "--batch", "1"], "--shortest needs a second sample"),
        (["--shortest", "9"], "--shortest must be at most --steps, which is 6"),
        (["--dropout", "1"], "--dropout must be less than 1"),
        (["--masks", "fresh"], "--masks must be one of a few names"),
        (["--cell", "gru", "--state", "c"], "--state 'c' is no part of the state of gru"),
        (["--init", "xavir"], "Did you mean 'xavier'"),
    ],
)
def test_a_wrong_request_is_a_few_lines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """The flag is named, nothing is written, and the exit code is 2."""
    answer = in_process(capsys, "depth", *SMALL, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert len(answer.err.splitlines()) <= 3
    assert list(tmp_path.iterdir()) == []
