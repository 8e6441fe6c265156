"""Tangents pushed along a run and made orthonormal again after every step, by QR.

What a step does to the volume that the first i tangents span is the product of the first i
diagonal entries of R, so ln |R_ii| is what Lyapunov exponents are the means of (Benettin et al.
1980; Geist, Parlitz & Lauterborn 1990). QR never normalises a direction that is not there: where
the volume is zero, or too small for the arithmetic to tell, the direction has collapsed, and it
and all behind it stay zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization
from gradflow.cells.shapes import Block

# A collapsed direction comes out of QR as rounding noise: a few units times the size of J_t. It is
# looked at after every step, so a bound some way above the usual noise finds it soon.
NOISE_UNITS = 16.0


class OrthonormalFrame:
    """The orthonormal tangents of every batch row, (batch, state, count).

    They start as random directions, so that with probability 1 the first r of them span what any
    r directions can; a collapse therefore always takes the last ones, and `live` (batch,) counts
    those that are left.

    Args:
        rows, state_size, count: the shape.
        seed: of the first directions.
        device: where to compute; always in float64.
        resolution: the relative precision of the step Jacobians.
    """

    def __init__(
        self,
        rows: int,
        state_size: int,
        count: int,
        *,
        seed: int = 0,
        device: torch.device | None = None,
        resolution: float = 2.0**-53,
    ) -> None:
        generator = torch.Generator("cpu").manual_seed(seed)
        drawn = torch.randn(
            rows, state_size, count, dtype=torch.float64, generator=generator, device="cpu"
        )
        self.tangents: Block = torch.linalg.qr(drawn)[0].to(device)
        # Pushed beside the tangents, it shows the size of J_t when few of them are left.
        probe = torch.randn(
            rows, state_size, 1, dtype=torch.float64, generator=generator, device="cpu"
        )
        self._probe: Block = torch.nn.functional.normalize(probe, dim=-2).to(device)
        self.live = torch.full((rows,), count, device=device)
        self._columns = torch.arange(count, device=device)
        self._count = count
        self._noise = NOISE_UNITS * state_size * resolution

    def push(self, steps: Linearization, t: int, bound: Tensor | None = None) -> Tensor:
        """Push through J_t and return ln |R_ii|, (batch, count); -inf where collapsed.

        Args:
            steps: the step Jacobians.
            t: which of them.
            bound: a rank that J_t does not exceed, (batch,), where one is known.
        """
        pushed = steps.push(t, torch.cat([self.tangents, self._probe], dim=-1))
        largest = pushed.abs().amax(dim=(-2, -1)).nan_to_num(nan=0.0, posinf=0.0)
        log_size = self._step_sizes(pushed[..., :-1], self._noise * largest, bound).log()
        shed = self._count - log_size.shape[-1]
        return torch.nn.functional.pad(log_size, (0, shed), value=-torch.inf)

    def _step_sizes(self, pushed: Block, noise: Tensor, bound: Tensor | None) -> Tensor:
        """Make the pushed tangents the new ones; return |R_ii|, 0 where collapsed."""
        if pushed.shape[-1] == 1:  # one direction: its length, without a decomposition
            unit, size = _normalised(pushed)
        else:
            unit, triangle = torch.linalg.qr(_finite(pushed))
            size = triangle.diagonal(dim1=-2, dim2=-1).abs()
            size = torch.where(torch.isfinite(pushed).all(dim=-2), size, torch.nan)
        self.tangents = unit
        columns = self._columns[: size.shape[-1]]
        gone = size <= noise.unsqueeze(-1)
        if bound is not None:
            gone |= columns >= bound.unsqueeze(-1)
        gone |= columns >= self.live.unsqueeze(-1)
        return self._without(gone, size, columns) if bool(gone.any()) else size

    def _without(self, gone: Tensor, size: Tensor, columns: Tensor) -> Tensor:
        """Drop the first collapsed direction of each row and all behind it."""
        first = torch.where(gone, columns, len(columns)).amin(dim=-1)
        self.live = torch.minimum(self.live, first)
        alive = columns < self.live.unsqueeze(-1)
        most = int(self.live.max())
        self.tangents = (self.tangents * alive.unsqueeze(-2))[..., :most]
        return torch.where(alive | torch.isnan(size), size, 0.0)[..., :most]


def _normalised(column: Block) -> tuple[Block, Tensor]:
    """Return a column of length 1 and its length (batch, 1), squaring nothing that is too small."""
    largest = column.abs().amax(dim=-2, keepdim=True)
    scaled = column / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(scaled, dim=-2, keepdim=True)
    return scaled / torch.where(length > 0, length, 1.0), (length * largest).squeeze(-2)


def _finite(block: Block) -> Block:
    """Return the block with zeros for what is not finite: LAPACK may hang or raise on these."""
    return torch.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0)
