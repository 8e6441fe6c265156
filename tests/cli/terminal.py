"""Runs the command line as a user does, in a process of its own or in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradflow.cli.exits import run

# A decay that takes milliseconds.
SMALL = ["--steps", "6", "--hidden", "3", "--gate", "0.5", "--candidate-gain", "0"]


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str


def in_process(capsys: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    """Run a command here (no start-up time); what it prints is captured."""
    code = run(arguments)
    captured = capsys.readouterr()
    return Answer(code, captured.out, captured.err)


def in_shell(folder: Path, *arguments: str, path: Path | None = None, **variables: str) -> Answer:
    """Run a command in a process of its own, in `folder`, with stdout and stderr piped.

    `path` is a folder of modules that are found before all others.
    """
    environment = {**os.environ, "PYTHONWARNINGS": "error", **variables}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, "-m", "gradflow", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Answer(done.returncode, done.stdout, done.stderr)
