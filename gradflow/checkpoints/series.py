"""A user's input series from a file: .npy, .npz or .csv, as (time, batch, input)."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gradflow.errors import SeriesError, nearest_name

SUFFIXES = (".npy", ".npz", ".csv")
_USUAL_NAMES = ("x", "input", "inputs", "data")
_NO_ARRAY = (
    "it is no NumPy array of numbers (pickled objects are never loaded: to load one can run "
)
_NO_ARRAY += "any code). Save the series with numpy.save"


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
    place, what = Path(path), f"{flag} {str(path)!r}"
    if place.suffix.lower() not in SUFFIXES:
        raise SeriesError(
            f"{flag} reads .npy, .npz and .csv, by the ending of the name; got {str(path)!r}. "
            "Convert it, for example with numpy.save."
        )
    read = _read_csv if place.suffix.lower() == ".csv" else _read_numpy
    try:
        data = place.read_bytes()
        array = read(data, what)
    except SeriesError:
        raise
    except Exception as problem:  # damage shows as whatever zipfile, zlib or tokenize raise
        reason = getattr(problem, "strerror", None) or str(problem).rstrip(".")
        raise SeriesError(f"{flag} cannot read {str(path)!r}: {reason}.") from None
    return Series(_as_series(array, what), place.name, hashlib.sha256(data).hexdigest())


def _read_numpy(data: bytes, what: str) -> NDArray[np.generic]:
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        array = loaded[_chosen_name(list(loaded.files), what)]
    except ValueError as problem:
        if "pickle" in str(problem):  # NumPy's word for all that it does not know
            raise ValueError(_NO_ARRAY) from None
        raise
    if not isinstance(array, np.ndarray):  # another file that somebody put into the archive
        raise ValueError(_NO_ARRAY)
    return array


def _chosen_name(names: list[str], what: str) -> str:
    """Return the name of an archive's one array, or of the first that has a usual name."""
    chosen = names if len(names) == 1 else [name for name in _USUAL_NAMES if name in names]
    if chosen:
        return chosen[0]
    if not names:
        raise SeriesError(f"{what} holds no array, so there is no input. Save the series in it.")
    raise SeriesError(
        f"{what} holds {len(names)} arrays, and none of them is called x, input, inputs or data. "
        f"{nearest_name('x', names)} Save the series alone."
    )


def _read_csv(data: bytes, what: str) -> NDArray[np.float64]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8. Save it as one") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[float | None]] = []
    headings_may_come = True
    for line in reader:
        if not any(cell.strip() for cell in line):
            continue
        numbers = [_number(cell) for cell in line]
        if headings_may_come and not any(number is not None for number in numbers):
            headings_may_come = False
            continue
        headings_may_come = False
        _require_row(line, numbers, rows, f"{what}: line {reader.line_num}")
        rows.append(numbers)
    return np.array(rows, dtype=np.float64)


def _number(cell: str) -> float | None:
    """Return the cell's number; None for text, and for 1_000, which only Python would read."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _require_row(
    line: list[str], numbers: list[float | None], rows: list[list[float | None]], where: str
) -> None:
    if None in numbers:
        raise SeriesError(
            f"{where} is {','.join(line)[:60]!r}, and every line must be a step: a number per "
            "input, with commas between. Only the first line may be headings, no number in it."
        )
    if rows and len(numbers) != len(rows[0]):
        raise SeriesError(
            f"{where} has {len(numbers)} numbers, the first has {len(rows[0])}; every line must "
            "have as many, one per input."
        )


def _as_series(array: NDArray[np.generic], what: str) -> NDArray[np.float64]:
    if array.dtype.kind not in "fiub":
        raise SeriesError(f"{what} must hold real numbers; got {array.dtype}.")
    if array.ndim not in (1, 2, 3) or array.size == 0:
        raise SeriesError(
            f"{what} must be (time), (time, input) or (time, batch, input), with at least one "
            f"number; got shape {array.shape}."
        )
    with np.errstate(over="ignore"):  # a long double that becomes infinite is refused below
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
