"""What stands on the disk is whole, and is never someone else's."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradflow import atomic
from gradflow.config import DecaySettings, settings_digest, settings_toml
from gradflow.documents import csv_text, json_text
from gradflow.errors import RunFolderError
from gradflow.provenance import Stopwatch, provenance
from gradflow.records import Check, DecayCurve, DecayResult
from gradflow.store import (
    begin_run,
    load_document,
    load_result,
    require_free,
    run_folder,
    save_run,
)


def decay_result(seed: int = 0) -> DecayResult:
    """Return a small result with a curve that reaches zero."""
    curve = DecayCurve(
        cell="lstm",
        gate_name="forget",
        gate_value=0.5,
        gate_min=0.5,
        gate_max=0.5,
        candidate_gain=0.0,
        state="h",
        path="full",
        norm="spectral",
        steps=np.array([1, 2, 3]),
        log10_norm=np.array([-0.3, -np.inf, -np.inf]),
        trend_log10=np.array([-0.3, -0.6, -0.9]),
        rate=None,
        trend_rate=-0.69,
        half_life=None,
        first_zero_step=2,
        zero_reason="exact",
    )
    settings = DecaySettings(seed=seed)
    return DecayResult(
        curves=(curve,),
        config=settings.to_json(),
        environment=provenance("decay", settings, Stopwatch(), argv=["gradflow"]),
        checks=(Check("finite", True, "3 of 3"),),
    )


def save(folder: Path, seed: int = 0, *, force: bool = False, **tables: list[dict[str, object]]):
    """Store a small run as the commands do: check the folder first, then write."""
    settings = DecaySettings(seed=seed)
    require_free(folder, settings_digest("decay", settings), force=force)
    return save_run(
        folder,
        decay_result(seed).to_json(),
        config=settings_toml("decay", settings),
        tables={"curves": [{"seed": seed}], **tables},
        figures={"decay.png": b"png", "decay.svg": b"svg"},
    )


def files_in(folder: Path) -> list[str]:
    """Return every file under `folder`, hidden ones too."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


COMPLETE = ["config.toml", "curves.csv", "figures/decay.png", "figures/decay.svg", "result.json"]


def test_a_run_folder_is_named_after_the_question_and_its_settings():
    """The same measurement goes to the same folder, by the first 8 digits of its digest."""
    digest = settings_digest("decay", DecaySettings())
    assert run_folder("decay", digest) == Path("runs") / f"decay-{digest[:8]}"
    assert run_folder("decay", digest, "mine") == Path("mine")


def test_a_run_folder_holds_the_document_the_settings_the_tables_and_the_figures(tmp_path: Path):
    """All of it is there, and nothing else."""
    folder = save(tmp_path / "deep" / "run")
    assert files_in(folder) == COMPLETE
    assert (folder / "curves.csv").read_text() == "seed\n0\n"
    assert (folder / "figures" / "decay.svg").read_bytes() == b"svg"


def test_a_stored_result_reads_back_as_it_was(tmp_path: Path):
    """Every number survives, and zero (minus infinity, null in JSON) comes back as zero."""
    folder = save(tmp_path / "run")
    result = load_result(folder)
    assert isinstance(result, DecayResult)
    (curve,) = result.curves
    assert curve.log10_norm.tolist() == [-0.3, -np.inf, -np.inf]
    assert curve.zero_reason == "exact"
    assert result.to_json() == load_document(folder / "result.json")


def test_the_document_is_strict_json(tmp_path: Path):
    """No NaN and no infinity: other programs' readers refuse them."""
    text = (save(tmp_path / "run") / "result.json").read_text()
    assert "Infinity" not in text
    assert "NaN" not in text
    assert json.loads(text)["schema"] == "gradflow/decay/1"


def test_a_number_that_is_not_finite_is_no_document(tmp_path: Path):
    """It is a fault of ours when one reaches the store, and is not written as if it were JSON."""
    document = {"environment": {}, "value": float("nan")}
    with pytest.raises(ValueError, match="Out of range"):
        save_run(tmp_path / "never", document, config="", tables={}, figures={})
    assert files_in(tmp_path) == []


def test_a_run_of_the_same_settings_is_renewed(tmp_path: Path):
    """Running again is no mistake."""
    save(tmp_path / "run")
    save(tmp_path / "run")
    assert files_in(tmp_path / "run") == COMPLETE


def test_a_run_of_other_settings_is_kept_unless_forced(tmp_path: Path):
    """An old measurement is not lost by a slip; by --force it goes, with its tables."""
    folder = save(tmp_path / "run", 0, old=[{"a": 1}])
    with pytest.raises(RunFolderError, match=r"other settings.*--force"):
        save(folder, 1)
    assert load_document(folder)["config"]["seed"] == 0
    save(folder, 1, force=True)
    assert load_document(folder)["config"]["seed"] == 1
    assert files_in(folder) == COMPLETE


def test_a_run_that_has_begun_owns_its_folder(tmp_path: Path):
    """What it keeps there as it goes is taken up by the same settings, and by no others."""
    mine, other = DecaySettings(seed=0), DecaySettings(seed=1)
    begin_run(tmp_path / "run", settings_toml("decay", mine))
    (tmp_path / "run" / "rows.sqlite").write_text("hours of work")
    require_free(tmp_path / "run", settings_digest("decay", mine))
    with pytest.raises(RunFolderError, match="other settings"):
        require_free(tmp_path / "run", settings_digest("decay", other))
    save(tmp_path / "run", 0)
    begin_run(tmp_path / "run", settings_toml("decay", mine))
    assert files_in(tmp_path / "run") == sorted([*COMPLETE, "rows.sqlite"])


def test_a_run_that_is_forced_into_a_folder_owns_it_as_soon_as_it_begins(tmp_path: Path):
    """The old result goes first: if the new run is stopped, the folder is its own all the same."""
    folder = save(tmp_path / "run", 0)
    begin_run(folder, settings_toml("decay", DecaySettings(seed=1)))
    assert files_in(folder) == ["config.toml"]
    require_free(folder, settings_digest("decay", DecaySettings(seed=1)))


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["notes.txt", "result.json", ".hidden"])
def test_a_folder_of_other_things_is_never_written(tmp_path: Path, name: str, force: bool):
    """Not even --force mixes a run with files that are no run."""
    (tmp_path / name).write_text("{}")
    with pytest.raises(RunFolderError, match="no run of gradflow"):
        save(tmp_path, force=force)
    assert files_in(tmp_path) == [name]


def test_an_empty_folder_may_be_taken(tmp_path: Path):
    """Who makes the folder first means it."""
    save(tmp_path)
    assert files_in(tmp_path) == COMPLETE


@pytest.mark.parametrize("out", ["file", "file/below", "x" * 300, "a\0b"])
def test_a_place_that_cannot_be_a_folder_is_refused_before_anything_runs(tmp_path: Path, out: str):
    """A file in the way, or a name that no disk takes."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunFolderError, match="cannot be written"):
        require_free(tmp_path / out, "0" * 64)
    assert files_in(tmp_path) == ["file"]


def test_a_read_only_place_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nobody measures for an hour to be told then that the folder is not theirs."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RunFolderError, match=r"may not be changed by you\. Name another folder"):
        require_free(tmp_path / "run", "0" * 64)


@pytest.mark.parametrize("full_at", range(5))
def test_a_full_disk_leaves_nothing_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_at: int
):
    """Whichever file the disk ends at, no part of the run stays, nor the folders made for it."""
    write, written = atomic._write, []

    def write_until_full(path: Path, data: bytes) -> None:
        if len(written) == full_at:
            path.write_bytes(data[:1])
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        write(path, data)

    monkeypatch.setattr(atomic, "_write", write_until_full)
    with pytest.raises(RunFolderError, match=r"its disk is full\. Nothing of this run was left"):
        save(tmp_path / "deep" / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_earlier_run_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A renewal that fails has taken nothing away."""
    folder = save(tmp_path / "run")

    def fail(*_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(atomic, "_write", fail)
    with pytest.raises(RunFolderError, match="quota"):
        save(folder, 1, force=True)
    assert files_in(folder) == COMPLETE
    assert load_document(folder)["config"]["seed"] == 0


KILLED = """
import os, signal, sys
from pathlib import Path
from gradflow import atomic
from tests.test_store import save
left = int(sys.argv[2])
def count_down(function):
    def wrapper(*arguments):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return function(*arguments)
    return wrapper
atomic._write = count_down(atomic._write)
Path.replace = count_down(Path.replace)
save(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("kill_at", [0, 2, 4, 5, 7, 9])
def test_a_killed_run_leaves_no_half_written_file_and_is_taken_up_again(
    tmp_path: Path, kill_at: int
):
    """Killed before any of its 5 writes or 5 renames: what has its final name is whole, the
    result comes last, and the next run cleans up and completes the folder.
    """
    folder = tmp_path / "run"
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", KILLED, str(folder), str(kill_at)]
    killed = subprocess.run(command, cwd=root, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert "result.json" not in files_in(folder)
    final = [name for name in files_in(folder) if not name.endswith(atomic.TEMPORARY)]
    assert final == COMPLETE[: max(0, kill_at - 5)]
    save(folder)
    assert files_in(folder) == COMPLETE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "cannot read"),
        ("[1]", "names no schema"),
        ('{"schema": "other/1"}', "names no schema"),
        ('{"schema": "gradflow/decy/1"}', "Did you mean 'decay'?"),
        ('{"schema": "gradflow/decay/99"}', "this version does not read"),
        ('{"schema": "gradflow/decay/1"}', "is damaged"),
        ('{"schema": "gradflow/decay/1", "results": {"curves": [{}]}}', "is damaged"),
    ],
)
def test_a_file_that_is_no_result_is_one_message(tmp_path: Path, content: str, words: str):
    """Empty, foreign, newer or damaged: the message says which."""
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(RunFolderError) as caught:
        load_result(tmp_path)
    assert words in str(caught.value)


def test_a_folder_without_a_result_says_what_to_name(tmp_path: Path):
    """The folder that a command wrote is what `load_result` wants."""
    with pytest.raises(RunFolderError, match=r"there is none .*its --out"):
        load_result(tmp_path / "nowhere")


def test_a_document_is_read_by_people_too():
    """Objects are indented, and a long list of numbers does not take a line for each."""
    text = json_text({"curve": {"steps": list(range(1000)), "parts": [{"name": "a"}]}})
    assert len(text.splitlines()) == 10
    assert json.loads(text)["curve"]["steps"] == list(range(1000))


def test_a_table_has_every_column_of_every_row():
    """Rows may lack columns; a cell that nobody filled is empty."""
    assert csv_text([{"a": 1}, {"b": "x,y", "a": None}]) == 'a,b\n1,\n,"x,y"\n'


def test_provenance_says_what_ran_where_and_when():
    """Enough to run it again: versions, settings' digest, seed, threads, start and seconds."""
    watch = Stopwatch()
    found = provenance("decay", DecaySettings(seed=5, dtype="float32"), watch, argv=["a", "b"])
    assert found["argv"] == ["a", "b"]
    assert (found["seed"], found["dtype"], found["device"]) == (5, "float32", "cpu")
    assert found["settings_sha256"] == settings_digest(
        "decay", DecaySettings(seed=5, dtype="float32")
    )
    assert found["started"].endswith("Z")
    assert len(found["started"]) == 20
    assert found["numpy"] == np.__version__
    assert found["seconds"] >= 0
    json.dumps(found, allow_nan=False)
