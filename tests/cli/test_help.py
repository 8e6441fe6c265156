"""The help is fast, and says what the settings models say."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gradflow.cli.app import app
from gradflow.cli.common import COMMON
from gradflow.cli.options import STYLES
from gradflow.config import COMMAND_SETTINGS, COMMON_OPTIONS, DRAWING_OPTIONS, SWEEP_OPTIONS
from gradflow.present.notebook import PRESENTERS
from gradflow.present.theme import theme_of
from tests.cli.terminal import in_process, in_shell

COMMANDS = typer.main.get_command(app).commands
HEAVY = {"torch", "numpy", "matplotlib", "scipy", "jinja2", "distributed"}


@pytest.mark.parametrize("arguments", [["--help"], ["decay", "--help"], ["--version"]])
def test_the_help_imports_nothing_heavy(arguments: list[str]):
    """Who asks what there is does not wait for torch, NumPy or matplotlib to load."""
    command = [sys.executable, "-X", "importtime", "-m", "gradflow", *arguments]
    log = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stderr
    loaded = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in log.splitlines()}
    assert "gradflow" in loaded
    assert not HEAVY & loaded


def test_the_help_answers_in_half_a_second():
    """Of the processor's time, so that a busy machine does not count; the best of three starts."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "gradflow", "--help"]
        subprocess.run(command, capture_output=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.5


def test_the_help_groups_the_commands_in_panels(capsys: pytest.CaptureFixture[str]):
    """Measure, Check and Results; `gradflow` alone shows the same and is no error."""
    asked = in_process(capsys, "--help")
    for name in ("Measure", "Check", "Results", "decay", "saturate", "doctor"):
        assert name in asked.out
    alone = in_process(capsys)
    assert (alone.code, alone.err) == (0, "")
    assert "decay" in alone.out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_what_a_command_says_of_itself_fits_a_terminal(name: str):
    """The lines of a paragraph stay lines: one that is longer than a terminal is broken in two."""
    assert max(len(line) for line in (COMMANDS[name].help or "").splitlines()) <= 78


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]):
    """For scripts and for bug reports."""
    answer = in_process(capsys, "--version")
    assert answer.code == 0
    assert re.fullmatch(r"gradflow \d+\.\d+\.\d+\n", answer.out)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_flags_of_a_command_are_the_fields_of_its_settings(name: str):
    """A setting without a flag cannot be asked for; a flag without a setting does nothing."""
    flags = {parameter.name for parameter in COMMANDS[name].params}
    fields = set(COMMAND_SETTINGS[name].model_fields)
    drawn = set(DRAWING_OPTIONS) if name in {*PRESENTERS, "report"} else set()
    swept = set(SWEEP_OPTIONS) if "executor" in flags else set()
    assert flags - {"help"} == fields | set(COMMON) | drawn | swept


def test_the_common_options_are_the_same_everywhere():
    """Every command takes --config, --out, --format, --seed, --quiet, --debug and --force."""
    assert set(COMMON) == set(COMMON_OPTIONS)
    for command in COMMANDS.values():
        names = {option for parameter in command.params for option in parameter.opts}
        assert {f"--{name}" for name in (*COMMON, "seed")} <= names


def test_the_styles_of_the_command_line_are_those_of_the_figures():
    """The help names them without loading what draws."""
    assert [len(theme_of(style).formats) for style in STYLES] == [2, 3]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_default_in_the_help_is_the_default_of_the_setting(name: str):
    """The help is written by hand, so that it needs no settings model; the two agree."""
    fields = COMMAND_SETTINGS[name].model_fields
    for parameter in COMMANDS[name].params:
        shown = re.search(r"\(default: (.*)\)", getattr(parameter, "help", None) or "")
        if shown is None or parameter.name not in fields:
            continue
        default = fields[parameter.name].default
        if default is None or " " in shown[1]:  # described in words
            continue
        values = default if isinstance(default, tuple) else (default,)
        texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
        assert shown[1] == ",".join(texts), parameter.name


def test_the_shell_completes_flags_and_values(tmp_path: Path):
    """The shell runs the program to complete; it answers with names and nothing else."""
    words = {"_GRADFLOW_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    answer = in_shell(tmp_path, **words, COMP_WORDS="gradflow decay --norm fro")
    assert answer.out.split() == ["frobenius"]
    answer = in_shell(tmp_path, **words, COMP_WORDS="gradflow decay --config sat")
    assert answer.out.split() == ["saturate"]
