"""`gradflow runs` as tables and CSV rows: a sweep's tasks, and two runs side by side."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len

from gradflow.present.numbers import ABSENT, counted, number_text
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.runs import ComparedNumber, Difference, RunsComparison, SweepListing
from gradflow.records.sweeps import StoredRow

Row = dict[str, Any]
MOST_RATIOS = 20  # a longer comparison shows those that moved most
_MOST_REASONS, _MOST_NUMBERS = 5, 8
_SHA256, _DIGITS = re.compile("[0-9a-f]{64}"), 12


def listing_table(listing: SweepListing) -> TextTable:
    """Return the table of a sweep: a row for each task, and why tasks failed."""
    columns = (
        Column("task"),
        *(
            Column(name.replace("_", "\n"), numeric=_is_numeric(listing, name))
            for name in listing.varied
        ),
        Column("status", numeric=False),
        Column("times\nbegun"),
        Column("seconds"),
        *(Column(name.replace(".", ".\n").replace("_", "\n")) for name in listing.metrics),
    )
    numbers = {row.key: str(place) for place, row in enumerate(listing.rows, start=1)}
    rows = tuple(_listed(row, numbers[row.key], listing) for row in listing.shown)
    said = ", ".join(f"{count} {status}" for status, count in listing.counts.items())
    title = f"{listing.folder}: {counted(len(listing.rows), 'task')} ({said})"
    return TextTable(
        title=title, columns=columns, sections=(rows,), notes=tuple(_reasons(listing, numbers))
    )


def listing_rows(listing: SweepListing) -> list[Row]:
    """Return one CSV row per task: its settings, how it went, and every single value of its row."""
    return [_flat(row) for row in listing.shown]


def comparison_table(comparison: RunsComparison) -> TextTable:
    """Return two runs side by side: numbers, then settings and surroundings that differ."""
    first, second = comparison.folders
    shown = _most_moved(comparison.numbers)
    heads = ("number", "of", "A", "B", "B / A", *(("judged",) if comparison.factor else ()))
    columns = tuple(Column(head, numeric=head in ("A", "B", "B / A")) for head in heads)
    names = dict.fromkeys(number.metric for number in shown)
    return TextTable(
        title=f"A: {first}\nB: {second}",
        columns=columns,
        sections=tuple(
            tuple(_compared(number)[: len(heads)] for number in shown if number.metric == name)
            for name in names
        ),
        shared=1,
        notes=(*_left_out(comparison, shown), *_check_words(comparison), *comparison.notes),
        more=tuple(
            _differences(name, found)
            for name, found in (
                ("Settings that differ", comparison.settings),
                ("Where and with what they ran", comparison.surroundings),
            )
            if found
        ),
    )


def comparison_rows(comparison: RunsComparison) -> list[Row]:
    """Return one CSV row per compared number, with every digit."""
    return [number.to_json() for number in comparison.numbers]


def long_table_text(table: TextTable) -> str:
    """Return a table as plain lines, as it is in a pipe; ten thousand rows take no time."""
    heads = [column.heading.split("\n") for column in table.columns]
    height = max(map(len, heads))
    upright = [[""] * (height - len(head)) + head for head in heads]
    lines = list(zip(*upright, strict=True))
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, *table.rows, strict=True)]
    rule = tuple("─" * width for width in widths)
    text = [table.title, *(_line(cells, widths, table) for cells in (*lines, rule, *table.rows))]
    return "\n".join([*text, "", *table.notes]) + "\n"


def _line(cells: Cells, widths: list[int], table: TextTable) -> str:
    padded = []
    for cell, width, column in zip(cells, widths, table.columns, strict=True):
        blank = " " * (width - cell_len(cell))
        padded.append(blank + cell if column.numeric else cell + blank)
    return "  ".join(padded).rstrip()


def _is_numeric(listing: SweepListing, name: str) -> bool:
    return all(isinstance(row.settings.get(name), int | float) for row in listing.rows)


def _listed(row: StoredRow, number: str, listing: SweepListing) -> Cells:
    values = row.single_values()
    return (
        number,
        *(_short(_text(row.settings.get(name))) for name in listing.varied),
        row.status,
        str(row.attempts),
        number_text(row.seconds, 3),
        *(_text(values.get(name)) for name in listing.metrics),
    )


def _reasons(listing: SweepListing, numbers: Mapping[str, str]) -> list[str]:
    """Return a sentence for each reason of failure, with the tasks that failed by it."""
    by_reason: dict[str, list[str]] = {}
    for row in listing.shown:
        if row.reason is not None:
            by_reason.setdefault(row.reason, []).append(numbers[row.key])
    notes = [] if listing.shown else ["There is no such task."]
    for reason, tasks in list(by_reason.items())[:_MOST_REASONS]:
        which = ", ".join(tasks[:_MOST_NUMBERS]) + (", ..." if len(tasks) > _MOST_NUMBERS else "")
        noun = "Task" if len(tasks) == 1 else f"{len(tasks)} tasks, numbers"
        notes.append(f"{noun} {which}: {reason}")
    if len(by_reason) > _MOST_REASONS:
        notes.append(f"{len(by_reason) - _MOST_REASONS} more reasons are in --format csv.")
    return notes


def _flat(row: StoredRow) -> Row:
    settings = {name: _plain(value) for name, value in row.settings.items()}
    went = {
        "status": row.status,
        "reason": row.reason,
        "attempts": row.attempts,
        "started": row.started,
        "seconds": row.seconds,
    }
    flat = {"key": row.key, **settings, **went}
    for name, value in row.single_values().items():
        flat[f"row.{name}" if name in flat else name] = value
    return flat


def _compared(number: ComparedNumber) -> Cells:
    judged = "past it" if number.past else "within"
    if number.a is None or number.b is None:
        judged = ABSENT
    numbers = (number_text(number.a), number_text(number.b), number_text(number.ratio, 4))
    return (number.metric, number.what, *numbers, judged)


def _most_moved(numbers: tuple[ComparedNumber, ...]) -> tuple[ComparedNumber, ...]:
    """Return the numbers in their order, of many those that are past the factor or moved most."""
    if len(numbers) <= MOST_RATIOS:
        return numbers

    def moved(number: ComparedNumber) -> tuple[bool, float]:
        ratio = number.ratio
        return number.past, math.inf if ratio is None or ratio <= 0 else abs(math.log(ratio))

    kept = {id(number) for number in sorted(numbers, key=moved, reverse=True)[:MOST_RATIOS]}
    return tuple(number for number in numbers if id(number) in kept)


def _left_out(comparison: RunsComparison, shown: tuple[ComparedNumber, ...]) -> list[str]:
    missing = len(comparison.numbers) - len(shown)
    if not missing:
        return []
    return [
        f"{counted(missing, 'number')} that moved less, of {len(comparison.numbers)}, "
        "are in --format csv."
    ]


def _check_words(comparison: RunsComparison) -> list[str]:
    both = [
        f"{pair[0]} of {pair[1]} in {name}"
        for name, pair in zip("AB", comparison.checks_passed, strict=True)
        if pair is not None
    ]
    return [f"Checks passed: {', '.join(both)}."] if both else []


def _differences(title: str, found: tuple[Difference, ...]) -> TextTable:
    columns = (Column("", numeric=False), Column("A", numeric=False), Column("B", numeric=False))
    rows = tuple((one.name, _text(one.a), _text(one.b)) for one in found)
    return TextTable(title=title, columns=columns, sections=(rows,))


def _text(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return number_text(value, 4)
    return str(_plain(value))


def _short(text: str) -> str:
    """Return a sha256 as its first digits, which a table has room for; any other text as it is.

    >>> _short("0123456789abcdef" * 4), _short("lstm")
    ('0123456789ab', 'lstm')
    """
    return text[:_DIGITS] if _SHA256.fullmatch(text) else text


def _plain(value: Any) -> Any:
    """Return a value as CSV has it: lists and objects as JSON."""
    return json.dumps(value) if isinstance(value, list | dict | bool) else value
