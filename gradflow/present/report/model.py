"""A report, ready to be written as a page or as Markdown: sections of results, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gradflow.present.outputs import Row
from gradflow.present.report.question import Question
from gradflow.present.tables import TextTable
from gradflow.records import Check
from gradflow.records.report import LeftOut, StoredRun

Facts = tuple[tuple[str, str], ...]
Tone = Literal["good", "warned", "bad", "plain"]


@dataclass(frozen=True)
class ReportFigure:
    """A figure with its number in the report, its words, and its files by ending.

    `width` and `height` are CSS pixels. `files` has what goes into `figures/`; `svg` and
    `png` (made when it is asked for) are what the page may embed.
    """

    anchor: str
    number: int
    name: str
    alt: str
    caption: str
    width: int
    height: int
    svg: bytes
    png: Callable[[], bytes]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportEntry:
    """One result: what it says, its figures and tables, and how it came about.

    `finding` is what the verdict says of it; `too_long` names tables that are not copied.
    """

    anchor: str
    run: StoredRun
    finding: str
    findings: tuple[str, ...]
    figures: tuple[ReportFigure, ...]
    table: TextTable | None
    tables: Mapping[str, Sequence[Row]]
    too_long: tuple[str, ...]
    settings: Facts
    provenance: Facts
    reproduce: str

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the result."""
        return self.run.result.checks

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the findings, without what they say already."""
        said = " ".join(self.findings).casefold()
        notes = () if self.table is None else self.table.notes
        return tuple(note for note in notes if note.casefold() not in said)

    @property
    def grave(self) -> tuple[Any, ...]:
        """The findings of the result that are more than information."""
        found: tuple[Any, ...] = getattr(self.run.result, "findings", ())
        return tuple(finding for finding in found if finding.severity != "info")

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not hold."""
        return tuple(check for check in self.checks if not check.passed)


@dataclass(frozen=True)
class ReportSection:
    """One question with all its results."""

    anchor: str
    question: Question
    entries: tuple[ReportEntry, ...]


@dataclass(frozen=True)
class Report:
    """All sections, in the order of the questions, and what could not be shown."""

    title: str
    sections: tuple[ReportSection, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """Every result, in order."""
        return tuple(entry for section in self.sections for entry in section.entries)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check of every result."""
        return tuple(check for entry in self.entries for check in entry.checks)

    @property
    def passed(self) -> bool:
        """True where every check held and nothing was left out."""
        return not self.left_out and all(check.passed for check in self.checks)

    @property
    def grave(self) -> int:
        """How many findings of all results are more than information."""
        return sum(len(entry.grave) for entry in self.entries)

    @property
    def tone(self) -> Tone:
        """How the outcome is marked: "bad" where a check failed, "warned" by findings alone.

        "plain" where nothing could be judged.
        """
        if not self.passed:
            return "bad"
        if self.grave:
            return "warned"
        return "good" if self.checks else "plain"

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        count = len(self.entries)
        results = f"{count} result" + ("" if count == 1 else "s")
        missing = len(self.left_out)
        tail = f"; {missing} of {count + missing} could not be shown" if missing else ""
        findings = f"{self.grave} finding" + (" warns" if self.grave == 1 else "s warn")
        if not self.checks and self.grave:
            return f"{findings[:1].upper()}{findings[1:]} in {results}{tail}."
        warned = f"; {findings}" if self.grave else ""
        return f"{checks_sentence(self.checks)[:-1]} in {results}{warned}{tail}."


def checks_sentence(checks: Sequence[Check]) -> str:
    """Return how many checks passed.

    >>> checks_sentence([Check("a", True, ""), Check("b", False, "")])
    '1 of 2 checks failed.'
    """
    failed = sum(not check.passed for check in checks)
    if not checks:
        return "There was nothing to check."
    if failed:
        return f"{failed} of {len(checks)} checks failed."
    return "The one check passed." if len(checks) == 1 else f"All {len(checks)} checks passed."
