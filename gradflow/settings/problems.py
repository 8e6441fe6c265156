"""Turns what pydantic found wrong into the house's sentences: the rule, what came, the cure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from gradflow.errors import (
    GateValueError,
    RequestError,
    SettingError,
    UnknownNameError,
    nearest_name,
)

_RULES = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 63 bits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a name (text)",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}


def explain_problems(
    problem: ValidationError, fields: Mapping[str, FieldInfo], labels: Mapping[str, str]
) -> RequestError:
    """Return one error for all that pydantic found: a line per key, three at most.

    Its class is that of the first problem (see `gradflow.errors`).
    """
    first_of_key: dict[str, RequestError] = {}
    for entry in problem.errors(include_url=False):
        key = str(entry["loc"][0]) if entry["loc"] else ""
        if key not in first_of_key:
            first_of_key[key] = _explain(key, dict(entry), fields, labels)
    errors = list(first_of_key.values())
    return type(errors[0])("\n".join(str(error) for error in errors[:3]))


def _explain(
    key: str, entry: Mapping[str, Any], fields: Mapping[str, FieldInfo], labels: Mapping[str, str]
) -> RequestError:
    label = labels.get(key, repr(key))
    kind = entry["type"]
    if kind == "extra_forbidden":
        return UnknownNameError(f"{label} is no known setting. {nearest_name(key, fields)}")
    if kind == "literal_error":
        known = [name.strip("' ") for name in entry["ctx"]["expected"].split(" or ")]
        known = [name.strip("' ") for part in known for name in part.split(",")]
        given = str(entry["input"])
        return UnknownNameError(
            f"{label} must be one of a few names; got {show(given)}. {nearest_name(given, known)}"
        )
    error = GateValueError if "gate" in key or "gain" in key else SettingError
    if kind == "value_error":
        return error(f"{label} {entry['ctx']['error']}")
    rule = _RULES.get(kind, f"is not valid ({entry['msg']})").format(**entry.get("ctx", {}))
    return error(f"{label} {rule}; got {show(entry['input'])}.{_reminder(fields.get(key))}")


def _reminder(field: FieldInfo | None) -> str:
    if field is None or field.description is None:
        return ""
    default = field.default
    usual = ",".join(map(str, default)) if isinstance(default, tuple) else default
    return f" It is {field.description}" + ("." if usual is None else f"; {usual} by default.")


def show(value: Any) -> str:
    """Return `value` as an error shows it: numbers bare, text in quotes, 60 characters at most.

    >>> show("-3"), show("abc"), show([1, 2])
    ('-3', "'abc'", '[1, 2]')
    """
    try:
        float(value)
    except (TypeError, ValueError):
        text = repr(value)
    else:
        plain = not isinstance(value, str) or (value.isascii() and value == value.strip())
        text = str(value) if plain else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
