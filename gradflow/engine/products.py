"""Running products P_t = J_t ... J_1 whose log norms are read on the way.

Each product is an accumulator: it is given one chunk's linearization after the other, and at the
end (or where it was stopped) it has ln ||P_t|| for the steps that were asked for.
`gradflow.engine.dense_product` carries the matrix; here are the two that carry logarithms.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization
from gradflow.engine.blocks import BlockPlace, Norm
from gradflow.engine.log_norms import log_norm_of_logs


@runtime_checkable
class Product(Protocol):
    """What a measurement asks of an accumulator."""

    def advance(self, linearization: Linearization, points: Tensor) -> None:
        """Take one chunk's steps and read the norm after those at `points`.

        Args:
            linearization: the step Jacobians of the chunk.
            points: indices within the chunk, ascending.
        """

    def repeat(self, cycle: Linearization, points: Tensor) -> None:
        """Take the steps of `cycle` over and over, and read the norm at `points`.

        Args:
            cycle: the step Jacobians of one period, which begins with the next step.
            points: how many steps from here, ascending, from 1.
        """

    def log_norms(self) -> Tensor:
        """Return ln ||P_t|| for the points passed so far, (points, batch), float64."""


class LogSums:
    """Running sums of ln of something that acts unit by unit, (batch, hidden)."""

    def __init__(self) -> None:
        self._sum: Tensor | float = 0.0

    def advance(self, factors: Tensor, points: Tensor) -> Tensor:
        """Add the steps of `factors` (time, batch, hidden); return the sums at `points`."""
        sums = self._sum + factors.to(torch.float64).log().cumsum(dim=0)
        self._sum = sums[-1]
        return sums[points]

    def repeat(self, factors: Tensor, points: Tensor) -> Tensor:
        """Return the sums after `points` steps of `factors`, taken over and over."""
        logs = factors.to(torch.float64).log().cumsum(dim=0)
        cycles = torch.div(points, len(logs), rounding_mode="floor")
        rest = points - cycles * len(logs)
        whole = cycles.to(torch.float64)[:, None, None] * logs[-1]
        whole = torch.where((cycles == 0)[:, None, None], 0.0, whole)  # 0 * -inf is no number
        return self._sum + whole + torch.cat([torch.zeros_like(logs[:1]), logs])[rest]


class DiagonalProduct:
    """ln |P_t| unit by unit, where J_t couples no two units (all recurrent weights are zero).

    With k the kept part, P_t is zero outside the columns of k; there it is diag(K_t) in the rows
    of k and diag(readout_t K_t) in those of another part, K_t = product of the keep gates.
    """

    def __init__(
        self, block: BlockPlace, norm: Norm, batch: int, *, kept_part: str, like: Tensor
    ) -> None:
        self._block, self._norm, self._kept = block, norm, kept_part
        self._keep = LogSums()
        self._norms: list[Tensor] = [like.new_empty(0, batch, dtype=torch.float64)]

    def advance(self, linearization: Linearization, points: Tensor) -> None:
        """Add the chunk's logarithms up; see `Product.advance`."""
        keep, readout = self._factors(linearization)
        self._read(self._keep.advance(keep, points), {p: r[points] for p, r in readout.items()})

    def repeat(self, cycle: Linearization, points: Tensor) -> None:
        """Add multiples of the cycle's logarithms; see `Product.repeat`."""
        keep, readout = self._factors(cycle)
        last = (points - 1) % cycle.steps
        self._read(self._keep.repeat(keep, points), {p: r[last] for p, r in readout.items()})

    def log_norms(self) -> Tensor:
        """Return what was read so far."""
        return torch.cat(self._norms)

    def _factors(self, linearization: Linearization) -> tuple[Tensor, dict[str, Tensor]]:
        steps = linearization.diagonal()
        if steps is None:
            raise RuntimeError("the recurrent weights changed while they were measured")
        return steps.keep, dict(steps.readout)

    def _read(self, log_keep: Tensor, readout: dict[str, Tensor]) -> None:
        name = self._block.name
        if name != "joint" and name[1] != self._kept:
            self._norms.append(log_keep.new_full(log_keep.shape[:2], -math.inf))
            return
        if name == "joint":
            squares = [part.to(torch.float64) ** 2 for part in readout.values()]
            gain = 0.5 * torch.log1p(sum(squares, torch.zeros_like(log_keep)))
        elif name[0] == self._kept:
            gain = torch.zeros_like(log_keep)
        else:
            gain = readout[name[0]].to(torch.float64).abs().log()
        self._norms.append(log_norm_of_logs(log_keep + gain, self._norm))


class DirectProduct:
    """The direct path: ln of the product of the keep gates as realised, and their range."""

    def __init__(self, block: BlockPlace, norm: Norm, *, kept_part: str) -> None:
        self._norm = norm
        self._seen = block.name in ("joint", (kept_part, kept_part))
        self._keep = LogSums()
        self._norms: list[Tensor] = []
        self.keep_min: Tensor | None = None
        self.keep_max: Tensor | None = None

    def advance(self, keep: Tensor, points: Tensor) -> None:
        """Add a chunk of keep gates (time, batch, hidden); see `Product.advance`."""
        low, high = keep.amin(dim=(0, 2)), keep.amax(dim=(0, 2))
        self.keep_min = low if self.keep_min is None else torch.minimum(self.keep_min, low)
        self.keep_max = high if self.keep_max is None else torch.maximum(self.keep_max, high)
        self._read(self._keep.advance(keep, points))

    def repeat(self, keep: Tensor, points: Tensor) -> None:
        """Add a cycle's keep gates over and over; see `Product.repeat`."""
        self._read(self._keep.repeat(keep, points))

    def log_norms(self) -> Tensor | None:
        """Return what was read so far; None for a cell whose keep gate is not known."""
        return torch.cat(self._norms) if self._norms else None

    def _read(self, log_keep: Tensor) -> None:
        if self._seen:
            self._norms.append(log_norm_of_logs(log_keep, self._norm))
        else:
            self._norms.append(log_keep.new_full(log_keep.shape[:2], -math.inf))
