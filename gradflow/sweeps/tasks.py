"""One task of a sweep, and the key under which its row is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradflow.errors import SettingError


@dataclass(frozen=True)
class SweepTask:
    """One combination of settings, to be worked on once.

    Two tasks of the same settings are one task, whatever the order of their keys:

    >>> SweepTask({"seed": 1, "cell": "gru"}).key == SweepTask({"cell": "gru", "seed": 1}).key
    True
    """

    settings: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """The sha256 (64 hex digits) of the settings as canonical JSON, with sorted keys."""
        return hashlib.sha256(strict_json(self.settings, "settings", in_order=True)).hexdigest()

    @cached_property
    def text(self) -> str:
        """The settings as JSON, in their own order.

        Raises:
            SettingError: they are no strict JSON.
        """
        return strict_json(self.settings, "settings").decode()


def strict_json(value: Mapping[str, Any], what: str, *, in_order: bool = False) -> bytes:
    """Return a mapping as JSON without blanks, the keys in alphabetical order if asked.

    Raises:
        SettingError: it holds something that strict JSON has no form for.

    >>> strict_json({"b": (1, 2), "a": None}, "this", in_order=True)
    b'{"a":null,"b":[1,2]}'
    """
    try:
        text = json.dumps(dict(value), sort_keys=in_order, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise SettingError(
            f"the {what} of a task must be strict JSON, because they are stored as text: {problem}."
            " Write a number that is not finite as null, with its reason beside it."
        ) from None
    return text.encode()
