"""Small faults rebuilt from the field, stored under ``tests/data`` with what is right of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

DATA = Path(__file__).parent / "data"
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class FieldCase:
    """A small fault rebuilt from public reports: arrays, what is right of them, and how nearly.

    `source` cites the reports, parted by "; ": a page, or owner/repository#thread on GitHub.
    """

    source: str
    question: str
    expected: dict[str, Any]
    tolerance: float
    arrays: Arrays

    def weights(self, name: str) -> Arrays:
        """Return one model's weights out of several: "NAME.weight_ih" becomes "weight_ih"."""
        prefix = f"{name}."
        return {
            key.removeprefix(prefix): value
            for key, value in self.arrays.items()
            if key.startswith(prefix)
        }


def field_case(name: str) -> FieldCase:
    """Read ``tests/data/NAME.json`` and, where there is one, ``tests/data/NAME.npz``."""
    text = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    archive = DATA / f"{name}.npz"
    arrays: Arrays = {}
    if archive.exists():
        with np.load(archive) as stored:
            arrays = {key: stored[key] for key in stored.files}
    return FieldCase(**text, arrays=arrays)


def lstm_cell_of(weights: Arrays, dtype: torch.dtype = torch.float64) -> nn.LSTMCell:
    """Return the LSTM cell that has these weights (torch's names, without ``_l0``)."""
    tensors = {name: torch.tensor(value) for name, value in weights.items()}
    rows, inputs = tensors["weight_ih"].shape
    cell = nn.LSTMCell(inputs, rows // 4, dtype=dtype)
    cell.load_state_dict(tensors)
    return cell
