"""The records of `gradflow runs`: a sweep's rows, and two runs side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gradflow.records.base import Json, Result
from gradflow.records.sweeps import DONE, FAILED, WAITING, StoredRow


@dataclass(frozen=True)
class RunFolder:
    """What a run folder holds, as it was read.

    `document` is its result, None where a sweep has not come to its end; `settings` are those in
    force; `rows` are a sweep's, and none for another command.
    """

    folder: str
    settings: Mapping[str, Any]
    document: Mapping[str, Any] | None = None
    rows: tuple[StoredRow, ...] = ()

    @property
    def command(self) -> str | None:
        """The command that wrote the result, None where there is none."""
        schema = str(self.document["schema"]) if self.document else ""
        return schema.split("/")[1] if schema.count("/") == 2 else None

    @property
    def environment(self) -> Mapping[str, Any]:
        """Where and with what the result was computed."""
        return dict(self.document["environment"]) if self.document else {}


@dataclass(frozen=True)
class SweepListing(Result):
    """The rows of a sweep; `shown` are those that were asked for.

    `varied` are the settings in which tasks differ, `metrics` the names of the chosen numbers.
    """

    command: ClassVar[str] = "runs"

    folder: str
    rows: tuple[StoredRow, ...]
    shown: tuple[StoredRow, ...]
    varied: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are done, failed and waiting."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in (DONE, FAILED, WAITING)}

    def results_json(self) -> Json:
        """Return the contract's `results` object."""
        return {
            "folder": self.folder,
            "counts": self.counts,
            "rows": [row.to_json() for row in self.shown],
        }


@dataclass(frozen=True)
class ComparedNumber:
    """One number of two runs.

    `metric` is its name with dots, `what` says of which task or entry it is, in words. `ratio` is
    b / a, None where there is none; `past` says that it is past the factor.
    """

    metric: str
    what: str
    a: float | None
    b: float | None
    ratio: float | None
    past: bool = False

    def to_json(self) -> Json:
        """Return the number as strict JSON."""
        return {
            "metric": self.metric,
            "what": self.what,
            "a": self.a,
            "b": self.b,
            "ratio": self.ratio,
            "past": self.past,
        }


@dataclass(frozen=True)
class Difference:
    """A setting, or a fact of the environment, that is not the same in two runs."""

    name: str
    a: Any
    b: Any

    def to_json(self) -> Json:
        """Return the difference as strict JSON."""
        return {"name": self.name, "a": self.a, "b": self.b}


@dataclass(frozen=True)
class RunsComparison(Result):
    """Two runs side by side: the chosen numbers, and what else is not the same.

    `factor` is how many times the first run's number the second's may be, None where nothing is
    judged. `checks_passed` holds for each run how many of its own checks passed, and of how many.
    """

    command: ClassVar[str] = "runs"

    folders: tuple[str, str]
    numbers: tuple[ComparedNumber, ...]
    factor: float | None
    settings: tuple[Difference, ...] = ()
    surroundings: tuple[Difference, ...] = ()
    checks_passed: tuple[tuple[int, int] | None, ...] = (None, None)
    notes: tuple[str, ...] = field(default=())

    def results_json(self) -> Json:
        """Return the contract's `results` object."""
        return {
            "a": self.folders[0],
            "b": self.folders[1],
            "factor": self.factor,
            "numbers": [number.to_json() for number in self.numbers],
            "settings": [difference.to_json() for difference in self.settings],
            "environment": [difference.to_json() for difference in self.surroundings],
            "checks_passed": [list(pair) if pair else None for pair in self.checks_passed],
            "notes": list(self.notes),
        }
