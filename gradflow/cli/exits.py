"""How a command ends, in one place.

0    ran, every check passed
1    ran, a check failed
2    the request was wrong: one message, no traceback
3    a fault of ours: one line, the traceback with --debug
130  interrupted
"""

from __future__ import annotations

import logging
import os
import re
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.exceptions import Abort, TyperException

from gradflow.cli.app import app
from gradflow.cli.streams import discard_output, say, tolerate_any_text
from gradflow.errors import GradflowError, Interrupted, RunFolderError, nearest_name

_OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "storage size calculation overflowed",
    "integer multiplication overflow",
)
PASSED, CHECK_FAILED, WRONG_REQUEST, OUR_FAULT, INTERRUPTED = 0, 1, 2, 3, 130


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code; every failure becomes one message."""
    tolerate_any_text()
    debug = "--debug" in arguments or _is_on(os.environ.get("GRADFLOW_DEBUG", ""))
    if not debug:
        warnings.showwarning = _show_warning
        logging.getLogger("matplotlib").setLevel(logging.ERROR)  # of font caches and rc files
    try:
        _require_folder()
        code = app(args=list(arguments), prog_name="gradflow", standalone_mode=False)
        code = code if isinstance(code, int) else PASSED
        message = "Interrupted: nothing more was saved." if code == INTERRUPTED else ""
    except BrokenPipeError:  # `gradflow --help | head -1`
        discard_output()
        return PASSED
    except BaseException as problem:
        if isinstance(problem, SystemExit):  # shell completion ends so, after its answer
            raise
        if debug:
            say(traceback.format_exc().rstrip())
        code, message = explain(problem)
    if message:
        say(message)
    return code


def _require_folder() -> None:
    """Raise where the working directory was removed: torch's libraries end the program there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise RunFolderError(
            "the working directory does not exist any more. Change to one that does: cd ~"
        ) from None


def _is_on(value: str) -> bool:
    """Return what typer makes of the variable of a switch; a word that it refuses counts as on."""
    return value.strip().lower() not in ("", "0", "f", "false", "n", "no", "off")


def explain(problem: BaseException) -> tuple[int, str]:
    """Return the exit code and the message for an exception that ended a command."""
    if isinstance(problem, Interrupted | KeyboardInterrupt | Abort):
        return INTERRUPTED, f"Interrupted: {str(problem) or 'nothing more was saved.'}"
    if isinstance(problem, GradflowError):
        return WRONG_REQUEST, f"Error: {problem}"
    if isinstance(problem, TyperException):
        return WRONG_REQUEST, f"Error: {_usage(problem)}"
    if _is_out_of_memory(problem):
        return WRONG_REQUEST, (
            "Error: this needs more memory than there is. "
            f"Ask for less: a smaller --hidden, fewer --steps. ({_first_line(problem)})"
        )
    package = _broken_package(problem)
    if package is not None:
        return WRONG_REQUEST, (
            f"Error: gradflow needs {package}, and it cannot be imported here: "
            f"{_first_line(problem)}\nInstall it again, or see what is there: gradflow doctor"
        )
    return OUR_FAULT, (
        f"gradflow failed by a fault of its own: {type(problem).__name__}: "
        f"{_first_line(problem)}\nPlease report it, with what --debug shows."
    )


def _usage(problem: TyperException) -> str:
    """Return click's message in one line, with the nearest name that does exist."""
    context: Any = getattr(problem, "ctx", None)
    where = context.command_path if context is not None else "gradflow"
    message = problem.format_message().strip().removesuffix(".")
    unknown = getattr(problem, "option_name", None)
    if context is not None and unknown is not None and hasattr(problem, "possibilities"):
        known = {name for option in context.command.params for name in option.opts}
        message = f"{where} has no option {unknown}. {_nearest_only(unknown, known)}"
        return f"{message}See {where} --help."
    end = "" if message.endswith("?") else "."
    return f"{message}{end} See {where} --help."


def _nearest_only(name: str, known: set[str]) -> str:
    offer, found, _ = nearest_name(name, known).partition("? ")
    return f"{offer}? " if found else ""


def _is_out_of_memory(problem: BaseException) -> bool:
    text = str(problem).lower()
    return isinstance(problem, MemoryError) or (
        isinstance(problem, RuntimeError) and any(words in text for words in _OUT_OF_MEMORY)
    )


def _broken_package(problem: BaseException) -> str | None:
    """Return the name of the package that is missing or fails while it is imported."""
    if isinstance(problem, ModuleNotFoundError) and problem.name:
        name = problem.name.partition(".")[0]
        return None if name == "gradflow" else name
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        inside = re.search(r"-packages[/\\](\w+)", frame.filename)
        if inside and inside[1] != "gradflow" and frame.name == "<module>":
            return inside[1]
    return None


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [""])[0][:300]


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    say(f"Warning: {message}")
