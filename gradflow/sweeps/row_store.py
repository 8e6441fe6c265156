"""The rows of a sweep in an embedded database, `sweep.sqlite` in the run folder.

Beside `config`, `store`, `checkpoints` and `cli` this room is the one other that touches the disk:
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

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from gradflow.errors import RunFolderError
from gradflow.records.sweeps import FAILED, StoredRow
from gradflow.sweeps.database import (
    DATABASE,
    INSERT,
    SCHEMA,
    SELECT_ALL,
    SELECT_GRID,
    explained,
    require_version,
    row_of,
    values_of,
)
from gradflow.sweeps.disks import is_network_disk
from gradflow.sweeps.folder_lock import FolderLock
from gradflow.sweeps.tasks import SweepTask

_PATIENCE = 30.0  # seconds that a reader, or the driver, waits for the other


class RowStore:
    """The rows of one run folder, open for the process that drives the sweep.

    A context manager; the folder is made where it is missing.

    Raises:
        RunFolderError: the folder cannot be written, another process drives a sweep in it, or its
            database is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / DATABASE
        with explained(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
            try:
                self._database = _open(self._path, network=is_network_disk(folder))
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
        with suppress(sqlite3.Error):  # somebody reads it just now: then the log stays beside it
            self._database.execute("PRAGMA busy_timeout = 0")
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
            RunFolderError: it cannot be written, or is there already; all other rows are safe.
        """
        replaced = "DELETE FROM rows WHERE key = ? AND status = ?"
        with self._transaction():
            self._database.execute(replaced, (row.key, FAILED))
            self._database.execute(INSERT, values_of(row))

    def rows(self) -> tuple[StoredRow, ...]:
        """Return a row for each task of the grid, in its order, also for those that wait."""
        with explained(self._path):
            return _rows(self._database, SELECT_GRID, details=True)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self._path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back by itself
                    self._database.execute("ROLLBACK")
                raise


def load_rows(
    folder: Path, *, details: bool = True, grid_only: bool = True
) -> tuple[StoredRow, ...]:
    """Return the rows of a run folder's sweep without changing anything, also while it runs.

    Args:
        folder: the run folder.
        details: read what has lists in it too; without, rows hold single values only.
        grid_only: one row for each task of the sweep, in its order, also for those that wait;
            else all that is stored, also of an earlier and larger sweep in this folder.

    Raises:
        RunFolderError: there is no sweep in it, or its database cannot be read.
    """
    path = folder / DATABASE
    if not path.is_file():
        raise RunFolderError(
            f"a sweep's folder holds a {DATABASE}, and there is none in {str(folder)!r}. "
            "Name the folder that a sweep such as gradflow benchmark wrote (its --out)."
        )
    query = SELECT_GRID if grid_only else SELECT_ALL
    with explained(path):
        try:
            return _load(path, query, details=details)
        except sqlite3.OperationalError:
            # A log of a killed driver in a folder that may not be changed: read a copy of both.
            with tempfile.TemporaryDirectory() as place:
                for file in folder.glob(f"{DATABASE}*"):
                    shutil.copyfile(file, Path(place) / file.name)
                return _load(Path(place) / DATABASE, query, details=details)


def has_rows(folder: Path) -> bool:
    """Return whether a run folder holds a sweep."""
    return (folder / DATABASE).is_file()


def _open(path: Path, *, network: bool) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        require_version(database, path)
        database.execute(f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _load(path: Path, query: str, *, details: bool) -> tuple[StoredRow, ...]:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE)) as database:
        if require_version(database, path) == 0:  # killed before it was filled
            return ()
        return _rows(database, query, details=details)


def _rows(database: sqlite3.Connection, query: str, *, details: bool) -> tuple[StoredRow, ...]:
    found = database.execute(query.format(details="details" if details else "NULL"))
    return tuple(row_of(values) for values in found)
