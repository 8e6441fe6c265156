"""Progress is for those who wait, and never in the way of the result."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gradflow.cli import progress
from gradflow.cli.progress import ProgressReport
from tests.cli.terminal import SMALL


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_file_gets_a_plain_line_now_and_then(
    capsys: pytest.CaptureFixture[str], clock: list[float]
):
    """Every ten seconds a line, on standard error; a short run writes none."""
    with ProgressReport() as report:
        for second in range(25):
            clock[0] = float(second)
            report("lstm", second, 25)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "lstm: 10 of 25\nlstm: 20 of 25\n"


def test_quiet_has_no_progress(capsys: pytest.CaptureFixture[str], clock: list[float]):
    """Neither a line nor a bar."""
    with ProgressReport(enabled=False) as report:
        clock[0] = 1000.0
        report("lstm", 1, 2)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_that_goes_away(
    capsys: pytest.CaptureFixture[str], clock: list[float], monkeypatch: pytest.MonkeyPatch
):
    """It appears after two seconds, follows what is measured, and leaves no trace."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressReport() as report:
        report("lstm", 1, 9)
        assert report.live is None
        clock[0] = 3.0
        report("lstm", 2, 9)
        report("gru", 5, 9)
        (task,) = report.live.tasks
        assert (task.description, task.completed, task.total) == ("gru", 5, 9)
    assert capsys.readouterr().out == ""


def test_on_a_terminal_the_table_fits_and_no_digit_is_lost(tmp_path: Path):
    """A terminal of 30 columns is narrower than the table; every number is still there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gradflow", "decay", *SMALL, "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "30", "TERM": "xterm", "NO_COLOR": "1"},
        stdout=slave,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert process.wait(timeout=60) == 0
    os.close(master)
    text = shown.decode()
    assert "-1.80618" in text
    assert "…" not in text
    assert "\x1b[3" not in text
