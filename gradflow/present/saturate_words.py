"""What the table and the figure of `saturate` show: tiles of trials, and findings in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradflow.present.cell_titles import cell_title
from gradflow.present.numbers import counted
from gradflow.records import SaturateResult, SaturateRow
from gradflow.records.saturate import Verdict

_GRAVEST_FIRST: tuple[Verdict, ...] = ("fault", "overflow", "ok", "not applicable")


@dataclass(frozen=True)
class Tile:
    """All trials of a subject in one dtype at one magnitude: every place, both signs."""

    rows: tuple[SaturateRow, ...]

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict among the trials."""
        found = {row.verdict for row in self.rows}
        return next((v for v in _GRAVEST_FIRST if v in found), "not applicable")

    @property
    def count(self) -> str:
        """How many of the trials have that verdict: "3/12"."""
        return f"{sum(row.verdict == self.verdict for row in self.rows)}/{len(self.rows)}"

    @property
    def zero_share(self) -> float | None:
        """The mean share of gate derivatives that are exactly zero, None where no gate is seen."""
        shares = [
            row.zero_slope_fraction for row in self.rows if row.zero_slope_fraction is not None
        ]
        return sum(shares) / len(shares) if shares else None

    @property
    def text(self) -> str:
        """The tile in words: "ok 83%", "fault 9/14", "overflow 2/12", "n/a"."""
        if self.verdict == "not applicable":
            return "n/a"
        if self.verdict != "ok":
            return f"{self.verdict} {self.count}"
        return "ok" if self.zero_share is None else f"ok {percent(self.zero_share)}"


def subjects_of(result: SaturateResult) -> list[tuple[str, str]]:
    """Return every cell and implementation, in the order in which they were tried."""
    return list(dict.fromkeys(row.subject for row in result.rows))


def dtypes_of(result: SaturateResult) -> list[str]:
    """Return the dtypes in the order asked for."""
    return list(dict.fromkeys(row.dtype for row in result.rows))


def magnitudes_of(result: SaturateResult) -> list[str | None]:
    """Return the magnitudes in the order asked for, after None: a cell as it is given."""
    asked = dict.fromkeys(row.magnitude for row in result.rows if row.place != "any")
    return sorted(asked, key=lambda magnitude: magnitude is not None)


def tile_of(
    result: SaturateResult, subject: tuple[str, str], dtype: str, magnitude: str | None
) -> Tile | None:
    """Return a tile, None where nothing was tried; a dtype that does not run has n/a everywhere."""
    rows = [row for row in result.rows if row.subject == subject and row.dtype == dtype]
    chosen = [row for row in rows if row.place == "any" or row.magnitude == magnitude]
    return Tile(tuple(chosen)) if chosen else None


def subject_title(subject: tuple[str, str]) -> str:
    """Return a subject as a heading writes it.

    >>> subject_title(("gru-before", "gradflow")), subject_title(("cell.py:make", "user"))
    ('GRU, reset before (gradflow)', 'cell.py:make')
    """
    cell, implementation = subject
    title = cell_title(cell)
    return title if implementation == "user" else f"{title} ({implementation})"


def magnitude_title(magnitude: str | None) -> str:
    """Return a magnitude as an axis writes it.

    >>> magnitude_title("1e2"), magnitude_title("2.5e4"), magnitude_title("max")
    ('$10^{2}$', '2.5e4', 'max')
    """
    if magnitude is None:
        return "given"
    digits, _, exponent = magnitude.partition("e")
    return f"$10^{{{exponent}}}$" if digits == "1" and exponent.lstrip("-").isdigit() else magnitude


def percent(share: float) -> str:
    """Return a share in whole percent, never 0 % or 100 % of what is only close to it.

    >>> percent(0.0), percent(0.001), percent(0.999), percent(1.0)
    ('0%', '<1%', '>99%', '100%')
    """
    if 0.0 < share < 0.005:
        return "<1%"
    if 0.995 < share < 1.0:
        return ">99%"
    return f"{100 * share:.0f}%"


def conditions(result: SaturateResult) -> str:
    """Return the settings that the trials share, as one line.

    A user's own cell may choose its widths, so they are told where another cell was tried.
    """
    config = result.config
    facts = {"steps": "steps", "hidden": "hidden units", "input_size": "inputs", "batch": "samples"}
    if result.rows and all(row.implementation == "user" for row in result.rows):
        facts = {"steps": "steps", "batch": "samples"}
    return ", ".join(f"{config[key]} {name}" for key, name in facts.items() if key in config)


def findings(result: SaturateResult) -> list[str]:
    """Return a sentence for each kind of failure: where it is met first, and how often in all.

    Failures of one subject with one verdict, operation and tensor are of one kind. What fails a
    check comes first.
    """
    kinds: dict[tuple[object, ...], list[SaturateRow]] = {}
    for row in result.rows:
        first = row.first_nonfinite
        if first is not None:
            key = (*row.subject, row.judged, row.verdict, first.operation, first.tensor, first.gate)
            kinds.setdefault(key, []).append(row)
    return [_finding(rows) for rows in sorted(kinds.values(), key=_gravity)]


def first_fault(result: SaturateResult) -> str:
    """Return the sentence on the first fault that fails a check, or an empty text."""
    found = findings(result)
    return f"First {found[0]}" if found and found[0].startswith("fault: ") else ""


def summary(result: SaturateResult) -> str:
    """Return the outcome in one sentence."""
    run = [row for row in result.rows if row.verdict != "not applicable"]
    faults = sum(row.verdict == "fault" for row in run)
    overflows = sum(row.verdict == "overflow" for row in run)
    failed = (
        counted(faults, "fault of a cell", "faults of a cell") if faults else "no fault of a cell"
    )
    return f"{counted(len(run), 'trial')}: {failed}, {counted(overflows, 'honest overflow')}."


def _gravity(rows: Sequence[SaturateRow]) -> tuple[bool, int]:
    return (not rows[0].judged, _GRAVEST_FIRST.index(rows[0].verdict))


def _finding(rows: Sequence[SaturateRow]) -> str:
    row = rows[0]
    name = row.cell.replace("\\", "/").rsplit("/", 1)[-1]
    what = row.place if row.magnitude is None else f"{row.sign}{row.magnitude} in {row.place}"
    often = f" ({len(rows):,} trials alike)" if len(rows) > 1 else ""
    mark = "" if row.judged else " (not judged)"
    return (
        f"{row.verdict}{mark}: {name} ({row.implementation}), {row.dtype}, {what}: "
        f"{row.reason}{often}."
    )
