"""The record of `gradflow speed`: seconds and bytes of each way to the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result, finite_or_none


@dataclass(frozen=True)
class SpeedCase:
    """What all methods of a case have in common."""

    cell: str
    hidden: int
    steps: int
    dtype: str
    threads: int

    def to_json(self) -> Json:
        """Return the case as plain JSON."""
        return {
            "cell": self.cell,
            "hidden": self.hidden,
            "steps": self.steps,
            "dtype": self.dtype,
            "threads": self.threads,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the fields of a case out of a row or a ratio."""
        return cls(**{key: document[key] for key in cls.__dataclass_fields__})


@dataclass(frozen=True)
class SpeedRow:
    """One method in one case.

    `seconds` is the median over `rounds` rounds, in each of which every method ran once; `points`
    is how many prefixes the method gives the norm of (0 for the floor, which gives none).
    `peak_bytes` is the most memory that its tensors had at one time, None where that was not
    measured. `max_relative_error` is the largest |norm / gradflow's norm - 1|, for gradflow
    against the first other method; None where there is nothing to compare.
    """

    case: SpeedCase
    method: str
    seconds: float
    rounds: int
    points: int
    peak_bytes: int | None
    max_relative_error: float | None

    def to_json(self) -> Json:
        """Return the row as one entry of the contract's `results.rows`."""
        return {
            "method": self.method,
            **self.case.to_json(),
            "seconds": self.seconds,
            "rounds": self.rounds,
            "points": self.points,
            "peak_bytes": self.peak_bytes,
            "max_relative_error": finite_or_none(self.max_relative_error),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.rows` back."""
        own = ("method", "seconds", "rounds", "points", "peak_bytes", "max_relative_error")
        return cls(case=SpeedCase.from_json(document), **{key: document[key] for key in own})


@dataclass(frozen=True)
class SpeedRatio:
    """How many times as long one method took as another: `value` of medians, side by side."""

    case: SpeedCase
    numerator: str
    denominator: str
    value: float

    def to_json(self) -> Json:
        """Return the ratio as one entry of the contract's `results.ratios`."""
        own = {"numerator": self.numerator, "denominator": self.denominator}
        return {**own, **self.case.to_json(), "value": self.value}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.ratios` back."""
        own = ("numerator", "denominator", "value")
        return cls(case=SpeedCase.from_json(document), **{key: document[key] for key in own})


@dataclass(frozen=True)
class SpeedResult(Result):
    """All rows and ratios of one `gradflow speed`."""

    command: ClassVar[str] = "speed"

    rows: tuple[SpeedRow, ...]
    ratios: tuple[SpeedRatio, ...]
    notes: tuple[str, ...] = ()

    @property
    def cases(self) -> tuple[SpeedCase, ...]:
        """The cases in order."""
        return tuple(dict.fromkeys(row.case for row in self.rows))

    def row(self, case: SpeedCase, method: str) -> SpeedRow | None:
        """Return the row of a method in a case, None where it was not timed."""
        rows = (row for row in self.rows if row.case == case and row.method == method)
        return next(rows, None)

    def results_json(self) -> Json:
        """Return `{"rows": [...], "ratios": [...], "notes": [...]}`."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "ratios": [ratio.to_json() for ratio in self.ratios],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/speed/1` document back."""
        results = document["results"]
        return cls(
            rows=tuple(SpeedRow.from_json(entry) for entry in results["rows"]),
            ratios=tuple(SpeedRatio.from_json(entry) for entry in results["ratios"]),
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )
