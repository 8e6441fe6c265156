"""The record of `gradflow step`: steps worked by hand, equation by equation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result


@dataclass(frozen=True)
class Equation:
    """`name = symbols = numbers = value`, such as c_1 = f_1 * c_0 + ... = 0.8 * 2 + ... = 1.5."""

    name: str
    symbols: str
    numbers: str
    value: float


@dataclass(frozen=True)
class WorkedStep:
    """One step of one unit.

    `gates` holds the values by name, the candidate apart. `before` and `after` are the state's
    parts by name. `direct` is what the step multiplies the old kept part by with the gates held.
    `left_out` says how fast the new kept part moves with each pre-activation into which h_{t-1}
    also flows: times the recurrent weight, that is the derivative which `direct` leaves out.
    """

    step: int
    gates: Mapping[str, float]
    candidate: float
    before: Mapping[str, float]
    after: Mapping[str, float]
    equations: tuple[Equation, ...]
    direct: float
    left_out: tuple[Equation, ...]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.steps` back."""
        equations = {
            key: tuple(Equation(**entry) for entry in document[key])
            for key in ("equations", "left_out")
        }
        return cls(**{**document, **equations})


@dataclass(frozen=True)
class StepResult(Result):
    """All steps of one `gradflow step`, and the direct coefficient over them.

    `direct` is d(kept part after the last step) / d(kept part before the first), gates held: the
    product of the keep gates. `convention` is "keep" where z keeps, "write" where 1 - z keeps, None
    for an LSTM. `explanations` are sentences, shown as they stand.
    """

    command: ClassVar[str] = "step"

    cell: str
    steps: tuple[WorkedStep, ...]
    direct: Equation
    convention: str | None = None
    explanations: tuple[str, ...] = ()

    def results_json(self) -> Json:
        """Return `{"cell", "convention", "steps", "direct", "explanations"}`."""
        return {
            "cell": self.cell,
            "convention": self.convention,
            "steps": [asdict(step) for step in self.steps],
            "direct": asdict(self.direct),
            "explanations": list(self.explanations),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/step/1` document back."""
        results = document["results"]
        return cls(
            cell=results["cell"],
            steps=tuple(WorkedStep.from_json(entry) for entry in results["steps"]),
            direct=Equation(**results["direct"]),
            convention=results["convention"],
            explanations=tuple(results["explanations"]),
            **cls.frame_from_json(document),
        )
