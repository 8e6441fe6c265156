"""A user's data for a model: arrays, tensors, a series cut into windows, or a function."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradflow.checkpoints.files import read_file
from gradflow.checkpoints.user_files import is_place, load_object
from gradflow.errors import CellLoadError, SeriesError, SettingError, nearest_name

MOST_WINDOWS = 64
_TENSORS = (".pt", ".pth", ".npz", ".safetensors")


def load_batch(spec: str, *, window: int | None = None, target: str | None = None) -> object:
    """Return a batch: inputs, (inputs, targets, ...), or a mapping with such keys.

    Args:
        spec: `file.py:make_batch`; .npz, .pt, .pth or .safetensors with `inputs` (or `x`) and, if
            known, `targets` (`y`) and `lengths`; .npy with the inputs; a .csv series, a line a
            step, which is cut into windows.
        window: how many steps a sample of a series has.
        target: the column that is predicted, one step after the window; by name, or number from 0.

    Raises:
        SeriesError, CheckpointError, CellLoadError: it cannot be read, or the function fails.
        SettingError: a series without --window.
    """
    path = Path(spec).expanduser()
    ending = path.suffix.lower()
    if ending == ".csv":
        if window is None:
            raise SettingError(
                "--data of a .csv series needs --window, the number of steps of one sample; for "
                "example --window 60."
            )
        return _windows(path, window, target)
    if ending in _TENSORS:
        return read_file(path, whole=True)  # data have other names than weights
    if ending == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError) as problem:
            raise SeriesError(f"--data cannot read {spec!r}: {problem}.") from None
    if is_place(spec) and ":" in spec:
        return _made(spec)
    raise SeriesError(
        f"--data reads .npz, .npy, .pt, .safetensors, .csv, or file.py:make_batch; got {spec!r}."
    )


def _made(spec: str) -> object:
    made = load_object(spec)
    if not callable(made):
        return made
    try:
        return made()
    except Exception as problem:  # whatever the user's code raises
        first = (str(problem).splitlines() or [""])[0]
        raise CellLoadError(f"--data {spec} fails: {type(problem).__name__}: {first}") from problem


def _windows(path: Path, window: int, target: str | None) -> dict[str, Any]:
    """Return windows (sample, window, column), evenly spaced, and the target after each."""
    names, values = _read(path)
    column = None if target is None else _column(target, names, path)
    last = len(values) - window - (0 if column is None else 1)
    if last < 0:
        raise SeriesError(
            f"--window {window} is longer than the series: {path} has {len(values)} steps."
        )
    starts = np.unique(np.linspace(0, last, min(MOST_WINDOWS, last + 1)).round().astype(int))
    inputs = np.stack([values[start : start + window] for start in starts])
    batch: dict[str, Any] = {"inputs": torch.from_numpy(inputs).float()}
    if column is not None:
        after = values[starts + window, column]
        batch["targets"] = torch.from_numpy(after[:, None]).float()
    return batch


def _read(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            lines = [line for line in csv.reader(text) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise SeriesError(f"--data cannot read {str(path)!r}: {reason}.") from None
    if not lines:
        raise SeriesError(f"{path} has no line with numbers.")
    names = [str(number) for number in range(len(lines[0]))]
    if not all(_is_number(cell) for cell in lines[0]):
        names, lines = [cell.strip() for cell in lines[0]], lines[1:]
    numeric = [k for k in range(len(names)) if lines and _is_number((lines[0] + [""] * k)[k])]
    try:
        values = np.array([[float(line[k]) for k in numeric] for line in lines])
    except (ValueError, IndexError):
        raise SeriesError(
            f"{path} must have a number in every column of every line but the headings; empty "
            "cells and words in between are not filled in."
        ) from None
    if not values.size or not np.isfinite(values).all():
        raise SeriesError(f"{path} must hold finite numbers.")
    return [names[k] for k in numeric], values


def _column(target: str, names: Sequence[str], path: Path) -> int:
    if target in names:
        return list(names).index(target)
    if target.isdigit() and int(target) < len(names):
        return int(target)
    raise SeriesError(f"{path} has no column {target!r}. {nearest_name(target, names)}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
