"""A series in a .csv, a line a step, cut into windows with the value after each as the target."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradflow.errors import SeriesError, nearest_name

MOST_WINDOWS = 64
_SEPARATORS = ",;\t|"
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class Table:
    """The columns of a .csv that hold numbers, and the names of those that do not."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    left_out: tuple[str, ...] = ()


def series_windows(path: Path, window: int, target: str | None) -> dict[str, Any]:
    """Return windows (sample, window, column), evenly spaced, and the target after each.

    Args:
        path: a .csv with or without a line of headings; commas, semicolons, tabs or bars between.
        window: how many steps a sample has.
        target: the column that is predicted, by its name or its number from 0.

    Returns:
        A batch: `inputs`, `targets` where a column is predicted, `notes` in sentences.

    Raises:
        SeriesError: it cannot be read, a number is missing, or it is too short.
    """
    table = read_table(path)
    column = None if target is None else _column(target, table.names, path)
    last = len(table.values) - window - (0 if column is None else 1)
    if last < 0:
        after = "" if column is None else " and one step after it"
        raise SeriesError(
            f"--window {window}{after} is longer than the series: {path} has {len(table.values)} "
            "steps."
        )
    starts = np.unique(np.linspace(0, last, min(MOST_WINDOWS, last + 1)).round().astype(int))
    inputs = np.stack([table.values[start : start + window] for start in starts])
    batch: dict[str, Any] = {"inputs": torch.from_numpy(inputs).float()}
    if column is not None:
        batch["targets"] = torch.from_numpy(table.values[starts + window, column][:, None]).float()
    batch["notes"] = tuple(_notes(table, len(starts), last + 1))
    return batch


def read_table(path: Path) -> Table:
    """Return a .csv's columns of numbers.

    A column without any number (a date, a label) is left out. Of a column with numbers every cell
    must be one.

    Raises:
        SeriesError: it cannot be read, or holds no such column; a missing number with its place.
    """
    lines, separator = _lines(path)
    width = len(lines[0][1])
    cells = [(number, [_number(cell, separator) for cell in row]) for number, row in lines]
    headings = _are_headings(lines[0][1], [row for _, row in cells])
    names = [cell.strip() for cell in lines[0][1]] if headings else list(map(str, range(width)))
    rows = cells[1:] if headings else cells
    if not rows:
        raise SeriesError(f"{path} has headings and no line with numbers.")
    for number, row in rows:
        if len(row) != width:
            raise SeriesError(
                f"{path}: line {number} has {len(row)} cells, the first has {width}; every line "
                "must have as many, one per column."
            )
    known = [k for k in range(width) if any(row[k] is not None for _, row in rows)]
    for number, row in rows:
        _require_numbers(path, number, [row[k] for k in known], [names[k] for k in known])
    if not known:
        raise SeriesError(f"{path} has no column of numbers (looked for {separator!r} in between).")
    values = np.array([[row[k] for k in known] for _, row in rows], dtype=np.float64)
    rest = tuple(name for k, name in enumerate(names) if k not in known and name)
    return Table(tuple(names[k] for k in known), values, rest)


def _are_headings(first: Sequence[str], rows: Sequence[Sequence[float | None]]) -> bool:
    """Return whether the first line names the columns: words where numbers follow, or words alone.

    A year may be a column's name; a date in every line is none.
    """
    if all(value is None for value in rows[0]):
        return True
    return any(
        value is None and word.strip() and any(row[k : k + 1] != [None] for row in rows[1:])
        for k, (word, value) in enumerate(zip(first, rows[0], strict=True))
    )


def _lines(path: Path) -> tuple[list[tuple[int, list[str]]], str]:
    """Return the lines' numbers and cells, without empty lines and comments; what separates them.

    Raises:
        SeriesError: the file cannot be read, or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text in UTF-8. Save it as one"
        raise SeriesError(f"--data cannot read {str(path)!r}: {reason}.") from None
    kept = [line if not line.lstrip().startswith("#") else "" for line in text.splitlines()]
    first = next((line for line in kept if line.strip()), None)
    if first is None:
        raise SeriesError(f"{path} has no line with numbers.")
    bare = re.sub(r'"[^"]*"', "", first)
    separator = max(_SEPARATORS, key=bare.count)
    reader = csv.reader(kept, delimiter=separator)
    rows = [(reader.line_num, row) for row in reader]
    return [(number, row) for number, row in rows if any(cell.strip() for cell in row)], separator


def _number(cell: str, separator: str) -> float | None:
    """Return a cell's number, None for text; 3,5 is one where commas separate nothing."""
    plain = cell.strip()
    if separator != "," and _DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    try:
        return None if "_" in plain else float(plain)
    except ValueError:
        return None


def _require_numbers(
    path: Path, line: int, row: Sequence[float | None], names: Sequence[str]
) -> None:
    for value, name in zip(row, names, strict=True):
        if value is None or not np.isfinite(value):
            what = "no number" if value is None else f"{value}"
            raise SeriesError(
                f"{path}: line {line} has {what} in column {name!r}. Every line must have a finite "
                "number in each column that has numbers: nothing is filled in."
            )


def _column(target: str, names: Sequence[str], path: Path) -> int:
    if list(names).count(target) > 1:
        raise SeriesError(f"{path} has several columns {target!r}. Give its number, from 0.")
    if target in names:
        return list(names).index(target)
    if target.isdecimal() and int(target) < len(names):
        return int(target)
    raise SeriesError(f"{path} has no column {target!r} of numbers. {nearest_name(target, names)}")


def _notes(table: Table, taken: int, available: int) -> list[str]:
    notes = []
    if table.left_out:
        shown = ", ".join(table.left_out[:4])
        notes.append(f"Columns without numbers are left out: {shown}.")
    if taken < available:
        notes.append(f"{taken} of the series' {available} windows are run, evenly spaced.")
    return notes
