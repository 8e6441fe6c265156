"""The record of one task of a sweep: what was asked, what came of it, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradflow.records.base import Json

DONE, FAILED, WAITING = "done", "failed", "waiting"


@dataclass(frozen=True)
class StoredRow:
    """One task of a sweep, as the run folder stores it.

    `key` is the sha256 of the task's `settings`. `status` is "done" (then `row` is what the work
    returned), "failed" (then `reason` says why, and `row` is None) or "waiting" (not run yet: no
    attempts, no time). `attempts` counts how often it was begun, `started` is the moment of the
    last beginning (UTC, ISO 8601) and `seconds` how long the work then took, in its worker; both
    are None where the worker died and could not say.
    """

    key: str
    settings: Mapping[str, Any]
    status: str
    reason: str | None = None
    row: Mapping[str, Any] | None = None
    attempts: int = 0
    started: str | None = None
    seconds: float | None = None

    @property
    def is_done(self) -> bool:
        """True where the work ran to its end."""
        return self.status == DONE

    def single_values(self) -> Json:
        """Return what the row holds that is no list, by dotted names.

        >>> row = {"loss": 0.5, "costs": {"updates": 3, "curve": [1]}}
        >>> StoredRow("", {}, DONE, row=row).single_values()
        {'loss': 0.5, 'costs.updates': 3}
        """
        return _single(self.row or {}, "")

    def to_json(self) -> Json:
        """Return the row as strict JSON."""
        return {
            "key": self.key,
            "status": self.status,
            "reason": self.reason,
            "attempts": self.attempts,
            "started": self.started,
            "seconds": self.seconds,
            "settings": dict(self.settings),
            "row": None if self.row is None else dict(self.row),
        }


def _single(values: Mapping[str, Any], above: str) -> Json:
    found: Json = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= _single(value, f"{above}{key}.")
        elif not isinstance(value, list | tuple):
            found[above + key] = value
    return found
