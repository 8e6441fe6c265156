"""The rows of a sweep in an embedded database, `sweep.sqlite` in the run folder.

Beside `config`, `store`, `checkpoints` and `cli` this is the one other place that touches the disk:
a sweep may take days, so each row must be safe as soon as it is there, long before `store` writes
the result. Only the process that drives the sweep writes, one transaction a row; workers return
rows and never see the file.

A transaction is synced to the disk before `append` returns: what was acknowledged outlives a killed
driver and a power cut. The write-ahead log that makes this fast (WAL) needs memory that all who
open the file share, which a network disk has not (https://sqlite.org/wal.html, section 1): there,
and in a file that is closed in peace, the older rollback journal is used. So a finished sweep is
one plain file that can be copied and read anywhere.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gradflow.errors import RunFolderError
from gradflow.records.sweeps import DONE, FAILED, WAITING, StoredRow
from gradflow.sweeps.disks import is_network_disk
from gradflow.sweeps.folder_lock import FolderLock
from gradflow.sweeps.tasks import SweepTask

DATABASE = "sweep.sqlite"
_VERSION = 1
_PATIENCE = 30.0  # seconds that a reader, or the driver, waits for the other
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS grid (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, settings TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS rows (
    key TEXT PRIMARY KEY, settings TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('{DONE}', '{FAILED}')),
    reason TEXT, row TEXT, attempts INTEGER NOT NULL, started TEXT, seconds REAL
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_FIELDS = "key, settings, status, reason, row, attempts, started, seconds"
_LISTED = f"""
SELECT grid.key, grid.settings, coalesce(status, '{WAITING}'), reason, row, coalesce(attempts, 0),
       started, seconds
FROM grid LEFT JOIN rows ON rows.key = grid.key ORDER BY position
"""


class RowStore:
    """The rows of one run folder, open for the process that drives the sweep.

    A context manager; the folder is made where it is missing.

    Raises:
        RunFolderError: the folder cannot be written, another process drives a sweep in it, or its
            database is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
        try:
            with _explained(folder):
                self._database = _connect(folder / DATABASE)
                _prepare(self._database, network=is_network_disk(folder))
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Make one plain file of the database and its log, and let go of the folder."""
        with suppress(
            sqlite3.Error
        ):  # someone reads it now: the log stays beside it, which is fine
            self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.close()
        self._lock.release()

    def set_grid(self, tasks: Sequence[SweepTask]) -> None:
        """Store what the sweep consists of, in place of what it was; rows stay."""
        numbered = [(place, task.key, task.text) for place, task in enumerate(tasks)]
        with self._transaction():
            self._database.execute("DELETE FROM grid")
            self._database.executemany("INSERT INTO grid VALUES (?, ?, ?)", numbered)

    def append(self, row: StoredRow) -> None:
        """Store a row; it is on the disk when this returns. A failed row of its key is replaced.

        Raises:
            RunFolderError: it cannot be written; all earlier rows are safe.
        """
        values = (
            row.key,
            _text(row.settings),
            row.status,
            row.reason,
            None if row.row is None else _text(row.row),
            row.attempts,
            row.started,
            row.seconds,
        )
        with self._transaction():
            self._database.execute(
                "DELETE FROM rows WHERE key = ? AND status = ?", (row.key, FAILED)
            )
            marks = ", ".join("?" * len(values))
            self._database.execute(f"INSERT INTO rows ({_FIELDS}) VALUES ({marks})", values)

    def rows(self) -> tuple[StoredRow, ...]:
        """Return a row for each task of the grid, in its order, also for those that wait."""
        with _explained(self.folder):
            return tuple(_row(values) for values in self._database.execute(_LISTED))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _explained(self.folder):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self._database.execute("ROLLBACK")
                raise


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, _VERSION):
        database.close()
        raise RunFolderError(
            f"{str(path)!r} has rows in a form (number {version}) that this version of gradflow "
            "does not know. Name another folder with --out."
        )
    return database


def _prepare(database: sqlite3.Connection, *, network: bool) -> None:
    database.execute(f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(_SCHEMA)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _row(values: Sequence[Any]) -> StoredRow:
    key, settings, status, reason, row, attempts, started, seconds = values
    found = None if row is None else json.loads(row)
    return StoredRow(key, json.loads(settings), status, reason, found, attempts, started, seconds)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Raise what the disk or the database refuses as an error that says what helps."""
    try:
        yield
    except RunFolderError:
        raise
    except (OSError, sqlite3.Error, ValueError) as problem:
        raise RunFolderError(
            f"{str(folder / DATABASE)!r} cannot be used: {_why(problem)} Rows that were stored "
            "before are safe."
        ) from None


def _why(problem: Exception) -> str:
    text = str(getattr(problem, "strerror", None) or problem)
    for words, sentence in _REASONS.items():
        if words in text.lower():
            return sentence
    return f"{text}."


_REASONS = {
    "readonly": "it, or its folder, may not be changed by you. Name another folder with --out.",
    "permission denied": "its folder may not be changed by you. Name another with --out.",
    "unable to open": "its folder may not be changed by you. Name another with --out.",
    "read-only file system": "its disk is read-only. Name another folder with --out.",
    "full": "its disk is full. Free some space and run the same command again.",
    "no space": "its disk is full. Free some space and run the same command again.",
    "not a database": "it is no database. Move it away, or name another folder with --out.",
    "malformed": "it is damaged. Move it away, or name another folder with --out.",
    "not a directory": "a file is in the way. Name another folder with --out.",
    "file exists": "a file is in the way. Name another folder with --out.",
    "locked": "another program holds it. Close that program and run the same command again.",
}
