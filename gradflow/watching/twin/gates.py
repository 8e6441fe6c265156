"""How a run's gates stood, as sums that add up over rows and runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.engine.gate_statistics import SATURATED

GateRows = Mapping[str, Tensor]  # by gate (rows, 3): how many values, their sum, how many at an end


@dataclass(frozen=True)
class GateSums:
    """A gate's values: how many there were, their sum, and how many lie within 0.01 of an end."""

    count: float = 0.0
    total: float = 0.0
    saturated: float = 0.0

    def with_rows(self, rows: Tensor) -> GateSums:
        """Return the sums with those of some rows added."""
        count, total, saturated = rows.sum(dim=0).tolist()
        return GateSums(self.count + count, self.total + total, self.saturated + saturated)

    @property
    def mean(self) -> float | None:
        """The mean value, None where there is none."""
        return self.total / self.count if self.count else None

    @property
    def saturated_fraction(self) -> float | None:
        """The share within 0.01 of 0 or 1, None where there is no value."""
        return self.saturated / self.count if self.count else None


def gate_rows(gates: Mapping[str, Tensor], lengths: Tensor | None) -> dict[str, Tensor]:
    """Return each gate's sums by row, on the CPU.

    Args:
        gates: values (time, rows, units) by name.
        lengths: how many steps are a row's own, (rows,); all where None.

    >>> rows = gate_rows({"forget": torch.tensor([[[0.5, 1.0]], [[0.7, 0.9]]])}, torch.tensor([1]))
    >>> rows["forget"].tolist()
    [[2.0, 1.5, 1.0]]
    """
    return {name: _rows(values, lengths) for name, values in gates.items()}


def _rows(values: Tensor, lengths: Tensor | None) -> Tensor:
    ends = (values - 0.5).abs_() > 0.5 - SATURATED
    steps, rows, units = values.shape
    totals, saturated = values.sum(dim=-1).double(), ends.count_nonzero(dim=-1).double()
    own = torch.ones(steps, rows, dtype=torch.float64, device=values.device)
    if lengths is not None:
        own = (torch.arange(steps, device=values.device).unsqueeze(1) < lengths).double()
        totals, saturated = totals * own, saturated * own
    return torch.stack([(own * units).sum(0), totals.sum(0), saturated.sum(0)], dim=1).cpu()
