"""`gradflow decay` from the shell: what it prints, and what it leaves."""

from __future__ import annotations

import csv
import errno
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gradflow
from tests.cli.terminal import SMALL, in_process, in_shell


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_run_folder_holds_the_whole_result(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The document, the settings, the tables and both figures; the last line names the figure."""
    answer = in_process(capsys, "decay", *SMALL)
    assert answer.code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert names == [
        "config.toml",
        "curves.csv",
        "decay.csv",
        "figures/decay.png",
        "figures/decay.svg",
        "result.json",
    ]
    assert (tmp_path / answer.err.splitlines()[-1]) == folder / "figures" / "decay.png"


def test_the_resolved_settings_repeat_the_run(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """`--config RUN/config.toml` measures the same again, into the same folder."""
    in_process(capsys, "decay", *SMALL, "--seed", "5")
    (folder,) = (tmp_path / "runs").iterdir()
    first = gradflow.load_result(folder)
    answer = in_process(capsys, "decay", "--config", str(folder / "config.toml"))
    assert answer.code == 0
    assert list((tmp_path / "runs").iterdir()) == [folder]
    assert gradflow.load_result(folder).results_json() == first.results_json()


def test_json_is_exactly_one_strict_document(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Standard output is the document of the run folder, to the letter."""
    answer = in_process(capsys, "decay", *SMALL, "--format", "json", "--out", "run")
    document = json.loads(answer.out, parse_constant=pytest.fail)
    assert answer.out == (tmp_path / "run" / "result.json").read_text()
    assert document["schema"] == "gradflow/decay/1"
    assert document["config"]["steps"] == 6
    assert {"gradflow", "python", "torch", "platform", "device", "started", "seconds"} <= set(
        document["environment"]
    )
    assert document["results"]["curves"][0]["cell"] == "lstm"
    assert all(check["passed"] for check in document["checks"])


def test_csv_is_one_table_with_a_row_for_each_curve(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """Every row has every column, and the numbers have all their digits."""
    answer = in_process(capsys, "decay", *SMALL, "--format", "csv", "--out", "run")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert {row["cell"] for row in rows} == {"lstm", "gru"}
    assert answer.out == (tmp_path / "run" / "decay.csv").read_text()
    assert None not in rows[0]


def test_the_environment_and_the_file_are_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Flag before environment before file, through the whole program."""
    (tmp_path / "mine.toml").write_text("steps = 3\nhidden = 2\ngate = 0.5\nseed = 1\n")
    monkeypatch.setenv("GRADFLOW_HIDDEN", "4")
    monkeypatch.setenv("GRADFLOW_CONFIG", "mine.toml")
    answer = in_process(capsys, "decay", "--seed", "2", "--format", "json")
    config = json.loads(answer.out)["config"]
    assert [config[key] for key in ("steps", "hidden", "seed")] == [3, 4, 2]


def test_quiet_says_nothing_but_the_result(capsys: pytest.CaptureFixture[str]):
    """No progress, no notes, no path; the unknown variable is not told either."""
    answer = in_process(capsys, "decay", *SMALL, "--quiet", "--state", "h")
    assert answer.err == ""
    assert "lstm" in answer.out


def test_a_piped_table_is_plain_and_never_cut(tmp_path: Path):
    """In a pipe there is no width and no colour, whatever the terminal's variables say."""
    name = "a_cell_with_a_very_long_name_" * 4
    (tmp_path / f"{name}.py").write_text(
        "import torch\ndef make_cell():\n    return torch.nn.LSTMCell(2, 2)\n"
    )
    variables = {"COLUMNS": "20", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    cell = f"{name}.py:make_cell"
    answer = in_shell(tmp_path, "decay", *SMALL, "--cell", cell, **variables)
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out
    assert "…" not in answer.out
    assert any(cell in line and "full" in line for line in answer.out.splitlines())


def test_what_a_users_cell_prints_is_not_part_of_the_result(tmp_path: Path):
    """A cell with a forgotten print still gives one strict JSON document."""
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Noisy(torch.nn.GRUCell):\n"
        "    def forward(self, x, h=None):\n"
        "        print('here I am')\n"
        "        return super().forward(x, h)\n"
        "def make_cell():\n"
        "    return Noisy(2, 3)\n"
    )
    answer = in_shell(
        tmp_path, "decay", "--cell", "mine.py:make_cell", "--steps", "3", "--format", "json"
    )
    assert answer.code == 0, answer.err
    json.loads(answer.out)
    assert "here I am" in answer.err


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell line, with `gradflow` standing for the program."""
    line = command.replace("gradflow", f"'{sys.executable}' -m gradflow", 1)
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=100
    )


def test_a_reader_that_stops_early_is_no_error_and_the_run_is_kept(tmp_path: Path):
    """`gradflow decay | head -1` prints a line, complains of nothing, and saves."""
    line = f"gradflow decay {' '.join(SMALL)} --format json --quiet | head -c 1"
    done = shell(f"set -o pipefail; {line}", tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("{", "", 0)
    assert len(list(tmp_path.glob("runs/*/result.json"))) == 1


class FullDisk(io.StringIO):
    """A stream onto a disk that takes no more."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_behind_standard_output_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Losing the result in silence would be the worst; exit code 2 and one line."""
    monkeypatch.setattr(sys, "stdout", FullDisk())
    answer = in_process(capsys, "decay", *SMALL)
    assert answer.code == 2
    assert answer.err.splitlines()[-1] == (
        "Error: standard output cannot be written: No space left on device."
    )


def test_closed_streams_are_no_fault(tmp_path: Path):
    """Daemons run programs without any standard stream; the run is saved all the same."""
    done = shell(f"gradflow decay {' '.join(SMALL)} >&- 2>&- <&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list(tmp_path.glob("runs/*/result.json"))) == 1


def test_a_terminal_without_utf8_gets_escapes_and_no_error(tmp_path: Path):
    """An old locale cannot show every letter, and that is no reason to fail."""
    answer = in_shell(tmp_path, "decay", *SMALL, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert answer.code == 0
    assert answer.out.isascii()


def test_no_display_is_needed(tmp_path: Path):
    """A figure is made on a machine without a screen, whatever backend the user has set."""
    gone = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "MPLBACKEND": "TkAgg"}
    answer = in_shell(tmp_path, "decay", *SMALL, **gone)
    assert answer.code == 0
    figure = tmp_path / answer.err.splitlines()[-1]
    assert figure.read_bytes().startswith(b"\x89PNG")
