"""The record of `gradflow saturate`: what stays finite when gates, inputs and states are huge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self

from gradflow.records.base import Json, Result, finite_or_none

Verdict = Literal["ok", "overflow", "fault", "not applicable"]


@dataclass(frozen=True)
class FirstNonfinite:
    """The first tensor that is not finite, in the order of the backward pass.

    `during` is "backward", or "forward" where the gradients are finite and a state is not.
    `tensor` says what it is: "gradient of the pre-activation", "gradient of c", "gradient of
    weight_hh", "h". `gate` is its gate where the cell tells its gates, `parameter` and `row` the
    row of a weight or bias that makes it; `unit` counts within the gate (else within the tensor)
    from 0, `step` from 1 (0 is the state before the first step). `operation` first made something
    not finite of finite numbers. `value` is "nan", "inf" or "-inf"; `true_log10` is log10 of the
    true value's size (None for zero or where it is not known), `fits` whether the dtype holds it.
    """

    during: str
    tensor: str
    gate: str | None
    unit: int | None
    step: int | None
    operation: str | None
    parameter: str | None
    row: int | None
    value: str
    true_log10: float | None
    fits: bool | None

    def to_json(self) -> Json:
        """Return the fields as plain JSON."""
        return {**asdict(self), "true_log10": finite_or_none(self.true_log10)}


@dataclass(frozen=True)
class SaturateRow:
    """One trial: a cell in a dtype, a magnitude, and the place that it was put into.

    `implementation` is gradflow, torch or user. `magnitude` is what was asked for ("1e4", "max",
    "beyond" for the largest number itself; None for a user's cell as it is given), `value` the
    signed number put in, None where there is none. `place` is a gate ("forget gate", "candidate";
    then `gate` is its own name), the rows of a bias that no gate claims, "input", "state" or "as
    given"; `path` how it gets to the gates: bias, identity (the weights of that path are the
    identity) or weights (as they are).

    The flags are None where the trial is not applicable; `gates_in_range` and
    `zero_slope_fraction` also where the cell does not show its gates. `judged` is False where
    overflow is the nature of the trial: it is reported, and never fails a check.
    """

    cell: str
    implementation: str
    dtype: str
    magnitude: str | None
    value: float | None
    sign: str | None
    place: str
    gate: str | None
    path: str
    verdict: Verdict
    judged: bool = True
    outputs_finite: bool | None = None
    state_gradients_finite: bool | None = None
    parameter_gradients_finite: bool | None = None
    gates_in_range: bool | None = None
    zero_slope_fraction: float | None = None
    first_nonfinite: FirstNonfinite | None = None
    reason: str | None = None

    @property
    def subject(self) -> tuple[str, str]:
        """The cell and its implementation."""
        return (self.cell, self.implementation)

    def to_json(self) -> Json:
        """Return the row as one entry of the contract's `results.rows`."""
        first = self.first_nonfinite
        return {
            **asdict(self),
            "value": finite_or_none(self.value),
            "zero_slope_fraction": finite_or_none(self.zero_slope_fraction),
            "first_nonfinite": None if first is None else first.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read one entry of `results.rows` back."""
        first = document["first_nonfinite"]
        read = None if first is None else FirstNonfinite(**first)
        return cls(**{**document, "first_nonfinite": read})


@dataclass(frozen=True)
class SaturateResult(Result):
    """The trials of one `gradflow saturate`; `notes` are sentences about them."""

    command: ClassVar[str] = "saturate"

    rows: tuple[SaturateRow, ...]
    notes: tuple[str, ...] = ()

    def results_json(self) -> Json:
        """Return `{"rows": [...], "notes": [...]}`."""
        return {"rows": [row.to_json() for row in self.rows], "notes": list(self.notes)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/saturate/1` document back."""
        return cls(
            rows=tuple(SaturateRow.from_json(entry) for entry in document["results"]["rows"]),
            notes=tuple(document["results"]["notes"]),
            **cls.frame_from_json(document),
        )
