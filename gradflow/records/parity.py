"""The record of `gradflow parity`: what was compared, how far apart it is, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result, finite_or_none


@dataclass(frozen=True)
class ComparedSide:
    """One side: its name as asked for, what it is, and how its gradient was found.

    `gradient` is "autograd", "by hand", "finite differences" or "none".
    """

    name: str
    what: str
    gradient: str


@dataclass(frozen=True)
class MappedBlock:
    """One gate's weights on one thing, and where they stand on either side.

    `reads` is "x", "h" or the bias; `a` and `b` are places such as "W_f[:, 0:3]", with " + "
    between biases that add up, and empty where the side has none.
    """

    gate: str
    reads: str
    a: str
    b: str


@dataclass(frozen=True)
class Comparison:
    """One quantity on both sides.

    `error` is max |a - b|, None where it is no number (`reason` says why). It may be `tolerance`
    times `scale`, which is max(1, max |a|). Where the quantity has steps, `errors` has one number
    each and `first_step` is the first (from 1) beyond that. `gate` is the first gate beyond it,
    where the quantity has gates.
    """

    group: str
    quantity: str
    error: float | None
    tolerance: float
    scale: float = 1.0
    errors: tuple[float | None, ...] = ()
    first_step: int | None = None
    gate: str | None = None
    reason: str | None = None

    @property
    def passed(self) -> bool:
        """True where the two sides agree."""
        return self.error is not None and self.error <= self.tolerance * self.scale

    def to_json(self) -> Json:
        """Return the comparison as one entry of `results.comparisons`."""
        return {
            **asdict(self),
            "error": finite_or_none(self.error),
            "errors": [finite_or_none(error) for error in self.errors],
            "passed": self.passed,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.comparisons` back."""
        plain = {key: value for key, value in document.items() if key != "passed"}
        return cls(**{**plain, "errors": tuple(document["errors"])})


@dataclass(frozen=True)
class FirstDifference:
    """Where the two sides part first: step (from 1), tensor, gate, row and unit (both from 0).

    `a` and `b` are the values there, None where it is no number. `step` is None where only a sum
    over all steps differs.
    """

    step: int | None
    quantity: str
    gate: str | None
    row: int | None
    unit: int | None
    a: float | None
    b: float | None

    def to_json(self) -> Json:
        """Return the place as `results.first_difference`."""
        return {**asdict(self), "a": finite_or_none(self.a), "b": finite_or_none(self.b)}


@dataclass(frozen=True)
class TriedVariant:
    """A known variant of the cell: what it does otherwise, and how far it is from the side.

    `name` is short ("gate order i, o, f, g"), `sentence` says what that is. `error` is the largest
    over all steps, None where it is no number.
    """

    name: str
    sentence: str
    error: float | None

    def to_json(self) -> Json:
        """Return the variant as an entry of `results.variants` or `results.nearest`."""
        return {**asdict(self), "error": finite_or_none(self.error)}


@dataclass(frozen=True)
class ParityResult(Result):
    """One answer: do A and B compute the same, forward and backward?

    `verdict` says it in a sentence or two, `notes` say what else one should know. `variants` are
    the known variants that explain a difference (none where parity holds), `subject` ("a" or "b")
    the side that they describe; `nearest` the closest single ones, whether or not they fit.
    `undecided` names variants that this run cannot tell from A. `unreached` names weights that get
    no gradient, "b: U_o".
    """

    command: ClassVar[str] = "parity"

    a: ComparedSide
    b: ComparedSide
    kind: str | None
    sizes: Mapping[str, int]
    comparisons: tuple[Comparison, ...]
    verdict: str
    mapping: tuple[MappedBlock, ...] = ()
    first_difference: FirstDifference | None = None
    subject: str = "b"
    variants: tuple[TriedVariant, ...] = ()
    nearest: tuple[TriedVariant, ...] = ()
    undecided: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def largest_error(self) -> float | None:
        """The largest error of all quantities, None where one is no number."""
        errors = [comparison.error for comparison in self.comparisons]
        known = [error for error in errors if error is not None]
        return max(known) if known and len(known) == len(errors) else None

    def results_json(self) -> Json:
        """Return the contract's `results` object."""
        return {
            "a": asdict(self.a),
            "b": asdict(self.b),
            "kind": self.kind,
            "sizes": dict(self.sizes),
            "verdict": self.verdict,
            "largest_error": finite_or_none(self.largest_error),
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "mapping": [asdict(block) for block in self.mapping],
            "first_difference": self.first_difference and self.first_difference.to_json(),
            "subject": self.subject,
            "variants": [variant.to_json() for variant in self.variants],
            "nearest": [variant.to_json() for variant in self.nearest],
            "undecided": list(self.undecided),
            "unreached": list(self.unreached),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/parity/1` document back."""
        results = document["results"]
        first = results["first_difference"]
        return cls(
            a=ComparedSide(**results["a"]),
            b=ComparedSide(**results["b"]),
            kind=results["kind"],
            sizes=dict(results["sizes"]),
            verdict=results["verdict"],
            comparisons=tuple(map(Comparison.from_json, results["comparisons"])),
            mapping=tuple(MappedBlock(**block) for block in results["mapping"]),
            first_difference=None if first is None else FirstDifference(**first),
            subject=results["subject"],
            variants=tuple(TriedVariant(**entry) for entry in results["variants"]),
            nearest=tuple(TriedVariant(**entry) for entry in results["nearest"]),
            undecided=tuple(results["undecided"]),
            unreached=tuple(results["unreached"]),
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )
