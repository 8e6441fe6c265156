"""The record of `gradflow depth`: log norms of d(end)/d(state) by layer, direction and lag."""

from __future__ import annotations

import math
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
from gradflow.records.decay import AutogradCheck

DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class DepthRow:
    """One layer and direction: the norm by lag from each sample's own last step.

    `layer` counts from 1; 0 is the input, which has no direction ("input"). `log10_norm` (lags,) is
    the mean over the samples of log10 of the norm where it is not zero, -inf where it is zero for
    all; `lowest` and `highest` (lags,) are the range over the samples. `zeros` (lags,) counts the
    samples whose norm is zero, `exact_zeros` those of them to which no path leads. `rate` is the
    slope of ln of the norm over the farther half of the lags, in nats per step; None with two
    directions (there is no one way away from the end) and where there is no slope.
    """

    layer: int
    direction: str
    log10_norm: FloatArray
    lowest: FloatArray
    highest: FloatArray
    zeros: IntArray
    exact_zeros: IntArray
    rate: float | None = None

    def to_json(self) -> Json:
        """Return the row as strict JSON; a norm of zero is null, `zeros` beside it says so."""
        return {
            "layer": self.layer,
            "direction": self.direction,
            "log10_norm": finite_list(self.log10_norm),
            "lowest": finite_list(self.lowest),
            "highest": finite_list(self.highest),
            "zeros": self.zeros.tolist(),
            "exact_zeros": self.exact_zeros.tolist(),
            "rate": finite_or_none(self.rate),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a row back."""

        def logs(key: str) -> FloatArray:
            return array_from_list(document[key], missing=-math.inf)

        def counts(key: str) -> IntArray:
            return np.array(document[key], dtype=np.int64)

        return cls(
            layer=document["layer"],
            direction=document["direction"],
            log10_norm=logs("log10_norm"),
            lowest=logs("lowest"),
            highest=logs("highest"),
            zeros=counts("zeros"),
            exact_zeros=counts("exact_zeros"),
            rate=document["rate"],
        )


@dataclass(frozen=True)
class DepthMap:
    """One stack: a row per layer and direction, the input first.

    `masks` is "none", "step" (fresh ones) or "sequence" (one for all steps). `lags` (lags,) count
    steps from each sample's own last step, `count` (lags,) says how many samples have such a step.
    `block` is "joint" or the part that is read and varied; `method` how steps were differentiated.
    """

    cell: str
    residual: bool
    masks: str
    layers: int
    directions: int
    read: str
    block: str
    norm: str
    lags: IntArray
    count: IntArray
    rows: tuple[DepthRow, ...]
    method: str
    autograd: AutogradCheck | None = None

    def row(self, layer: int, direction: str = "forward") -> DepthRow:
        """Return the row of a layer (from 1; 0 is the input)."""
        wanted = "input" if layer == 0 else direction
        return next(r for r in self.rows if (r.layer, r.direction) == (layer, wanted))

    def to_json(self) -> Json:
        """Return the map as one entry of the contract's `results.maps`."""
        plain = ("cell", "residual", "masks", "layers", "directions", "read", "block", "norm")
        return {
            **{key: getattr(self, key) for key in plain},
            "lags": self.lags.tolist(),
            "count": self.count.tolist(),
            "rows": [row.to_json() for row in self.rows],
            "method": self.method,
            "autograd": None if self.autograd is None else self.autograd.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a map back."""
        read = {
            "lags": np.array(document["lags"], dtype=np.int64),
            "count": np.array(document["count"], dtype=np.int64),
            "rows": tuple(DepthRow.from_json(row) for row in document["rows"]),
            "autograd": AutogradCheck.from_json(document["autograd"]),
        }
        return cls(**{**document, **read})


@dataclass(frozen=True)
class DepthResult(Result):
    """The maps of one `gradflow depth`; `lengths` are the samples' own, `notes` sentences."""

    command: ClassVar[str] = "depth"

    maps: tuple[DepthMap, ...]
    lengths: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def results_json(self) -> Json:
        """Return `{"maps": [...], "lengths": [...], "notes": [...]}`."""
        return {
            "maps": [entry.to_json() for entry in self.maps],
            "lengths": list(self.lengths),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/depth/1` document back."""
        results = document["results"]
        return cls(
            maps=tuple(DepthMap.from_json(entry) for entry in results["maps"]),
            lengths=tuple(results["lengths"]),
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )
