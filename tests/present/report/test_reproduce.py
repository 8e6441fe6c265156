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

# What the results at hand were not asked for by a command line, with what one might have asked.
OF_NO_COMMAND: dict[str, dict[str, Any]] = {
    "inspect": {"model": "m.py:make", "data": "m.py:batch"},
    "watch": {"log": "runs/watch-1"},
    "benchmark": {"task": "signal"},
}
MORE: list[tuple[str, dict[str, Any]]] = [
    ("decay", {"gate": (0.25,), "candidate_gain": (0.25, 2.0), "paths": True, "seed": 7}),
    ("decay", {"cell": ("it's my cell.py:make",), "dtype": "float32"}),
    ("step", {"cell": "gru", "h": -0.5, "update_gate": (0.1, 0.2), "convention": "write"}),
    ("step", {"candidate": (-0.4, 0.3), "figure": True}),
    ("parity", {"b": "torch.GRU", "tolerance": 1e-12}),
    ("inits", {"init": ("chrono:50", "he"), "threshold": 1e-5}),
    ("inspect", {"file": "model.pt", "needs_lag": 60, "select": ("GF1", "GF2")}),
    ("benchmark", {"delay": (5,), "init": ("torch-default", "forget-bias:2"), "seeds": 1}),
    ("watch", {"log": "runs/watch-1", "state": "c"}),
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
    if command in OF_NO_COMMAND:
        config = COMMAND_SETTINGS[command](**OF_NO_COMMAND[command]).to_json()
    line = command_line(question_of(command), config, "runs/x")
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
    line = command_line(question_of(command), config, "runs/x")
    assert asked_for(line, monkeypatch, tmp_path)[1].to_json() == config


def test_the_usual_settings_need_no_flag() -> None:
    """The shortest line that is true."""
    config = COMMAND_SETTINGS["decay"]().to_json()
    assert command_line(question_of("decay"), config, "runs/x") == "gradflow decay"


def test_settings_that_this_version_does_not_know_are_left_to_their_file() -> None:
    """A line that is refused would be no help."""
    strange = {"cell": ["lstm"], "phase": "of the moon"}
    line = command_line(question_of("decay"), strange, "my runs/a")
    assert line == "gradflow decay --config 'my runs/a'/config.toml"
    assert shlex.split(line)[-1] == "my runs/a/config.toml"
    log = command_line(question_of("watch"), {"every": 10}, "runs/watch-1")
    assert log == "gradflow watch runs/watch-1"
    assert command_line(question_of("news"), {}, "n") == "gradflow news --config n/config.toml"
