"""Requests at the edge of what a command line can hold: one message, exit code 2, no run folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradflow.cli.exits import explain
from gradflow.errors import RunFolderError
from gradflow.store import load_result, run_folder
from tests.cli.terminal import SMALL, in_process

LONG = "x" * 5000


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "9" * 20], "--steps must be at most 9007199254740992"),
        (["--hidden", "9" * 20], "--hidden must be at most 9007199254740992"),
        (["--hidden", str(2**53)], "more memory than there is"),
        (["--config", LONG], "is neither. Presets:"),
        (["--cell", f"{LONG}.py:make"], "cannot be read: File name too long"),
        (["--cell", f"{LONG}:make"], "there is no module"),
        (["--cell", "LSTM"], "Did you mean 'lstm'?"),
        (["--norm", " 2 "], "got ' 2 '"),
        (["--out", ""], "--out names a folder"),
        (["--out", "dangling"], "a file is in the way"),
    ],
)
def test_an_odd_request_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    """A name that no disk takes and a number that no memory holds are wrong requests."""
    (tmp_path / "dangling").symlink_to("nowhere")
    answer = in_process(capsys, "decay", *SMALL, *arguments)
    code, output, errors = answer.code, answer.out, answer.err
    assert (code, output) == (2, "")
    assert words in errors
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["dangling"]


@pytest.mark.parametrize(
    ("content", "words"),
    [("gate = " + "[" * 5000 + "]" * 5000, "nests too deep"), ("steps = " + "9" * 5000, "digits")],
    ids=["deep", "digits"],
)
def test_a_settings_file_beyond_all_reason_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, words: str
) -> None:
    """TOML that Python itself refuses to read is the file's fault, not ours."""
    (tmp_path / "odd.toml").write_text(content)
    answer = in_process(capsys, "decay", "--config", "odd.toml")
    code, output, errors = answer.code, answer.out, answer.err
    assert (code, output) == (2, "")
    assert words in errors


@pytest.mark.parametrize(("value", "shown"), [("0", False), ("false", False), ("1", True)])
def test_the_variable_of_a_switch_can_turn_it_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str, shown: bool
) -> None:
    """GRADFLOW_DEBUG=0 asks for no traceback."""
    monkeypatch.setenv("GRADFLOW_DEBUG", value)
    answer = in_process(capsys, "decay", "--gate", "x")
    code, errors = answer.code, answer.err
    assert code == 2
    assert ("Traceback" in errors) == shown


def test_a_cell_that_leaves_the_working_directory_does_not_take_the_run_along(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """--out is relative to the folder in which the command was started."""
    (tmp_path / "wanders.py").write_text(
        "import os, torch\n"
        "class Wanders(torch.nn.Module):\n"
        "    input_size, hidden_size = 1, 2\n"
        "    def forward(self, x, h):\n"
        "        os.chdir('/')\n"
        "        return 0.5 * h\n"
    )
    arguments = ("--cell", "wanders.py:Wanders", "--steps", "2", "--out", "run", "--quiet")
    answer = in_process(capsys, "decay", *arguments)
    code, errors = answer.code, answer.err
    assert code == 0, errors
    assert json.loads((tmp_path / "run" / "result.json").read_text())["config"]["steps"] == 2


def test_a_result_that_cannot_be_looked_for_is_one_message(tmp_path: Path) -> None:
    """A name too long for the disk, or a document nested too deep, reads as no result."""
    with pytest.raises(RunFolderError, match="File name too long"):
        load_result(LONG)
    (tmp_path / "result.json").write_text("[" * 100_000)
    with pytest.raises(RunFolderError, match=r"cannot read .* as a result"):
        load_result(tmp_path)
    with pytest.raises(RunFolderError, match="names a folder"):
        run_folder("decay", "0" * 64, "")


def test_sizes_that_overflow_are_a_lack_of_memory() -> None:
    """A tensor whose number of bytes has no 64-bit form would not fit any memory either."""
    code, message = explain(RuntimeError("Storage size calculation overflowed with sizes=[8, 9]"))
    assert code == 2
    assert "--hidden" in message
