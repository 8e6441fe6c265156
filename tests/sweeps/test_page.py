"""The page on sweeps names commands and options that exist, and variables that workers get."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import typer

from gradflow.cli.app import app
from gradflow.sweeps.worker_variables import WORKER_VARIABLES
from tests.sweeps.processes import ROOT

PAGE = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def lines(text: str) -> list[list[str]]:
    """Return the command lines of a page, in words."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_the_commands_of_the_page_have_their_options():
    """Each option that a line uses is one of its command; the README's two lines are among them."""
    ours = [words for words in lines(PAGE) if words[0] == "gradflow"]
    assert [words for words in lines(README) if words not in ours] == []
    assert len(ours) >= 6
    for words in ours:
        known = {name for option in COMMANDS[words[1]].params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_the_commands_of_dask_have_their_options():
    """As the installed version has them."""
    theirs = [words for words in lines(PAGE) if words[0] == "dask"]
    assert [words[1] for words in theirs] == ["scheduler", "worker"]
    for words in theirs:
        module = f"distributed.cli.dask_{words[1]}"
        answer = subprocess.run(
            [sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=90
        )
        for option in (word for word in words if word.startswith("--")):
            assert option in answer.stdout


def test_the_variables_of_the_page_are_those_that_workers_get():
    """Who starts workers by hand sets the same ones."""
    (export,) = [words for words in lines(PAGE) if words[0] == "export"]
    given = dict(word.split("=") for word in export[1:])
    assert given.items() <= WORKER_VARIABLES.items()
    assert {name for name in WORKER_VARIABLES if name.startswith("MALLOC")} <= given.keys()


def test_the_benchmark_that_the_page_names_is_there():
    """It is run by hand: its numbers are of the machine that it runs on."""
    (module,) = re.findall(r"python -m (tests\.benchmarks\.\w+)", PAGE)
    assert Path(ROOT, *module.split(".")).with_suffix(".py").exists()
