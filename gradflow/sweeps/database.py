"""A sweep's database: its tables, how a row goes in and comes out, what can go wrong."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradflow.errors import RunFolderError
from gradflow.records.sweeps import DONE, FAILED, WAITING, StoredRow

DATABASE = "sweep.sqlite"
VERSION = 1
_TABLES = {"grid", "rows"}
# `details` holds what is, or contains, a list (a learning curve), `row` all else: ten thousand rows
# are listed without reading the former.
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS grid (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, settings TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS rows (
    key TEXT PRIMARY KEY, settings TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('{DONE}', '{FAILED}')),
    reason TEXT, attempts INTEGER NOT NULL, started TEXT, seconds REAL, row TEXT, details TEXT
) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""
INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
# In both, {details} is either the column or NULL.
SELECT_GRID = f"""
SELECT grid.key, grid.settings, coalesce(status, '{WAITING}'), reason, coalesce(attempts, 0),
       started, seconds, row, {{details}}
FROM grid LEFT JOIN rows ON rows.key = grid.key ORDER BY position
"""
SELECT_ALL = """
SELECT key, settings, status, reason, attempts, started, seconds, row, {details} FROM rows
"""


def values_of(row: StoredRow) -> tuple[str | int | float | None, ...]:
    """Return a row as the values of its columns."""
    plain = details = None
    if row.row is not None:
        long = {key for key, value in row.row.items() if _has_list(value)}
        plain = _text({key: value for key, value in row.row.items() if key not in long})
        details = _text({key: value for key, value in row.row.items() if key in long})
    return (
        *(row.key, _text(row.settings), row.status, row.reason),
        *(row.attempts, row.started, row.seconds, plain, details),
    )


def row_of(values: Sequence[Any]) -> StoredRow:
    """Return the row that a line of `SELECT_GRID` or `SELECT_ALL` is.

    Raises:
        ValueError: it was changed by another hand, and is no JSON any more.
    """
    key, settings, status, reason, attempts, started, seconds, plain, details = values
    try:
        asked = json.loads(settings)
        row = None if plain is None else json.loads(plain) | json.loads(details or "{}")
    except ValueError:
        raise ValueError(
            f"the row of key {key} is damaged, no JSON. Delete it (DELETE FROM rows WHERE key = "
            f"'{key}') and run the same command again"
        ) from None
    return StoredRow(key, asked, status, reason, row, attempts, started, seconds)


def require_version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables in a database, 0 where it has none yet.

    Raises:
        RunFolderError: it is of another gradflow, or another program.
    """
    tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    if foreign := sorted({name for (name,) in tables} - _TABLES):
        raise RunFolderError(
            f"{str(path)!r} is the database of another program (it has a table "
            f"{foreign[0]!r}). Name another folder."
        )
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, VERSION):
        raise RunFolderError(
            f"{str(path)!r} has rows in a form (number {version}) that this version of gradflow "
            "does not know. Name another folder."
        )
    return version


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise what the disk or the database refuses as an error that says what helps."""
    try:
        yield
    except RunFolderError:
        raise
    except (OSError, sqlite3.Error, ValueError) as problem:
        text = str(getattr(problem, "strerror", None) or problem)
        known = [sentence for words, sentence in _REASONS.items() if words in text.lower()]
        raise RunFolderError(
            f"{str(path)!r} cannot be used: {known[0] if known else text + '.'} "
            "Rows that were stored before are safe."
        ) from None


def _has_list(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else ()
    return isinstance(value, list) or any(map(_has_list, inner))


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), separators=(",", ":"), allow_nan=False)


_FOREIGN = "it, or its folder, may not be changed by you. Name another folder with --out."
_FULL = "its disk is full. Free some space and run the same command again."
_IN_THE_WAY = "a file is in the way. Name another folder with --out."
_REASONS = {
    "readonly": _FOREIGN,
    "permission denied": _FOREIGN,
    "unable to open": _FOREIGN,
    "read-only file system": "its disk is read-only. Name another folder with --out.",
    "full": _FULL,
    "no space": _FULL,
    "not a database": "it is no database. Move it away, or name another folder.",
    "malformed": "it is damaged. Move it away, or name another folder.",
    "not a directory": _IN_THE_WAY,
    "file exists": _IN_THE_WAY,
    "locked": "another program holds it. Close that program and run the same command again.",
}
