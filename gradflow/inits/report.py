"""What an initialization set, read back from the module after it was set."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from gradflow.inits.places import Place


@dataclass(frozen=True)
class Range:
    """The least, the mean and the greatest of a gate's units."""

    low: float
    mean: float
    high: float

    @classmethod
    def of(cls, values: torch.Tensor) -> Range:
        """Return the range of a tensor."""
        return cls(values.min().item(), values.mean().item(), values.max().item())

    def __str__(self) -> str:
        """Return one number where all units have it, else both ends and the mean."""
        if f"{self.low:.6g}" == f"{self.high:.6g}":
            return f"{self.mean:.6g}"
        return f"{self.low:.4g}..{self.high:.4g}, mean {self.mean:.4g}"


@dataclass(frozen=True)
class GateReport:
    """One gate of one layer and direction, as it is now.

    `bias` is the effective bias (b_ih + b_hh) over units, None with bias=False; `value` the gate
    at rest, sigmoid of it (None for a candidate). `recurrent_mean_square` is the mean squared
    singular value of the gate's recurrent block: 1 where that is orthogonal.
    """

    place: str
    gate: str
    role: str
    bias: Range | None
    value: Range | None
    recurrent_mean_square: float

    @property
    def half_life(self) -> float | None:
        """Steps in which a keep gate at its mean value halves what it keeps; None for others."""
        if self.role != "keep" or self.value is None or not 0.0 < self.value.mean < 1.0:
            return None
        return -math.log(2.0) / math.log(self.value.mean)

    def __str__(self) -> str:
        """Return one line."""
        head = f"{self.place:<16} {self.gate:<10}"
        if self.bias is None:
            return f"{head} no bias"
        text = f"{head} effective bias {self.bias}"
        if self.value is None:
            return text
        verb = "kept a step" if self.role == "keep" else "open"
        text += f": {self.value} {verb} at rest"
        return text if self.half_life is None else f"{text} (half-life {self.half_life:.3g} steps)"


@dataclass(frozen=True)
class InitReport:
    """What an initialization did: its name, in words, and every gate that it touched.

    `notes` are what a user may not expect. Printed, it is one line and one more for each gate.
    """

    scheme: str
    what: str
    gates: tuple[GateReport, ...]
    notes: tuple[str, ...] = ()

    def gate(self, name: str, place: str | None = None) -> GateReport:
        """Return a gate's report: in this place, or in the first.

        Raises:
            KeyError: there is none.
        """
        for report in self.gates:
            if report.gate == name and place in (None, report.place):
                return report
        raise KeyError(name)

    def __str__(self) -> str:
        """Return the report as text."""
        lines = [f"{self.scheme}: {self.what}", *(f"  {gate}" for gate in self.gates)]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def make_report(
    scheme: str,
    what: str,
    places: Sequence[Place],
    *,
    roles: Collection[str] | None = None,
    notes: Sequence[str] = (),
) -> InitReport:
    """Read the gates of these roles (all of them where None) back, and return the report."""
    gates = tuple(
        _gate_report(place, gate, role)
        for place in places
        for gate, role in place.roles
        if roles is None or role in roles
    )
    return InitReport(scheme, what, gates, tuple(notes))


def _gate_report(place: Place, gate: str, role: str) -> GateReport:
    bias = place.effective_bias(gate)
    weight = place.recurrent_weight(gate).detach().to(torch.float64)
    return GateReport(
        place=place.name,
        gate=gate,
        role=role,
        bias=None if bias is None else Range.of(bias),
        value=None if bias is None or role == "candidate" else Range.of(torch.sigmoid(bias)),
        recurrent_mean_square=(weight.square().sum() / min(weight.shape)).item(),
    )
