"""What was measured, as frozen records: NumPy only, so that they load fast and draw anywhere.

A record never computes and never draws. `to_json` gives strict JSON (a number that is not finite
becomes `null`, and a field beside it says why); `from_json` reads the same document back.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gradflow.documents import Json as Json  # every record speaks of it

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def finite_or_none(value: float | None) -> float | None:
    """Return `value`, or None where strict JSON has no number for it (nan, inf, None)."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def finite_list(values: FloatArray) -> list[float | None]:
    """Return the array as a list in which every number that is not finite is None."""
    return [finite_or_none(float(value)) for value in values]


def array_from_list(values: list[float | None], *, missing: float) -> FloatArray:
    """Read a list of `finite_list` back; each None becomes `missing` (-inf for log norms)."""
    return np.array([missing if value is None else value for value in values], dtype=np.float64)


@dataclass(frozen=True)
class Check:
    """One statement that a run tested: what, whether it held, and the number that shows it."""

    name: str
    passed: bool
    detail: str

    def to_json(self) -> Json:
        """Return the check as the contract's `{"name", "passed", "detail"}`."""
        return {"name": self.name, "passed": self.passed, "detail": self.detail}


@dataclass(frozen=True)
class Result:
    """What every command returns: measurements, checks, settings and provenance.

    `config` holds every setting that was in force, `environment` the provenance (both plain JSON).
    """

    command: ClassVar[str] = ""
    # Set by `gradflow.present.notebook`, which is loaded (by name) when a notebook first shows a
    # result: so records never import anything that draws.
    html_renderer: ClassVar[Callable[[Any], str] | None] = None

    config: Json = field(default_factory=dict, kw_only=True)
    environment: Json = field(default_factory=dict, kw_only=True)
    checks: tuple[Check, ...] = field(default=(), kw_only=True)

    @property
    def passed(self) -> bool:
        """True where every check held."""
        return all(check.passed for check in self.checks)

    def results_json(self) -> Json:
        """Return the contract's `results` object; each kind of result fills its own."""
        return {}

    def to_json(self) -> Json:
        """Return the whole strict-JSON document that a run folder stores."""
        return {
            "schema": f"gradflow/{self.command}/1",
            "environment": self.environment,
            "config": self.config,
            "results": self.results_json(),
            "checks": [check.to_json() for check in self.checks],
        }

    @staticmethod
    def frame_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
        """Return what every stored document has beside its `results`, as arguments of a result."""
        return {
            "config": dict(document["config"]),
            "environment": dict(document["environment"]),
            "checks": tuple(Check(**entry) for entry in document["checks"]),
        }

    def _repr_html_(self) -> str | None:
        if type(self).html_renderer is None:
            importlib.import_module("gradflow.present.notebook")
        renderer = type(self).html_renderer
        return None if renderer is None else renderer(self)
