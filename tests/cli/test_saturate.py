"""`gradflow saturate` from the shell: a fault of a cell fails the command, an overflow does not."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import in_process

FAULTY = Path(__file__).parent.parent / "data" / "naive_sigmoid_cell.py"
SMALL = ["--dtype", "float32", "--steps", "2", "--hidden", "3", "--input-size", "3", "--batch", "2"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_built_in_cells_have_no_fault_and_the_run_is_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Exit code 0, one document, and a folder that reads back."""
    answer = in_process(
        capsys,
        "saturate",
        *SMALL,
        "--cell",
        "lstm,rnn",
        "--magnitude",
        "1e4,max",
        "--format",
        "json",
        "--out",
        "run",
    )
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["schema"] == "gradflow/saturate/1"
    assert document["config"]["magnitude"] == ["1e4", "max"]
    assert gradflow.load_result(tmp_path / "run").to_json() == document
    assert Path(answer.err.splitlines()[-1]) == Path("run/figures/saturate.png")
    assert (tmp_path / "run" / "figures" / "saturate.svg").is_file()


def test_a_fault_of_a_users_cell_is_exit_code_1(capsys: pytest.CaptureFixture[str]):
    """A hand-written sigmoid whose gradient is NaN where it saturates: found, named, kept."""
    cell = f"{FAULTY}:make_cell"
    arguments = ["--cell", cell, "--magnitude", "1e2", "--format", "csv"]
    answer = in_process(capsys, "saturate", *SMALL, *arguments)
    assert answer.code == 1
    assert "Check failed" in answer.err
    verdicts = {row["verdict"] for row in csv.DictReader(io.StringIO(answer.out))}
    assert "fault" in verdicts


def test_beyond_is_a_switch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Flag, variable and file all set it; the flag has the last word."""
    monkeypatch.setenv("GRADFLOW_BEYOND", "true")
    arguments = ["saturate", "--cell", "rnn", *SMALL, "--magnitude", "1e2", "--format", "json"]
    by_variable = json.loads(in_process(capsys, *arguments).out)
    by_flag = json.loads(in_process(capsys, *arguments, "--no-beyond").out)
    assert by_variable["config"]["beyond"] is True
    assert by_flag["config"]["beyond"] is False
    assert len(by_variable["results"]["rows"]) > len(by_flag["results"]["rows"])
