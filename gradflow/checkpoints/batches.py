"""A user's data for a model: arrays, tensors, a series cut into windows, or a function."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gradflow.checkpoints.files import read_file
from gradflow.checkpoints.series_windows import series_windows
from gradflow.checkpoints.user_files import is_place, load_object
from gradflow.errors import CellLoadError, SeriesError, SettingError

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
        return series_windows(path, window, target)
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
