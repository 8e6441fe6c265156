"""The record of where a gradient travels: norms along each path, for one cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gradflow.records.base import (
    FloatArray,
    IntArray,
    Json,
    array_from_list,
    finite_list,
    finite_or_none,
)

WITHOUT = "without "
BLOCK = "block "


@dataclass(frozen=True)
class PathLine:
    """log10 of the norm along one path, at the steps of its `CellPaths`.

    `path` is "full", "direct", "rest", "without GATE" (an ablation) or "block ROW,COLUMN" ("block
    joint" for the whole state) of the full Jacobian. `rate` is in nats per step, None where the
    norm is zero or there are too few steps. -inf is zero: from `first_zero_step`, for the reason
    `zero_reason`.
    """

    path: str
    log10_norm: FloatArray
    rate: float | None
    first_zero_step: int | None = None
    zero_reason: str | None = None

    def to_json(self) -> Json:
        """Return the line as strict JSON."""
        return {
            "path": self.path,
            "log10_norm": finite_list(self.log10_norm),
            "rate": finite_or_none(self.rate),
            "first_zero_step": self.first_zero_step,
            "zero_reason": self.zero_reason,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the line back; null is zero where a reason says so, else not a number."""
        missing = math.nan if document["zero_reason"] is None else -math.inf
        logs = array_from_list(document["log10_norm"], missing=missing)
        return cls(**{**document, "log10_norm": logs})


@dataclass(frozen=True)
class CellPaths:
    """Where the gradient of one cell travels, and whether f^T (z^T) is the right model of it.

    `lines` holds the paths, "full" first. `state` names the block that is measured along each:
    "c" for dc_T/dc_0, "joint" for all. `gate_value` and `candidate_gain` are None where the cell
    was measured as it is. `notes` says what could not be measured.
    """

    cell: str
    gate_name: str | None
    gate_value: float | None
    candidate_gain: float | None
    state: str
    norm: str
    steps: IntArray
    lines: tuple[PathLine, ...]
    notes: tuple[str, ...] = ()

    def line(self, path: str) -> PathLine | None:
        """Return the line of a path, None where it was not measured."""
        return next((line for line in self.lines if line.path == path), None)

    @property
    def departure(self) -> float | None:
        """rate(full) - rate(direct) in nats per step: how far the product of gates is from truth.

        None where either has no rate: a cell without a keep gate, a norm that is zero.
        """
        full, direct = self.line("full"), self.line("direct")
        if full is None or direct is None or full.rate is None or direct.rate is None:
            return None
        return full.rate - direct.rate

    def to_json(self) -> Json:
        """Return the paths as one entry of the contract's `results.paths`."""
        return {
            "cell": self.cell,
            "gate_name": self.gate_name,
            "gate_value": self.gate_value,
            "candidate_gain": self.candidate_gain,
            "state": self.state,
            "norm": self.norm,
            "steps": [int(step) for step in self.steps],
            "departure": finite_or_none(self.departure),
            "lines": [line.to_json() for line in self.lines],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.paths` back."""
        plain = ("cell", "gate_name", "gate_value", "candidate_gain", "state", "norm")
        return cls(
            **{key: document[key] for key in plain},
            steps=np.array(document["steps"], dtype=np.int64),
            lines=tuple(PathLine.from_json(line) for line in document["lines"]),
            notes=tuple(document["notes"]),
        )
