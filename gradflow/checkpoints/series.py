"""A user's input series from a file: .npy, .npz or .csv, as (time, batch, input)."""

from __future__ import annotations

import csv
import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradflow.errors import SeriesError, nearest_name

SUFFIXES = (".npy", ".npz", ".csv")
_USUAL_NAMES = ("x", "input", "inputs", "data")


@dataclass(frozen=True)
class Series:
    """An input series (time, batch, input) in float64, the file's name and its sha256."""

    values: NDArray[np.float64]
    file: str
    sha256: str


def load_series(path: str | Path, *, flag: str = "--data") -> Series:
    """Read an input series.

    An array of one axis is (time), of two (time, input), of three (time, batch, input). An .npz
    holds one array, or several of which one is called x, input, inputs or data. A .csv has a line
    per step and a column per input, separated by commas, with or without a line of headings.

    Args:
        path: the file; what it is goes by its ending.
        flag: what the user called it, for messages.

    Raises:
        SeriesError: the file cannot be read, or holds no such series; numbers that are not finite
            are refused with their place.
    """
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES:
        raise SeriesError(
            f"{flag} reads .npy, .npz and .csv, by the ending of the name; got {str(path)!r}. "
            "Convert it, for example with numpy.save."
        )
    try:
        data = place.read_bytes()
        array = _read_csv(place) if place.suffix.lower() == ".csv" else _read_numpy(place)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
        if isinstance(problem, SeriesError):
            raise
        reason = getattr(problem, "strerror", None) or str(problem)
        raise SeriesError(f"{flag} cannot read {str(path)!r}: {reason}.") from None
    values = _as_series(array, f"{flag} {str(path)!r}")
    return Series(values, place.name, hashlib.sha256(data).hexdigest())


def _read_numpy(place: Path) -> NDArray[np.generic]:
    loaded = np.load(place, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded as archive:
        names = list(archive.files)
        chosen = names if len(names) == 1 else [name for name in _USUAL_NAMES if name in names]
        if not chosen:
            raise SeriesError(
                f"{str(place)!r} holds {len(names)} arrays, and none of them is called x, input, "
                f"inputs or data. {nearest_name('x', names)} Save the series alone."
            )
        array: NDArray[np.generic] = archive[chosen[0]]
        return array


def _read_csv(place: Path) -> NDArray[np.float64]:
    with place.open(encoding="utf-8-sig", newline="") as text:
        lines = [line for line in csv.reader(text) if any(cell.strip() for cell in line)]
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append([float(cell) for cell in line])
        except ValueError:
            if number == 1:  # headings
                continue
            raise SeriesError(
                f"{str(place)!r} has a line per step and a number per input; "
                f"line {number} is {','.join(line)[:60]!r}."
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise SeriesError(
                f"{str(place)!r} has as many numbers in every line; line {number} has "
                f"{len(rows[-1])}, the first has {len(rows[0])}."
            )
    return np.array(rows, dtype=np.float64)


def _as_series(array: NDArray[np.generic], what: str) -> NDArray[np.float64]:
    if array.dtype.kind not in "fiub":
        raise SeriesError(f"{what} must hold real numbers; got {array.dtype}.")
    if array.ndim not in (1, 2, 3) or array.size == 0:
        raise SeriesError(
            f"{what} must be (time), (time, input) or (time, batch, input), with at least one "
            f"number; got shape {array.shape}."
        )
    values = np.asarray(array, dtype=np.float64)
    values = values.reshape(len(values), 1, -1) if values.ndim < 3 else values
    broken = np.argwhere(~np.isfinite(values))
    if len(broken):
        step, row, column = broken[0]
        raise SeriesError(
            f"{what} must hold finite numbers, because the state would be lost with the first that "
            f"is not; step {step + 1}, row {row + 1}, input {column + 1} is "
            f"{values[step, row, column]}."
        )
    return values
