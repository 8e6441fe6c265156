"""What the row store has acknowledged stays, and what it cannot do it says."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gradflow.errors import RunFolderError
from gradflow.sweeps import StoredRow, SweepTask, load_rows, row_store
from gradflow.sweeps.disks import disk_type, is_network_disk
from gradflow.sweeps.row_store import RowStore

TASKS = [SweepTask({"seed": seed, "cell": "gru"}) for seed in range(3)]
SINGLE = {"accuracy": 0.75, "learned": True, "note": None, "costs": {"updates": 3}}
CURVE = {**SINGLE, "curve": [0.5, 0.25], "by": {"t": [1]}}


def stored(task: SweepTask, status: str = "done") -> StoredRow:
    """Return a row of a task."""
    row = CURVE if status == "done" else None
    reason = None if status == "done" else "its worker died"
    return StoredRow(task.key, task.settings, status, reason, row, 1, "2026-01-31T12:00:00Z", 0.5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RowStore]:
    """A store with a grid of three tasks, of which the second is done."""
    with RowStore(tmp_path) as store:
        store.set_grid(TASKS)
        store.append(stored(TASKS[1]))
        yield store


def test_a_row_comes_back_as_it_was(store: RowStore, tmp_path: Path):
    """Every value and kind; a task without a row is there, and waits."""
    waiting = [StoredRow(task.key, task.settings, "waiting") for task in TASKS]
    assert store.rows() == (waiting[0], stored(TASKS[1]), waiting[2])
    assert load_rows(tmp_path) == store.rows()
    assert list(load_rows(tmp_path)[1].row or {}) == list(CURVE)


def test_a_list_of_rows_does_without_their_curves(store: RowStore, tmp_path: Path):
    """Single values alone are read: that is what a table shows."""
    row = load_rows(tmp_path, details=False)[1].row
    assert row == SINGLE


def test_a_done_row_is_never_replaced_and_a_failed_one_is(store: RowStore):
    """Nothing is there twice."""
    store.append(stored(TASKS[0], "failed"))
    store.append(stored(TASKS[0]))
    with pytest.raises(RunFolderError, match="UNIQUE"):
        store.append(stored(TASKS[1], "failed"))
    assert [row.status for row in store.rows()] == ["done", "done", "waiting"]


def test_a_smaller_sweep_keeps_the_rows_that_it_does_not_list(store: RowStore, tmp_path: Path):
    """They are hours of work; the sweep that has them again finds them."""
    store.set_grid(TASKS[:1])
    assert [row.status for row in store.rows()] == ["waiting"]
    assert load_rows(tmp_path, grid_only=False) == (stored(TASKS[1]),)
    store.set_grid(TASKS)
    assert store.rows()[1] == stored(TASKS[1])


def pragma(database: sqlite3.Connection, name: str) -> object:
    """Return what a database says of itself."""
    return database.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize(("network", "journal"), [(False, "wal"), (True, "delete")])
def test_every_row_is_synced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: bool, journal: str
):
    """With a write-ahead log, or without one where machines share the disk; 2 is FULL."""
    monkeypatch.setattr(row_store, "is_network_disk", lambda _: network)
    with RowStore(tmp_path) as store:
        assert pragma(store._database, "journal_mode") == journal
        assert pragma(store._database, "synchronous") == 2


def test_a_closed_database_is_one_plain_file(tmp_path: Path):
    """It can be copied, and read from a disk that cannot be written."""
    with RowStore(tmp_path) as store:
        store.set_grid(TASKS)
        store.append(stored(TASKS[0]))
        assert (tmp_path / "sweep.sqlite-wal").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".sweep.lock", "sweep.sqlite"]
    with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as database:
        assert pragma(database, "journal_mode") == "delete"
        assert pragma(database, "integrity_check") == "ok"


def test_rows_are_read_while_the_driver_writes(store: RowStore, tmp_path: Path):
    """A transaction that is open hides nothing that was stored before, and waits for no reader."""
    store._database.execute("BEGIN IMMEDIATE")
    assert [row.status for row in load_rows(tmp_path)] == ["waiting", "done", "waiting"]
    store._database.execute("COMMIT")
    store.append(stored(TASKS[2]))
    assert [row.status for row in load_rows(tmp_path)] == ["waiting", "done", "done"]


def test_what_a_killed_driver_left_is_whole(store: RowStore, tmp_path: Path):
    """The files as they are in the middle of a run, copied elsewhere: every row is there."""
    place = tmp_path / "copy"
    place.mkdir()
    for path in tmp_path.glob("sweep.sqlite*"):
        shutil.copyfile(path, place / path.name)
    assert [row.status for row in load_rows(place)] == ["waiting", "done", "waiting"]
    with RowStore(place) as again:
        assert again.rows()[1] == stored(TASKS[1])


def test_a_log_in_a_folder_that_cannot_be_written_is_read_from_a_copy(
    store: RowStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A database that was not closed needs a second file to be read; a read-only disk has none."""
    load = row_store._load
    asked: list[Path] = []

    def refuse_here(path: Path, query: str, *, details: bool) -> object:
        asked.append(path)
        if path.parent == tmp_path:
            raise sqlite3.OperationalError("unable to open database file")
        return load(path, query, details=details)

    monkeypatch.setattr(row_store, "_load", refuse_here)
    assert load_rows(tmp_path)[1] == stored(TASKS[1])
    assert len(asked) == 2
    assert not asked[1].exists()


def test_a_full_disk_is_one_message_and_earlier_rows_stay(store: RowStore, tmp_path: Path):
    """A limit on the database's own size stands for the disk."""
    pages = pragma(store._database, "page_count")
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    large = StoredRow(TASKS[0].key, TASKS[0].settings, "done", row={"curve": [0.125] * 9999})
    with pytest.raises(RunFolderError, match=r"its disk is full.*are safe"):
        store.append(large)
    assert [row.status for row in store.rows()] == ["waiting", "done", "waiting"]
    assert pragma(store._database, "integrity_check") == "ok"


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    """It is not touched."""
    (tmp_path / "sweep.sqlite").write_text("these are my notes, and they are longer than a header")
    for use in (RowStore, load_rows):
        with pytest.raises(RunFolderError, match=r"sweep\.sqlite' cannot be used: it is no data"):
            use(tmp_path)
    assert (tmp_path / "sweep.sqlite").read_text().startswith("these are my notes")


def test_a_database_of_another_program_is_left_alone(tmp_path: Path):
    """Its tables say so; none of ours is added."""
    with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as database:
        database.execute("CREATE TABLE notes (text)")
    for use in (RowStore, load_rows):
        with pytest.raises(RunFolderError, match=r"of another program \(it has a table 'notes'\)"):
            use(tmp_path)
    with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as database:
        assert database.execute("SELECT name FROM sqlite_schema").fetchall() == [("notes",)]


def test_a_row_that_is_no_json_is_named_with_the_cure(store: RowStore, tmp_path: Path):
    """Which row it is, and how to be rid of it; that done, its task waits again."""
    store._database.execute("UPDATE rows SET row = '{' WHERE key = ?", (TASKS[1].key,))
    with pytest.raises(RunFolderError, match=f"row of key {TASKS[1].key} is damaged") as damaged:
        load_rows(tmp_path)
    cure = str(damaged.value).split("(")[1].split(")")[0]
    store._database.execute(cure)
    assert {row.status for row in load_rows(tmp_path)} == {"waiting"}


def test_rows_of_a_later_version_are_left_alone(tmp_path: Path):
    """Their tables may mean something else."""
    with closing(sqlite3.connect(tmp_path / "sweep.sqlite")) as database:
        database.execute("PRAGMA user_version = 7")
    for use in (RowStore, load_rows):
        with pytest.raises(RunFolderError, match=r"number 7.*does not know"):
            use(tmp_path)


def test_a_folder_without_a_sweep_says_what_to_name(tmp_path: Path):
    """Reading makes no database."""
    with pytest.raises(RunFolderError, match="Name the folder that a sweep"):
        load_rows(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_was_not_filled_has_no_rows(tmp_path: Path):
    """Its driver was killed between making the file and making its tables."""
    (tmp_path / "sweep.sqlite").touch()
    assert load_rows(tmp_path) == ()


def test_a_file_in_the_way_is_one_message(tmp_path: Path):
    """Where a folder must go there is a file."""
    (tmp_path / "run").write_text("")
    with pytest.raises(RunFolderError, match="a file is in the way"):
        RowStore(tmp_path / "run")


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/home/ada/runs", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/ada", "ext4"),
        ("/data/my disk/runs", "lustre"),
        ("/tmp/deep/folder", "tmpfs"),
    ],
)
def test_the_disk_of_a_folder_is_that_of_the_deepest_mount(place: str, kind: str):
    """Blanks are written as 040 there, and a later mount lies on top of an earlier one."""
    mounts = [
        "/dev/sda1 / ext4 rw 0 0",
        "lab:/home /home nfs4 rw 0 0",
        "lab@tcp:/data /data/my\\040disk lustre rw 0 0",
        "/dev/sdb1 /tmp xfs rw 0 0",
        "tmpfs /tmp tmpfs rw 0 0",
        "garbage",
    ]
    assert disk_type(Path(place), mounts) == kind


def test_a_system_that_does_not_tell_its_mounts_has_local_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Then the log is used, as on every desktop; a network disk that is told is found."""
    monkeypatch.setattr("gradflow.sweeps.disks._MOUNTS", tmp_path / "none")
    assert not is_network_disk(tmp_path)
    (tmp_path / "mounts").write_text(f"/dev/sda / ext4 rw 0 0\nsrv:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr("gradflow.sweeps.disks._MOUNTS", tmp_path / "mounts")
    assert is_network_disk(tmp_path / "deep")
    assert not is_network_disk(Path("/"))
