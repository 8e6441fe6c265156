"""Faults in a user's code, in one line with the place where they happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gradflow.cells.user_code import LONGEST, describe_fault, place_of_fault


def caught(function: Callable[[], object]) -> BaseException:
    """Return what a call raises."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_deepest_line_of_the_users_own_is_named() -> None:
    """An error that torch or Python's library raises belongs to the user's line that called it."""
    for function in (
        lambda: torch.ones(2) @ torch.ones(3),
        lambda: torch.nn.Linear(2, 3)(torch.ones(5)),
        lambda: json.loads("{"),
    ):
        place = place_of_fault(caught(function))
        assert place is not None
        assert place.startswith("test_user_code.py:")


def test_code_without_a_file_has_no_place() -> None:
    """An error that never left the interpreter's own lines is told without a place."""
    assert place_of_fault(ValueError("never raised")) is None
    assert describe_fault(ValueError("never raised")) == "ValueError: never raised"


def test_a_long_message_of_many_lines_becomes_one_line() -> None:
    """Line breaks become blanks, and what is longer than a few lines is cut with dots."""
    text = describe_fault(RuntimeError("many\n  lines\n" + "and words " * 100))
    assert text.startswith("RuntimeError: many lines and words")
    assert "\n" not in text
    assert text.endswith(" ...")
    assert len(text) <= LONGEST + len("RuntimeError:  ...")


@pytest.mark.parametrize(
    ("code", "words"), [(None, "sys.exit(None)"), (2, "sys.exit(2)"), ("bye", "sys.exit('bye')")]
)
def test_leaving_the_program_is_told_as_such(code: object, words: str) -> None:
    """SystemExit has no message that a reader would understand."""
    assert describe_fault(SystemExit(code)) == words


def test_an_error_without_words_is_its_name() -> None:
    """`raise NotImplementedError` says no more than that."""
    assert describe_fault(NotImplementedError()) == "NotImplementedError"


def test_a_syntax_error_has_the_line_that_cannot_be_read(tmp_path: Path) -> None:
    """The place is in the file that was read, not in the one that read it."""
    path = tmp_path / "broken.py"
    error = caught(lambda: compile("x = (\n", str(path), "exec"))
    assert describe_fault(error) == "SyntaxError: '(' was never closed (broken.py:1)"
