"""The record of `gradflow decay`: curves of log10 ||ds_T/ds_0|| over T."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gradflow.records.base import (
    FloatArray,
    IntArray,
    Json,
    Result,
    array_from_list,
    finite_list,
    finite_or_none,
)
from gradflow.records.paths import CellPaths

_LN_LARGEST = math.log(sys.float_info.max)


@dataclass(frozen=True)
class AutogradCheck:
    """An independent reading of the same norm by torch.autograd, at a few steps.

    `steps` are the T at which autograd's own numbers are normal; `max_relative_error` is the
    largest |gradflow/autograd - 1| over them, None where no such T exists. `subject` names the
    module that autograd differentiated.
    """

    steps: tuple[int, ...]
    max_relative_error: float | None
    tolerance: float
    subject: str

    def to_json(self) -> Json:
        """Return the check as the contract's `autograd` object."""
        return {
            "steps": list(self.steps),
            "max_relative_error": finite_or_none(self.max_relative_error),
            "tolerance": self.tolerance,
            "subject": self.subject,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any] | None) -> Self | None:
        """Read a check back, None where none was made."""
        if document is None:
            return None
        return cls(**{**document, "steps": tuple(document["steps"])})


@dataclass(frozen=True)
class DecayCurve:
    """log10 ||ds_T/ds_0|| over T, for one cell, gate value, candidate gain and path.

    `steps` counts from 1. `log10_norm` is base 10, -inf where the norm is exactly zero (then
    `first_zero_step` and `zero_reason` say from when and why) and nan where it is not a number.
    `rate` and `trend_rate` are in nats per step, `half_life` in steps. `exact_rate` is ln of the
    spectral radius of a step at the zero state, of built-in cells: what `rate` is in the long run
    where the state stays at zero or comes to it. A cell without a keep gate
    has None for `gate_name`, `gate_value`, `trend_log10` and `trend_rate`.
    """

    cell: str
    gate_name: str | None
    gate_value: float | None
    gate_min: float | None
    gate_max: float | None
    candidate_gain: float | None
    state: str
    path: str
    norm: str
    steps: IntArray
    log10_norm: FloatArray
    trend_log10: FloatArray | None
    rate: float | None
    trend_rate: float | None
    half_life: float | None
    first_zero_step: int | None = None
    zero_reason: str | None = None
    method: str = "dense"
    settled_step: int | None = None
    log10_norm_upper: FloatArray | None = None
    exact_rate: float | None = None
    autograd: AutogradCheck | None = None
    notes: tuple[str, ...] = ()

    @property
    def factor_per_step(self) -> float | None:
        """e^rate: what one step multiplies the norm by, in the long run; inf beyond all floats."""
        if self.rate is None:
            return None
        return math.exp(self.rate) if self.rate < _LN_LARGEST else math.inf

    @property
    def departure(self) -> float | None:
        """rate - trend_rate in nats per step: how far f^T (z^T) is from the truth."""
        if self.rate is None or self.trend_rate is None:
            return None
        return self.rate - self.trend_rate

    def to_json(self) -> Json:
        """Return the curve as one entry of the contract's `results.curves`."""
        upper = self.log10_norm_upper
        return {
            "cell": self.cell,
            "gate_name": self.gate_name,
            "gate_value": self.gate_value,
            "gate_min": finite_or_none(self.gate_min),
            "gate_max": finite_or_none(self.gate_max),
            "candidate_gain": self.candidate_gain,
            "state": self.state,
            "path": self.path,
            "norm": self.norm,
            "method": self.method,
            "steps": [int(step) for step in self.steps],
            "settled_step": self.settled_step,
            "log10_norm": finite_list(self.log10_norm),
            "log10_norm_upper": None if upper is None else finite_list(upper),
            "first_zero_step": self.first_zero_step,
            "zero_reason": self.zero_reason,
            "trend_log10": None if self.trend_log10 is None else finite_list(self.trend_log10),
            "rate": finite_or_none(self.rate),
            "factor_per_step": finite_or_none(self.factor_per_step),
            "trend_rate": finite_or_none(self.trend_rate),
            "departure": finite_or_none(self.departure),
            "exact_rate": finite_or_none(self.exact_rate),
            "half_life": finite_or_none(self.half_life),
            "autograd": None if self.autograd is None else self.autograd.to_json(),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.curves` back."""
        zero_from = document["first_zero_step"]
        steps = np.array(document["steps"], dtype=np.int64)
        log10_norm = array_from_list(document["log10_norm"], missing=math.nan)
        if zero_from is not None:  # null means zero from that step on, "not a number" elsewhere
            log10_norm[np.isnan(log10_norm) & (steps >= zero_from)] = -math.inf
        trend, upper = document["trend_log10"], document.get("log10_norm_upper")
        return cls(
            **{key: document[key] for key in _PLAIN_CURVE_FIELDS},
            steps=steps,
            log10_norm=log10_norm,
            trend_log10=None if trend is None else array_from_list(trend, missing=math.nan),
            settled_step=document.get("settled_step"),
            log10_norm_upper=None if upper is None else array_from_list(upper, missing=-math.inf),
            exact_rate=document.get("exact_rate"),
            autograd=AutogradCheck.from_json(document["autograd"]),
            notes=tuple(document["notes"]),
        )


_PLAIN_CURVE_FIELDS = (
    "cell", "gate_name", "gate_value", "gate_min", "gate_max", "candidate_gain", "state", "path",
    "norm", "rate", "trend_rate", "half_life", "first_zero_step", "zero_reason", "method",
)  # fmt: skip


@dataclass(frozen=True)
class ExactLine:
    """The exact rate of one cell and gate value over the candidate's gain, in nats per step.

    `candidate_gain` ascends; `rate` is -inf where a step leaves nothing of the state.
    """

    cell: str
    gate_name: str
    gate_value: float
    candidate_gain: FloatArray
    rate: FloatArray

    def to_json(self) -> Json:
        """Return the line as one entry of `results.exact_lines`; -inf is null."""
        return {
            "cell": self.cell,
            "gate_name": self.gate_name,
            "gate_value": self.gate_value,
            "candidate_gain": [float(gain) for gain in self.candidate_gain],
            "rate": finite_list(self.rate),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.exact_lines` back."""
        return cls(
            **{key: document[key] for key in ("cell", "gate_name", "gate_value")},
            candidate_gain=np.array(document["candidate_gain"], dtype=np.float64),
            rate=array_from_list(document["rate"], missing=-math.inf),
        )


@dataclass(frozen=True)
class DecayResult(Result):
    """The curves of one `gradflow decay`, and notes on what they show.

    `paths` tells for each curve where its gradient travels, where that was asked for;
    `exact_lines` the exact rates over the candidate's gain, where three gains or more were.
    """

    command: ClassVar[str] = "decay"

    curves: tuple[DecayCurve, ...]
    notes: tuple[str, ...] = ()
    paths: tuple[CellPaths, ...] = ()
    exact_lines: tuple[ExactLine, ...] = ()

    def results_json(self) -> Json:
        """Return curves and notes; `"paths"` and `"exact_lines"` where they were measured."""
        results = {"curves": [curve.to_json() for curve in self.curves], "notes": list(self.notes)}
        if self.exact_lines:
            results["exact_lines"] = [line.to_json() for line in self.exact_lines]
        if self.paths:
            results["paths"] = [paths.to_json() for paths in self.paths]
        return results

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/decay/1` document back."""
        return cls(
            curves=tuple(DecayCurve.from_json(entry) for entry in document["results"]["curves"]),
            notes=tuple(document["results"]["notes"]),
            paths=tuple(
                CellPaths.from_json(entry) for entry in document["results"].get("paths", ())
            ),
            exact_lines=tuple(
                ExactLine.from_json(entry) for entry in document["results"].get("exact_lines", ())
            ),
            **cls.frame_from_json(document),
        )
