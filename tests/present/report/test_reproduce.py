"""The command line of a section asks for the very same result."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from gradflow.cli import common
from gradflow.cli.exits import run
from gradflow.config import COMMAND_SETTINGS
from gradflow.present.report.questions import question_of
from gradflow.present.report.reproduce import command_line
from tests.present.every_figure import COMMANDS, result_of

MORE: list[tuple[str, dict[str, Any]]] = [
    ("decay", {"gate": (0.25,), "candidate_gain": (0.25, 2.0), "paths": True, "seed": 7}),
    ("decay", {"cell": ("it's my cell.py:make",), "dtype": "float32"}),
    ("step", {"cell": "gru", "h": -0.5, "update_gate": (0.1, 0.2), "convention": "write"}),
    ("step", {"candidate": (-0.4, 0.3), "figure": True}),
    ("parity", {"b": "torch.GRU", "tolerance": 1e-12}),
    ("inits", {"init": ("chrono:50", "he"), "threshold": 1e-5}),
    ("inspect", {"file": "model.pt", "needs_lag": 60, "select": ("GF1", "GF2")}),
    ("spectrum", {"input": "random", "gain": 3.5}),
]


def asked_for(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> tuple[str, Any]:
    """Return the command and settings that a command line comes down to, without running it."""
    monkeypatch.chdir(tmp_path)
    found: list[Any] = []

    class Enough(BaseException):
        pass

    def keep(request: common.Request, *rest: Any) -> Any:
        found.append(request)
        raise Enough

    command = shlex.split(line)[1]
    monkeypatch.setattr(f"gradflow.cli.{command}.measure", keep)
    run(shlex.split(line)[1:])
    (request,) = found
    return request.command, request.settings


@pytest.mark.parametrize("command", COMMANDS)
def test_the_line_of_a_result_asks_for_its_settings(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Read as the shell and the program read it, it gives every setting that was in force."""
    config = result_of(command).config
    if command == "inspect":  # of the library: there is no file that a shell could name
        config = COMMAND_SETTINGS["inspect"](model="m.py:make", data="m.py:batch").to_json()
    line = command_line(question_of(command), config)
    assert line.startswith(f"gradflow {command}")
    name, settings = asked_for(line, monkeypatch, tmp_path)
    assert name == command
    assert settings.to_json() == config


@pytest.mark.parametrize(("command", "values"), MORE)
def test_odd_settings_come_back_too(
    command: str, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Quotes, negative numbers, lists, switches and arguments without a flag."""
    config = COMMAND_SETTINGS[command](**values).to_json()
    line = command_line(question_of(command), config)
    assert asked_for(line, monkeypatch, tmp_path)[1].to_json() == config


def test_the_usual_settings_need_no_flag() -> None:
    """The shortest line that is true."""
    config = COMMAND_SETTINGS["decay"]().to_json()
    assert command_line(question_of("decay"), config) == "gradflow decay"


def test_settings_that_this_version_does_not_know_are_left_to_their_file() -> None:
    """A line that is refused would be no help."""
    line = command_line(question_of("decay"), {"cell": ["lstm"], "phase": "of the moon"})
    assert line == "gradflow decay --config config.toml"
    assert command_line(question_of("news"), {}) == "gradflow news --config config.toml"
