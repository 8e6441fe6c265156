"""Checks that passed, in one line: a run that checked itself says so, and how closely."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradflow.records.base import Check

_ERROR = re.compile(r"(?<![\d.])\d+(?:\.\d+)?e[+-]?\d+")
MOST_NAMED = 5


def passed_checks(checks: Sequence[Check]) -> str:
    """Return how many checks passed and which, those with an error first; "" where none did.

    >>> from gradflow.records.base import Check
    >>> passed_checks([Check("autograd agrees", True, "largest relative error 3.1e-13 (...)")])
    '1 check passed: autograd agrees within 3.1e-13.'
    """
    passed = [check for check in checks if check.passed]
    if not passed:
        return ""
    named: dict[str, int] = {}
    for check in sorted(passed, key=lambda check: _error(check) is None):
        text = _words(check)
        named[text] = named.get(text, 0) + 1
    texts = [text if count == 1 else f"{text} ({count} times)" for text, count in named.items()]
    left = len(texts) - MOST_NAMED
    shown = [*texts[:MOST_NAMED], *([f"and {left} more"] if left > 0 else [])]
    head = "1 check" if len(passed) == 1 else f"{len(passed)} checks"
    return f"{head} passed: {'; '.join(shown)}."


def _words(check: Check) -> str:
    error = _error(check)
    if error is None:
        return check.name
    return f"{check.name} exactly" if float(error) == 0.0 else f"{check.name} within {error}"


def _error(check: Check) -> str | None:
    """Return the error that a check names before it names what is allowed."""
    found = _ERROR.search(re.split(r"[(;]|, tolerance", check.detail)[0])
    return None if found is None else found[0]
