"""The record of `gradflow.watch`: gradient flow through time, sampled while a model trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result, finite_or_none
from gradflow.records.inspect import Curve, Finding

Place = tuple[str, int, str, int]
# Findings of a module as a whole, told at one of its layers: a memory, a cut of its state.
OF_MODULES = frozenset({"GF101", "GF103"})


@dataclass(frozen=True)
class BrokenTensor:
    """The first tensor that is NaN or inf: states in running order, then gradients on the way back.

    `tensor` reads "h", "c", "dL/dh", "dL/dc" or a parameter's name; `step` is the step t from 0.
    """

    tensor: str
    step: int


@dataclass(frozen=True)
class FlowLayer:
    """One call of one layer and direction in one update.

    Distances count from the end of what the direction reads: 0 is each sample's own last step (of
    a reversed direction, the first step of the data). `log10_dL_dh` and `log10_dL_dc` hold, by
    distance, log10 of the norm over batch and units; None is an exact zero, or what is not finite
    (`first_non_finite` then names it). `log10_dL_dc` is None where there is no cell state.

    `horizon` is the distance at which the gradient has fallen to 1e-3 of what it is at the end, and
    `half_life` the distance over which it halves, of h or of c, whichever is felt longer (an LSTM
    keeps in c what its h shows no more); None with its reason beside it ("not reached within 20
    steps"). `arrives` holds the least and the greatest distance
    at which a gradient reaches the module from outside, by its output or its final state; None
    where none does. `log10_arriving` is log10 of its norm by distance; None where it cannot be told
    from what the layer itself hands back. `cut_at` is the least distance from which on gradients
    are exactly zero though the state carries over (detach, truncated backpropagation).

    `call` counts the calls of one module within an update from 0, `calls` is their number.
    """

    name: str
    kind: str
    layer: int
    direction: str
    hidden_size: int
    steps: int
    distance: tuple[int, ...]
    log10_dL_dh: Curve  # noqa: N815 - as the derivative is written
    log10_dL_dc: Curve | None = None  # noqa: N815
    horizon: float | None = None
    horizon_reason: str | None = None
    half_life: float | None = None
    half_life_reason: str | None = None
    gate_means: Mapping[str, float | None] = field(default_factory=dict)
    saturated_fraction: Mapping[str, float | None] = field(default_factory=dict)
    effective_forget_bias: float | None = None
    first_non_finite: BrokenTensor | None = None
    cut_at: int | None = None
    arrives: tuple[int, int] | None = None
    log10_arriving: Curve | None = None
    call: int = 0
    calls: int = 1
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """What tells the layer from others: name, layer, direction and call."""
        return (self.name, self.layer, self.direction, self.call)

    @property
    def title(self) -> str:
        """Name the place without its call: "encoder.rnn, layer 1"."""
        return f"{self.name}, layer {self.layer}" if self.name else f"layer {self.layer}"

    @property
    def label(self) -> str:
        """Name the place: from the second call of a module on with its number."""
        return f"{self.title}, call {self.call + 1}" if self.call else self.title

    def to_json(self) -> Json:
        """Return the layer as strict JSON."""
        document = asdict(self)
        for key in ("log10_dL_dh", "log10_dL_dc", "log10_arriving"):
            if document[key] is not None:
                document[key] = [finite_or_none(value) for value in document[key]]
        for key in ("gate_means", "saturated_fraction"):
            document[key] = {name: finite_or_none(value) for name, value in document[key].items()}
        for key in ("horizon", "half_life", "effective_forget_bias"):
            document[key] = finite_or_none(document[key])
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in document.items()
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_json` gives back."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in document.items()
        }
        found = fields.get("first_non_finite")
        return cls(
            **{**fields, "first_non_finite": None if found is None else BrokenTensor(**found)}
        )


@dataclass(frozen=True)
class FlowSample:
    """One sampled update: every recurrent layer's profile, and the usual gradient norm beside it.

    `update` counts optimizer updates from 0. `log10_parameter_gradient_norm` is over all
    parameters, unscaled and before clipping; None where it is zero, not finite or unknown.
    `loss_scale` is a GradScaler's, None without one; all numbers are unscaled. `seconds` is what
    the sample cost.
    """

    update: int
    layers: tuple[FlowLayer, ...]
    log10_parameter_gradient_norm: float | None = None
    loss_scale: float | None = None
    seconds: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Return the sample as strict JSON."""
        return {
            "update": self.update,
            "log10_parameter_gradient_norm": finite_or_none(self.log10_parameter_gradient_norm),
            "loss_scale": finite_or_none(self.loss_scale),
            "seconds": finite_or_none(self.seconds),
            "notes": list(self.notes),
            "layers": [layer.to_json() for layer in self.layers],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_json` gives back."""
        layers = tuple(FlowLayer.from_json(entry) for entry in document["layers"])
        return cls(**{**document, "notes": tuple(document["notes"]), "layers": layers})


@dataclass(frozen=True)
class FlowFinding(Finding):
    """A finding of a running training, with the update at which it was first seen."""

    update: int = 0


@dataclass(frozen=True)
class WatchRun(Result):
    """A watched training: its samples in order, and what was found when.

    `config` holds the settings of the watch, `environment` the provenance. Where a log was read and
    asked about, they are those of the question, and `training` holds those of the watch.
    """

    command: ClassVar[str] = "watch"

    samples: tuple[FlowSample, ...] = ()
    findings: tuple[FlowFinding, ...] = ()
    notes: tuple[str, ...] = ()
    training: Json = field(default_factory=dict)

    @property
    def places(self) -> tuple[Place, ...]:
        """Every layer that occurs, in order of appearance."""
        found = (layer.place for sample in self.samples for layer in sample.layers)
        return tuple(dict.fromkeys(found))

    def of(self, place: Place) -> tuple[tuple[int, FlowLayer], ...]:
        """Return the updates and profiles of one place."""
        return tuple(
            (sample.update, layer)
            for sample in self.samples
            for layer in sample.layers
            if layer.place == place
        )

    def results_json(self) -> Json:
        """Return the contract's `results`."""
        return {
            "samples": [sample.to_json() for sample in self.samples],
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self.notes),
            "training": self.training,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/watch/1` document back."""
        results = document["results"]
        return cls(
            samples=tuple(FlowSample.from_json(entry) for entry in results["samples"]),
            findings=tuple(FlowFinding(**entry) for entry in results["findings"]),
            notes=tuple(results["notes"]),
            training=dict(results["training"]),
            **cls.frame_from_json(document),
        )
