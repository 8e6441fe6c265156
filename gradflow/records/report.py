"""The record of `gradflow report`: the results that it shows, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result


@dataclass(frozen=True)
class StoredRun:
    """A result that was read back, and the folder that holds it."""

    folder: str
    result: Result


@dataclass(frozen=True)
class LeftOut:
    """A folder that a report was asked to show and could not, and why."""

    folder: str
    reason: str


@dataclass(frozen=True)
class ShownResult:
    """One result of a report.

    `anchor` is its place on the page, `finding` the sentence of the verdict. `checks_passed` of
    `checks` checks held. `figures` and `tables` are files beside the page, `reproduce` a command
    line.
    """

    anchor: str
    command: str
    question: str
    folder: str
    finding: str
    checks: int
    checks_passed: int
    settings_sha256: str | None
    reproduce: str
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.shown` back."""
        lists = {key: tuple(document[key]) for key in ("figures", "tables")}
        return cls(**{**document, **lists})


@dataclass(frozen=True)
class ReportResult(Result):
    """What a report shows: the verdict in a sentence, the results, and what was left out."""

    command: ClassVar[str] = "report"

    title: str
    verdict: str
    shown: tuple[ShownResult, ...]
    left_out: tuple[LeftOut, ...] = ()

    def results_json(self) -> Json:
        """Return `{"title", "verdict", "shown", "left_out"}`."""
        return {
            "title": self.title,
            "verdict": self.verdict,
            "shown": [
                {**asdict(entry), "figures": list(entry.figures), "tables": list(entry.tables)}
                for entry in self.shown
            ],
            "left_out": [asdict(entry) for entry in self.left_out],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/report/1` document back."""
        results = document["results"]
        return cls(
            title=results["title"],
            verdict=results["verdict"],
            shown=tuple(map(ShownResult.from_json, results["shown"])),
            left_out=tuple(LeftOut(**entry) for entry in results["left_out"]),
            **cls.frame_from_json(document),
        )
