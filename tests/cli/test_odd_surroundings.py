"""A command in a process of its own, where something around it is broken."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.terminal import SMALL, in_shell


def test_a_backend_that_does_not_exist_draws_to_files_all_the_same(tmp_path: Path) -> None:
    """MPLBACKEND is about windows, and a command opens none."""
    answer = in_shell(tmp_path, "decay", *SMALL, "--out", "run", "--quiet", MPLBACKEND="nonsense")
    assert (answer.code, answer.err) == (0, "")
    assert (tmp_path / "run" / "figures" / "decay.png").stat().st_size > 1000


def test_matplotlib_says_nothing_of_its_own_folders(tmp_path: Path) -> None:
    """Where matplotlib keeps its cache is no part of a result."""
    (tmp_path / "matplotlibrc").write_text("no.such.key: 3\n")
    answer = in_shell(
        tmp_path, "decay", *SMALL, "--out", "run", "--quiet", MPLCONFIGDIR="/proc/none"
    )
    assert (answer.code, answer.err) == (0, "")


def test_a_working_directory_that_was_removed_is_one_message(tmp_path: Path) -> None:
    """torch's libraries end a program that has no working directory, without a word of ours."""
    gone = tmp_path / "gone"
    gone.mkdir()
    command = shlex.join([sys.executable, "-m", "gradflow", "decay", *SMALL])
    done = subprocess.run(
        ["/bin/sh", "-c", f"rmdir {shlex.quote(str(gone))}; {command}"],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the working directory does not exist any more" in done.stderr
    assert "Traceback" not in done.stderr
