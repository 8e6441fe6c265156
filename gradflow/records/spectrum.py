"""The record of `gradflow spectrum`: Lyapunov exponents in nats per step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gradflow.records.base import (
    FloatArray,
    Json,
    Result,
    array_from_list,
    finite_list,
    finite_or_none,
)


@dataclass(frozen=True)
class SpectrumInput:
    """What the cell was fed: "zero", "random" or "data", then with the file and its sha256."""

    kind: str
    width: int
    file: str | None = None
    sha256: str | None = None

    def to_json(self) -> Json:
        """Return the input as strict JSON."""
        return {"kind": self.kind, "width": self.width, "file": self.file, "sha256": self.sha256}


@dataclass(frozen=True)
class SpectrumResult(Result):
    """The Lyapunov exponents of one cell, the largest first, in nats per step.

    `exponents` (count,) are -inf for directions that nothing is left of; `zero_reason` then says
    "exact" (the cell is built so) or "underflow" (they shrink faster than the dtype can tell), and
    is None elsewhere. `standard_errors` (count,) are nan where unknown. `by_row` (networks *
    trajectories, count) holds the exponents of each. `gain` is None for a user's cell.
    `kaplan_yorke_dimension` is None where more exponents would be needed. `state_size` is the
    number of all exponents.
    """

    command: ClassVar[str] = "spectrum"

    cell: str
    gain: float | None
    state_size: int
    steps: int
    warmup: int
    networks: int
    trajectories: int
    fed: SpectrumInput
    exponents: FloatArray
    standard_errors: FloatArray
    zero_reason: tuple[str | None, ...]
    by_row: FloatArray
    kaplan_yorke_dimension: float | None
    method: str = "qr"
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many exponents were measured."""
        return len(self.exponents)

    @property
    def sum(self) -> float:
        """The sum of the exponents: of all of them, the mean of ln |det J_t|; -inf with a zero."""
        return float(self.exponents.sum())

    @property
    def vanished(self) -> int:
        """How many directions nothing is left of."""
        return int(np.isneginf(self.exponents).sum())

    def results_json(self) -> Json:
        """Return the contract's `results` object; an exponent of -inf is null, with its reason."""
        return {
            "cell": self.cell,
            "gain": self.gain,
            "state_size": self.state_size,
            "count": self.count,
            "steps": self.steps,
            "warmup": self.warmup,
            "networks": self.networks,
            "trajectories": self.trajectories,
            "input": self.fed.to_json(),
            "method": self.method,
            "exponents": finite_list(self.exponents),
            "standard_errors": finite_list(self.standard_errors),
            "zero_reason": list(self.zero_reason),
            "sum": finite_or_none(self.sum),
            "kaplan_yorke_dimension": finite_or_none(self.kaplan_yorke_dimension),
            "by_row": [finite_list(row) for row in self.by_row],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/spectrum/1` document back."""
        results = document["results"]
        plain = ("cell", "gain", "state_size", "steps", "warmup", "networks", "trajectories")
        rows = [array_from_list(row, missing=-math.inf) for row in results["by_row"]]
        return cls(
            **{key: results[key] for key in plain},
            fed=SpectrumInput(**results["input"]),
            exponents=array_from_list(results["exponents"], missing=-math.inf),
            standard_errors=array_from_list(results["standard_errors"], missing=math.nan),
            zero_reason=tuple(results["zero_reason"]),
            by_row=np.array(rows),
            kaplan_yorke_dimension=results["kaplan_yorke_dimension"],
            method=results["method"],
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )
