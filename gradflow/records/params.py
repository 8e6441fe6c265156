"""The record of `gradflow params`: how many numbers a network has, keeps and multiplies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result


@dataclass(frozen=True)
class Architecture:
    """A recurrent network: its cell, its widths, and how often it is stacked.

    `projection` is the width to which an LSTM projects h (torch's proj_size), 0 for none;
    `output_size` the width of a linear head on the last layer's output, 0 for no head.
    """

    cell: str
    input_size: int
    hidden_size: int
    layers: int = 1
    bidirectional: bool = False
    projection: int = 0
    bias: bool = True
    output_size: int = 0

    @property
    def directions(self) -> int:
        """2 where the sequence is read both ways, else 1."""
        return 2 if self.bidirectional else 1

    @property
    def shown_size(self) -> int:
        """Width of the h that one direction shows: the projection's, or the hidden width."""
        return self.projection or self.hidden_size

    @property
    def feature_size(self) -> int:
        """Width of what one layer shows to the next and to the head: both directions' h."""
        return self.directions * self.shown_size


@dataclass(frozen=True)
class LayerCount:
    """Parameters of one layer in one direction; `bias` is one vector's length, 0 without bias."""

    layer: int
    direction: str
    input_size: int
    input_weights: int
    recurrent_weights: int
    projection_weights: int
    bias: int

    @property
    def weights(self) -> int:
        """Entries of all matrices."""
        return self.input_weights + self.recurrent_weights + self.projection_weights


@dataclass(frozen=True)
class StepCost:
    """Work and memory for one sample and one time step, all layers and directions.

    `multiply_adds` is that of the recurrent network's matrix products (one per weight),
    `head_multiply_adds` the head's where it reads the step. `elementwise_products` and
    `nonlinearities` count the gates' products and the sigmoids and tanhs. `kept_values` is how
    many numbers backpropagation through time keeps of the step, the network's input included;
    `state_values` how many are carried to the next step.
    """

    multiply_adds: int
    head_multiply_adds: int
    elementwise_products: int
    nonlinearities: int
    kept_values: int
    state_values: int


@dataclass(frozen=True)
class Workload:
    """The batch and the run over which memory is summed; `value_bytes` is 4 for float32."""

    batch: int = 1
    steps: int = 1
    value_bytes: int = 4


@dataclass(frozen=True)
class ParameterCount:
    """All parameters of one architecture.

    `one_bias` and `two_biases` are the totals by formula under either convention, None for a
    cell without a formula (one that a plug-in brings). `built` is the number that the built
    module has, always with the biases that the module itself has. `activation_bytes` and
    `parameter_bytes` are memory over the workload.
    """

    architecture: Architecture
    layers: tuple[LayerCount, ...]
    head_weights: int
    head_bias: int
    one_bias: int | None
    two_biases: int | None
    built: int
    parameter_bytes: int
    cost: StepCost | None = None
    activation_bytes: int | None = None

    def to_json(self) -> Json:
        """Return the count as one entry of `results.counts`."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.counts` back."""
        cost = document["cost"]
        return cls(
            **{
                **document,
                "architecture": Architecture(**document["architecture"]),
                "layers": tuple(LayerCount(**layer) for layer in document["layers"]),
                "cost": None if cost is None else StepCost(**cost),
            }
        )


@dataclass(frozen=True)
class WidthMatch:
    """The hidden width at which a cell's total is nearest to a target.

    `biases` is the convention counted under: 2 or 1 vectors per gate, 0 without bias, and None for
    a plug-in's cell, which has what it has. `narrower` and `wider` are the totals one unit below
    (None where no width is below) and above.
    """

    architecture: Architecture
    target: int
    parameters: int
    biases: int | None
    narrower: int | None
    wider: int

    @property
    def difference(self) -> int:
        """parameters - target."""
        return self.parameters - self.target

    @property
    def relative_difference(self) -> float:
        """(parameters - target) / target."""
        return self.difference / self.target

    def to_json(self) -> Json:
        """Return the match as one entry of `results.matches`."""
        return {
            **asdict(self),
            "difference": self.difference,
            "relative_difference": self.relative_difference,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.matches` back."""
        derived = ("difference", "relative_difference")
        plain = {key: value for key, value in document.items() if key not in derived}
        return cls(**{**plain, "architecture": Architecture(**document["architecture"])})


@dataclass(frozen=True)
class ParamsResult(Result):
    """The counts of one `gradflow params`, and the matched widths where they were asked for."""

    command: ClassVar[str] = "params"

    counts: tuple[ParameterCount, ...]
    workload: Workload
    matches: tuple[WidthMatch, ...] = ()
    notes: tuple[str, ...] = ()

    def results_json(self) -> Json:
        """Return `{"counts", "workload", "matches", "notes"}`."""
        return {
            "counts": [count.to_json() for count in self.counts],
            "workload": asdict(self.workload),
            "matches": [match.to_json() for match in self.matches],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/params/1` document back."""
        results = document["results"]
        return cls(
            counts=tuple(ParameterCount.from_json(entry) for entry in results["counts"]),
            workload=Workload(**results["workload"]),
            matches=tuple(WidthMatch.from_json(entry) for entry in results["matches"]),
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )
