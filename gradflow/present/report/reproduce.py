"""The command line that asks for a stored result again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from gradflow.config import COMMAND_SETTINGS, flag_name
from gradflow.errors import GradflowError
from gradflow.present.report.question import Question
from gradflow.settings import Settings


def command_line(question: Question, config: Mapping[str, Any], folder: str) -> str:
    """Return `gradflow <command>` with every setting that is not the default of this version.

    Where these are no settings that this version knows, the line reads what the folder holds.

    >>> command_line(Question("decay", ""), {"cell": ["lstm"], "paths": True}, "runs/decay")
    'gradflow decay --cell lstm --paths'
    """
    model = COMMAND_SETTINGS.get(question.command)
    defaults = None if model is None else _defaults(model, config)
    if defaults is None:
        stored = question.stored.format(folder=shlex.quote(folder))
        return f"gradflow {question.command} {stored}"
    words = ["gradflow", question.command]
    given = {
        key: value
        for key, value in config.items()
        if value is not None and value != defaults.get(key)
    }
    words += [_text(config[key]) for key in _needed(question.positional, given)]
    for key, value in given.items():
        if key not in question.positional:
            words += _flag(key, value)
    return shlex.join(words)


def _defaults(model: type[Settings], config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the defaults that hold beside these settings, None where the model refuses them.

    Some defaults hang on the cell (a GRU has no c), so they are asked for with it.
    """
    try:
        model(**{key: value for key, value in config.items() if value is not None})
        plain = model().to_json()
    except GradflowError:
        return None
    if isinstance(config.get("cell"), str) and config["cell"] != plain.get("cell"):
        try:
            plain = {**model(cell=config["cell"]).to_json(), "cell": plain.get("cell")}
        except GradflowError:
            return plain
    return plain


def _needed(positional: tuple[str, ...], given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the positional settings up to the last that is given."""
    last = max((index for index, key in enumerate(positional) if key in given), default=-1)
    return positional[: last + 1]


def _flag(key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag_name(key) if value else f"--no-{flag_name(key)[2:]}"]
    return [flag_name(key), _text(value)]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return repr(value) if isinstance(value, float) else str(value)
