"""The record of `gradflow inspect`: gradient flow of a user's own model, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, Self

from gradflow.records.base import Check, Json, Result, finite_or_none

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
Curve = tuple[float | None, ...]


@dataclass(frozen=True)
class Finding:
    """One finding: its code (see `FINDING_KINDS`), how grave, where, and the number that shows it.

    `layer` is the module's name with its level ("encoder.rnn, layer 0"), None for the whole model.
    """

    code: str
    severity: Severity
    layer: str | None
    direction: str | None
    gate: str | None
    value: float | None
    message: str
    advice: str

    def to_json(self) -> Json:
        """Return the finding as one entry of `results.findings`."""
        return {**asdict(self), "value": finite_or_none(self.value)}


@dataclass(frozen=True)
class InspectedGate:
    """A gate over the run: values, saturation (within 0.01 of an end), time constants in steps."""

    name: str
    role: str
    effective_bias_mean: float | None
    value_mean: float | None
    value_min: float | None
    value_max: float | None
    saturated_fraction: float | None
    histogram: tuple[int, ...] = ()
    time_constant_median: float | None = None
    time_constant_max: float | None = None


@dataclass(frozen=True)
class InspectedLayer:
    """One layer and direction: its curve by lag, and dL/dh, dL/dc by step where there is a loss.

    `log10_norm` is the mean over windows of log10 ||ds_t/ds_{t-k}||, the joint state, spectral;
    `low` and `high` are the least and the greatest of the windows, `windows` their number by lag.
    `log10_norm_error` is the standard error of that mean, None where one window alone tells;
    `horizon_range` are the horizons of `low` and `high`.
    `kept_log10_norm` is the block of the kept part (c of an LSTM), beside which the direct path
    stands. A number that is not finite is None: a norm of zero, a horizon that is not reached.
    `log10_dL_dh` and `log10_dL_dc` are by t from 0, over the whole batch; `own_precision` the same
    as `log10_dL_dh` in the model's own dtype. `before` and `after` name the nearest parts with
    weights around the layer in its model (an embedding, a head).
    """

    name: str
    kind: str
    layer: int
    direction: str
    input_size: int
    hidden_size: int
    projection: int | None
    parameters: int
    dtype: str
    gates: tuple[InspectedGate, ...]
    lag: tuple[int, ...]
    log10_norm: Curve
    low: Curve
    high: Curve
    windows: tuple[int, ...]
    direct_log10_norm: Curve | None
    kept_log10_norm: Curve | None
    half_life: float | None
    horizon: float | None
    lyapunov: float | None
    sampled: bool
    sampling: str
    method: str
    log10_norm_error: Curve = ()
    horizon_range: tuple[float | None, ...] = (None, None)
    dead_units: tuple[int, ...] = ()
    never_forgetting_units: tuple[int, ...] = ()
    fused_difference: float | None = None
    log10_dL_dh: Curve | None = None  # noqa: N815 - as the derivative is written
    log10_dL_dc: Curve | None = None  # noqa: N815
    log10_dL_dh_own_precision: Curve | None = None  # noqa: N815
    notes: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None

    @property
    def title(self) -> str:
        """Name the place: "encoder.rnn, layer 1"."""
        return f"{self.name}, layer {self.layer}"

    def to_json(self) -> Json:
        """Return the layer as one entry of `results.layers`; gates by name."""
        document = asdict(self)
        gates = document.pop("gates")
        return {**document, "gates": {gate.pop("name"): gate for gate in gates}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.layers` back."""
        gates = tuple(
            InspectedGate(name=name, **{**gate, "histogram": tuple(gate["histogram"])})
            for name, gate in document["gates"].items()
        )
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in document.items()
        }
        fields["gates"] = gates
        return cls(**fields)


@dataclass(frozen=True)
class InspectResult(Result):
    """What `gradflow inspect` found.

    `verdict` is a few lines that a person can act on; `input` says what the model was run on.
    """

    command: ClassVar[str] = "inspect"

    layers: tuple[InspectedLayer, ...]
    findings: tuple[Finding, ...] = ()
    verdict: tuple[str, ...] = ()
    input: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """True where there is neither a warning nor an error."""
        return all(finding.severity == "info" for finding in self.findings)

    def worst(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings at or above a severity."""
        least = SEVERITIES.index(severity)
        return tuple(f for f in self.findings if SEVERITIES.index(f.severity) >= least)

    def results_json(self) -> Json:
        """Return the contract's `results`."""
        return {
            "verdict": list(self.verdict),
            "input": dict(self.input),
            "layers": [layer.to_json() for layer in self.layers],
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/inspect/1` document back."""
        results = document["results"]
        return cls(
            layers=tuple(InspectedLayer.from_json(entry) for entry in results["layers"]),
            findings=tuple(Finding(**entry) for entry in results["findings"]),
            verdict=tuple(results["verdict"]),
            input=dict(results["input"]),
            notes=tuple(results["notes"]),
            config=dict(document["config"]),
            environment=dict(document["environment"]),
            checks=tuple(Check(**entry) for entry in document["checks"]),
        )
