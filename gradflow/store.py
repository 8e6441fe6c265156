"""The only module that writes results to disk, and reads them back.

A run folder holds `config.toml` (the settings in force), CSV tables, `figures/*.png|svg` and
`result.json`. Every file is written whole under a temporary name first; then all are renamed,
`result.json` last. So a file under its final name is never half-written, and a folder that has a
`result.json` is complete, whatever stopped the program.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradflow.atomic import TEMPORARY, write_files
from gradflow.documents import Json, Row, csv_text, json_text
from gradflow.errors import RunFolderError, nearest_name
from gradflow.records import (
    BenchmarkResult,
    DecayResult,
    DepthResult,
    InitsResult,
    InspectResult,
    ParamsResult,
    ParityResult,
    Result,
    SaturateResult,
    SpectrumResult,
    SpeedResult,
    StepResult,
    WatchRun,
)
from gradflow.records.watch_log import LOG_NAME, run_from_lines

_RESULT, _CONFIG, _FIGURES = "result.json", "config.toml", "figures"
_CONFIG_LINE = re.compile(r"# gradflow \S+, settings sha256 ([0-9a-f]{64})")
_READERS: dict[str, Callable[[Mapping[str, Any]], Result]] = {
    "benchmark": BenchmarkResult.from_json,
    "decay": DecayResult.from_json,
    "depth": DepthResult.from_json,
    "spectrum": SpectrumResult.from_json,
    "speed": SpeedResult.from_json,
    "saturate": SaturateResult.from_json,
    "parity": ParityResult.from_json,
    "inits": InitsResult.from_json,
    "inspect": InspectResult.from_json,
    "step": StepResult.from_json,
    "params": ParamsResult.from_json,
    "watch": WatchRun.from_json,
}


def run_folder(command: str, digest: str, out: str | Path | None = None) -> Path:
    """Return the folder of a run: `out`, or `runs/<command>-<first 8 digits of the digest>`.

    >>> run_folder("decay", "0123456789abcdef").as_posix()
    'runs/decay-01234567'

    Raises:
        RunFolderError: `out` is empty.
    """
    if out is not None and not str(out):
        raise RunFolderError("--out names a folder; got ''. Say . for the working directory.")
    return Path("runs") / f"{command}-{digest[:8]}" if out is None else Path(out)


def require_free(folder: Path, digest: str, *, force: bool = False) -> None:
    """Check, before anything is measured, that a run of these settings may go into `folder`.

    A new or empty folder may be taken, and one with a run of the same settings is renewed. One
    with a run of other settings is kept unless `force`; one with anything else is always kept.

    Raises:
        RunFolderError: the folder must not or cannot be written.
    """
    try:
        if _is_free(folder, digest, force=force):
            _require_writable(folder)
    except (OSError, ValueError) as problem:
        if isinstance(problem, RunFolderError):
            raise
        raise _cannot_write(folder, problem) from None


def begin_run(folder: Path, config: str) -> None:
    """Write a run's `config.toml` before anything is measured.

    A run that keeps what it has in the folder as it goes (a sweep) begins so: whatever stops it,
    the folder says whose it is, and the same command may go on in it.

    Args:
        folder: see `run_folder`; checked before with `require_free`.
        config: the settings in force, as `gradflow.config.settings_toml` gives them. A result of
            other settings goes.

    Raises:
        RunFolderError: the folder cannot be written.
    """
    digest = _digest_of(config)
    try:
        write_files(
            {folder / _CONFIG: config.encode()},
            before_renaming=lambda: _remove_replaced(folder, [_CONFIG], digest),
        )
    except (OSError, ValueError) as problem:
        raise _cannot_write(folder, problem) from None


def save_run(
    folder: Path,
    document: Json,
    *,
    config: str,
    tables: Mapping[str, Sequence[Row]],
    figures: Mapping[str, bytes],
) -> Path:
    """Write a run and return its folder.

    Args:
        folder: see `run_folder`; checked before with `require_free`.
        document: the whole strict-JSON document of the result.
        config: the settings in force, as TOML.
        tables: table name to its rows; each becomes `<name>.csv`.
        figures: file name (`decay.png`) to its bytes; each goes into `figures/`.

    Raises:
        RunFolderError: the folder cannot be written. Then nothing of this run is left in it.
    """
    files = {_CONFIG: config.encode()}
    files |= {f"{name}.csv": csv_text(rows).encode() for name, rows in tables.items()}
    files |= {f"{_FIGURES}/{name}": data for name, data in figures.items()}
    files[_RESULT] = json_text(document).encode()
    digest = document["environment"]["settings_sha256"]
    try:
        write_files(
            {folder / name: data for name, data in files.items()},
            before_renaming=lambda: _remove_replaced(folder, files, digest),
        )
    except (OSError, ValueError) as problem:
        raise _cannot_write(folder, problem) from None
    return folder


def save_files(folder: Path, files: Mapping[str, bytes], *, old: Iterable[str] = ()) -> Path:
    """Write the files of a folder whole, or none of them, and return the folder.

    Args:
        folder: see `run_folder`; checked before with `require_free`.
        files: path within the folder to contents, renamed into place in this order.
        old: patterns of files that an earlier run of this command wrote; what matches and is not
            written again is removed.

    Raises:
        RunFolderError: the folder cannot be written.
    """

    def remove_old() -> None:
        for path in [path for pattern in old for path in folder.glob(pattern)]:
            written = path.relative_to(folder).as_posix() in files
            if path.is_file() and not written and not path.name.endswith(TEMPORARY):
                path.unlink()

    try:
        contents = {folder / name: data for name, data in files.items()}
        write_files(contents, before_renaming=remove_old)
    except (OSError, ValueError) as problem:
        raise _cannot_write(folder, problem) from None
    return folder


def figure_path(folder: Path, figures: Iterable[str]) -> Path:
    """Return where the first of a run's figures is, the folder itself where it has none."""
    names = list(figures)
    return folder / _FIGURES / names[0] if names else folder


def load_document(folder: str | Path) -> Json:
    """Read the document of a run folder (or of a `result.json` itself).

    A watched training's is made from its log, which is there while it runs and after a crash.

    Raises:
        RunFolderError: there is none, or it is no result of gradflow.
    """
    path = Path(folder)
    if (log := _log_of(path)) is not None:
        return load_log(log).to_json()
    try:
        path = path / _RESULT if path.is_dir() else path
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFolderError(
            f"a run folder holds a {_RESULT}, and there is none at {str(path)!r}. "
            "Name the folder that a command wrote (its --out)."
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise RunFolderError(f"cannot read {str(path)!r} as a result: {reason}.") from None
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith(
        "gradflow/"
    ):
        raise RunFolderError(f"{str(path)!r} is no result of gradflow: it names no schema.")
    return document


def load_log(path: str | Path) -> WatchRun:
    """Read the log of a watched training, of a file or of the run folder that holds it.

    Raises:
        RunFolderError: there is none, or the file is no log.
    """
    file = Path(path)
    try:
        file = file / LOG_NAME if file.is_dir() else file
        # a program that was killed may have left half a letter behind
        return run_from_lines(file.read_text(encoding="utf-8", errors="replace").splitlines())
    except FileNotFoundError:
        raise RunFolderError(
            f"a watched training leaves a {LOG_NAME}, and there is none at {str(file)!r}. "
            "Name the log, or the folder that gradflow.watch wrote (its out)."
        ) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise RunFolderError(
            f"cannot read {str(file)!r} as the log of a watched training: {reason}."
        ) from None


def _log_of(path: Path) -> Path | None:
    """Return the log of a watched training that `path` is or holds, None where there is none."""
    with suppress(OSError, ValueError):
        log = path / LOG_NAME if path.is_dir() else path
        return log if log.suffix == Path(LOG_NAME).suffix and log.is_file() else None
    return None


def load_result(folder: str | Path) -> Result:
    """Read a stored result back as its record.

    Raises:
        RunFolderError: there is none, or this version of gradflow does not know its kind.
    """
    document = load_document(folder)
    _, kind, version = [*document["schema"].split("/"), "", ""][:3]
    if kind not in _READERS or version != "1":
        raise RunFolderError(
            f"{str(folder)!r} holds a {document['schema']!r}, which this version does not read. "
            + nearest_name(kind, _READERS)
        )
    try:
        return _READERS[kind](document)
    except (KeyError, TypeError, ValueError) as problem:
        raise RunFolderError(
            f"{str(folder)!r} is damaged: {type(problem).__name__} {problem}. Run it again."
        ) from None


def _is_free(folder: Path, digest: str, *, force: bool) -> bool:
    if not folder.exists() or all(_is_left_over(path) for path in folder.iterdir()):
        return True
    held = _digest_in(folder)
    if held is None:
        raise RunFolderError(
            f"--out {str(folder)!r} holds files that are no run of gradflow, and they would mix. "
            "Name a new or an empty folder."
        )
    if held != digest and not force:
        raise RunFolderError(
            f"--out {str(folder)!r} holds a run of other settings (sha256 {held[:8]}, these are "
            f"{digest[:8]}). Name another folder, or replace that run with --force."
        )
    return True


def _is_left_over(path: Path) -> bool:
    """Return whether a killed run left `path`: a temporary file, or a folder of no other."""
    if path.name == _FIGURES and path.is_dir():
        return all(_is_left_over(file) for file in path.iterdir())
    return path.name.endswith(TEMPORARY)


def _digest_in(folder: Path) -> str | None:
    """Return the settings' digest of the run in `folder`, None where it is no run folder.

    A run that was stopped while it was written has no result yet, only its `config.toml`.
    """
    with suppress(OSError, ValueError, AttributeError, KeyError):
        document = load_document(folder)
        return str(document["environment"]["settings_sha256"])
    with suppress(OSError, ValueError):
        return _digest_of((folder / _CONFIG).read_text(encoding="utf-8"))
    return None


def _digest_of(config: str) -> str | None:
    """Return the settings' digest that the first line of a `config.toml` names."""
    match = _CONFIG_LINE.fullmatch(config.partition("\n")[0])
    return None if match is None else match[1]


def _remove_replaced(folder: Path, files: Iterable[str], digest: str | None) -> None:
    """Remove what a run of other settings or of another style left: it would mix with the new."""
    old = [*(folder / _FIGURES).glob("*.pdf")]  # of figures for paper; the screen has none
    if _digest_in(folder) not in (None, digest):
        (folder / _RESULT).unlink(missing_ok=True)
        old += [*folder.glob("*.csv"), *(folder / _FIGURES).glob("*.png")]
        old += (folder / _FIGURES).glob("*.svg")
    for path in old:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()


def _require_writable(folder: Path) -> None:
    with suppress(FileNotFoundError):
        folder.stat()  # a file on the way, a name that no disk takes
    existing = folder
    while not (existing.exists() or existing.is_symlink()) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _cannot_write(folder: Path, problem: Exception) -> RunFolderError:
    code = problem.errno if isinstance(problem, OSError) else None
    reason, cure = _REASONS.get(
        code or 0, (getattr(problem, "strerror", None) or str(problem), "Name another folder.")
    )
    return RunFolderError(f"--out {str(folder)!r} cannot be written: {reason}. {cure}")


_ANOTHER = "Name another folder with --out."
_REASONS = {
    errno.ENOTDIR: ("a file is in the way", _ANOTHER),
    errno.EEXIST: ("a file is in the way", _ANOTHER),
    errno.EISDIR: ("a folder is where a file must go", _ANOTHER),
    errno.EACCES: ("its folder may not be changed by you", _ANOTHER),
    errno.EPERM: ("its folder may not be changed by you", _ANOTHER),
    errno.EROFS: ("its disk is read-only", _ANOTHER),
    errno.ENOSPC: ("its disk is full", "Nothing of this run was left there; free some space."),
    errno.EDQUOT: ("your quota is used up", "Nothing of this run was left there; free some space."),
    errno.ENAMETOOLONG: ("the name is too long", "Name it shorter."),
}
