"""The record of `gradflow inits`: what initializations do to a cell before any training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
from gradflow.records.decay import AutogradCheck
from gradflow.records.distributions import Distribution, PerSeed


@dataclass(frozen=True)
class GateFlow:
    """One gate (or the candidate) under an initialization, over all draws.

    `bias` is the effective bias over units, `at_rest` the gate at zero input and state (sigmoid of
    it), `value` the gate over the run, all steps and units; a candidate has None for these two.
    `recurrent_*` are the least and greatest singular value of the
    gate's recurrent block, and their mean square.
    """

    name: str
    role: str
    bias: Distribution
    at_rest: Distribution | None
    value: Distribution | None
    recurrent_least: float
    recurrent_greatest: float
    recurrent_mean_square: float

    def to_json(self) -> Json:
        """Return the gate as one entry of `gates`."""
        spreads = {key: getattr(self, key) for key in _SPREADS}
        plain = {key: spread and spread.to_json() for key, spread in spreads.items()}
        return {**asdict(self), **plain}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `gates` back."""
        given = {key: document[key] for key in _SPREADS}
        spreads = {key: entry and Distribution.from_json(entry) for key, entry in given.items()}
        return cls(**{**document, **spreads})


@dataclass(frozen=True)
class InitFlow:
    """What one initialization does to one cell.

    `log10_norm` is the median over draws of log10 ||ds_T/ds_0||, `log10_low` and `log10_high` the
    least and greatest; -inf where zero (then `first_zero_step` and `zero_reason` say from when and
    why, in any draw). Per draw: `rates` in nats per step, `horizons` in steps until the norm is at
    the threshold (None where the run ends before), `spectral_radii` of the first step's Jacobian.
    `singular_values` of that Jacobian are means over draws, greatest first.
    `time_constant` is -1 / ln(keep gate) in steps, over all steps, units and draws.
    """

    cell: str
    init: str
    what: tuple[str, ...]
    state: str
    norm: str
    steps: IntArray
    log10_norm: FloatArray
    log10_low: FloatArray
    log10_high: FloatArray
    rates: PerSeed
    horizons: PerSeed
    spectral_radii: PerSeed
    singular_values: FloatArray
    gates: tuple[GateFlow, ...]
    time_constant: Distribution | None
    first_zero_step: int | None = None
    zero_reason: str | None = None
    autograd: AutogradCheck | None = None

    @property
    def rate(self) -> float | None:
        """The mean rate over draws, in nats per step."""
        return self.rates.mean

    @property
    def factor_per_step(self) -> float | None:
        """e^rate."""
        return None if self.rate is None else math.exp(self.rate)

    @property
    def half_life(self) -> float | None:
        """-ln 2 / rate in steps; None where the norm does not fall."""
        if self.rate is None or self.rate > -1e-12:
            return None
        return -math.log(2.0) / self.rate

    @property
    def keep_gate(self) -> GateFlow | None:
        """The gate that keeps; None for a plain RNN."""
        return next((gate for gate in self.gates if gate.role == "keep"), None)

    def horizon_reason(self, threshold: float) -> str | None:
        """Return why there is no median horizon: the run ends above the threshold. Else None."""
        if self.horizons.median is not None:
            return None
        last, left = int(self.steps[-1]), float(self.log10_norm[-1])
        return f"not reached within {last} steps: 10^{left:.3g} is left, the limit is {threshold:g}"

    def to_json(self, threshold: float) -> Json:
        """Return the flow as one entry of `results.inits`."""
        arrays = {key: finite_list(getattr(self, key)) for key in _ARRAYS}
        seeds = {key: list(getattr(self, key).values) for key in _PER_SEED}
        constant = self.time_constant
        return {
            **{key: getattr(self, key) for key in _PLAIN},
            "what": list(self.what),
            "steps": [int(step) for step in self.steps],
            **arrays,
            **seeds,
            "rate": finite_or_none(self.rate),
            "factor_per_step": finite_or_none(self.factor_per_step),
            "half_life": finite_or_none(self.half_life),
            "horizon": self.horizons.median,
            "horizon_reason": self.horizon_reason(threshold),
            "spectral_radius": finite_or_none(self.spectral_radii.mean),
            "gates": [gate.to_json() for gate in self.gates],
            "time_constant": None if constant is None else constant.to_json(),
            "autograd": None if self.autograd is None else self.autograd.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.inits` back."""
        constant = document["time_constant"]
        # null is zero where the record tells of a zero, and "not a number" elsewhere
        missing = math.nan if document["first_zero_step"] is None else -math.inf
        arrays = {key: array_from_list(document[key], missing=missing) for key in _ARRAYS}
        given: dict[str, Any] = {key: document[key] for key in _PLAIN}
        given |= arrays
        given |= {key: PerSeed(tuple(document[key])) for key in _PER_SEED}
        return cls(
            **given,
            what=tuple(document["what"]),
            steps=np.array(document["steps"], dtype=np.int64),
            gates=tuple(GateFlow.from_json(entry) for entry in document["gates"]),
            time_constant=None if constant is None else Distribution.from_json(constant),
            autograd=AutogradCheck.from_json(document["autograd"]),
        )


_SPREADS = ("bias", "at_rest", "value")
_PLAIN = ("cell", "init", "state", "norm", "first_zero_step", "zero_reason")
_ARRAYS = ("log10_norm", "log10_low", "log10_high", "singular_values")
_PER_SEED = ("rates", "horizons", "spectral_radii")


@dataclass(frozen=True)
class InitsResult(Result):
    """What one `gradflow inits` measured, cell by cell and initialization by initialization."""

    command: ClassVar[str] = "inits"

    inits: tuple[InitFlow, ...]
    threshold: float = 1e-3
    notes: tuple[str, ...] = ()

    def results_json(self) -> Json:
        """Return `{"threshold", "inits", "notes"}`."""
        return {
            "threshold": self.threshold,
            "inits": [flow.to_json(self.threshold) for flow in self.inits],
            "notes": list(self.notes),
        }

    def of_cell(self, cell: str) -> Sequence[InitFlow]:
        """Return the flows of one cell, in order."""
        return [flow for flow in self.inits if flow.cell == cell]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/inits/1` document back."""
        results = document["results"]
        return cls(
            inits=tuple(InitFlow.from_json(entry) for entry in results["inits"]),
            threshold=float(results["threshold"]),
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )
