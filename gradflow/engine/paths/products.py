"""The products that show where a derivative travels, each with a running power of two.

    full      P_t = J_t P_{t-1}
    rest      R_t = J_t R_{t-1} + (J_t - D_t) D_{t-1} ... D_1        so that P_t = R_t + D_t ... D_1
    without   the full product of step Jacobians in which one gate is taken as a constant

The rest is never "full minus direct": where the two nearly agree, the difference of two rounded
numbers has lost all its digits, while the recursion adds up the detours themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization
from gradflow.cells.shapes import Block, State
from gradflow.engine.blocks import BlockName, BlockPlace, Norm, locate_block
from gradflow.engine.log_norms import LN2, log_norm, log_norm_of_logs

WITHOUT = "without "
_ROOM = 64  # powers of two that a product may grow or shrink by before it is rescaled


@dataclass(frozen=True)
class StepPaths:
    """A run of steps by path: all of it, the detours, and all of it without each gate."""

    whole: Linearization
    detour: Linearization | None
    keep: Tensor | None
    without: Mapping[str, Linearization]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.whole.steps


class ScaledBlock:
    """A (batch, state, columns) matrix times a power of two for each batch row."""

    def __init__(self, start: Block) -> None:
        self.block = start
        self.exponent = torch.zeros(start.shape[0], dtype=torch.float64, device=start.device)

    def log_norm(self, rows: slice, columns: slice, norm: Norm) -> Tensor:
        """Return ln of the norm of some rows and columns, (batch,)."""
        return log_norm(self.block[:, rows, columns], norm) + LN2 * self.exponent

    def rescale(self, also: Tensor | None = None) -> None:
        """Bring the largest entry near 1, or that of the block and of `also` (batch, n)."""
        size = self.block.abs().amax(dim=(-2, -1))
        if also is not None:
            size = torch.maximum(size, also.abs().amax(dim=-1).to(size.dtype))
        ordinary = (size > 0) & torch.isfinite(size)
        power = torch.where(ordinary, torch.frexp(size).exponent, 0)
        if not bool((power.abs() > _ROOM).any()):
            return
        powers = power.clamp(-1000, 1000).tolist()
        # Python's ldexp is exact; torch.ldexp takes its powers in float32.
        scale = self.exponent.new_tensor([math.ldexp(1.0, -power) for power in powers])
        self.block = self.block * scale.to(self.block.dtype)[:, None, None]
        self.exponent = self.exponent + self.exponent.new_tensor(powers)


@dataclass(frozen=True)
class PathPlaces:
    """Which part of the state's Jacobian is measured: by path, and of the full product besides.

    `kept` is where the part lies that the keep gate multiplies. `blocks` are all pairs of parts,
    "h,c" for dh_t/dc_0, and "joint"; none where the state has one part.
    """

    measured: BlockPlace
    kept: slice
    blocks: Mapping[str, BlockPlace]

    @classmethod
    def of(cls, cell: CellLike, state: State, measured: BlockPlace) -> PathPlaces:
        """Return the places within a cell's state."""
        parts = cell.parts
        names: list[BlockName] = [(row, column) for row in parts for column in parts]
        names = [*names, "joint"] if len(parts) > 1 else []
        return cls(
            measured=measured,
            kept=locate_block((cell.kept_part, cell.kept_part), parts, state).rows,
            blocks={
                name if isinstance(name, str) else ",".join(name): locate_block(name, parts, state)
                for name in names
            },
        )


class PathProducts:
    """All products of one run, and ln of their norms at the steps asked for.

    Args:
        places: what is measured.
        like: a part of the state, for batch rows, dtype and device.
        norm: "spectral" or "frobenius".
    """

    def __init__(self, places: PathPlaces, *, like: Tensor, norm: Norm) -> None:
        self._place, self._kept, self._blocks = places.measured, places.kept, places.blocks
        self._norm: Norm = norm
        self._identity = torch.eye(places.measured.state_size).to(like).repeat(len(like), 1, 1)
        self._full = ScaledBlock(self._identity)
        self._rest = ScaledBlock(self._beside_the_kept())
        self._without: dict[str, ScaledBlock] = {}
        width = places.kept.stop - places.kept.start
        self._log_keep = torch.zeros(len(like), width, dtype=torch.float64, device=like.device)
        self._log_norms: dict[str, list[Tensor]] = {}

    def found(self, points: int) -> dict[str, Tensor]:
        """Return ln of the norms by name, (points, batch) each; what was given up on is left out.

        Names are "full", "direct", "rest", those of the blocks, and "without " with a gate.
        """
        return {
            name: torch.stack(norms)
            for name, norms in self._log_norms.items()
            if len(norms) == points
        }

    def advance(self, paths: StepPaths, points: Tensor) -> None:
        """Multiply some steps on; `points` are the ascending indices of those to measure."""
        wanted = set(points.tolist())
        for t in range(paths.steps):
            self._push(self._full, paths.whole, t)
            for name, steps in paths.without.items():
                start = ScaledBlock(self._identity[:, :, self._place.columns])
                self._push(self._without.setdefault(name, start), steps, t)
            if paths.keep is not None and paths.detour is not None:
                self._push_rest(paths, t)
                self._log_keep = self._log_keep + paths.keep[t].to(torch.float64).log()
            if t in wanted:
                self._measure(direct=paths.keep is not None)

    @staticmethod
    def _push(product: ScaledBlock, steps: Linearization, t: int) -> None:
        product.block = steps.push(t, product.block)
        product.rescale()

    def _beside_the_kept(self) -> Block:
        """Return the measured columns of I - D_0, where D_0 is the identity on the kept part."""
        beside = self._identity.clone()
        beside[:, self._kept, self._kept] = 0.0
        return beside[:, :, self._place.columns]

    def _push_rest(self, paths: StepPaths, t: int) -> None:
        """R_t = J_t R_{t-1} + (J_t - D_t) D_{t-1} ... D_1, in the scale of R."""
        rest = self._rest
        rest.block = paths.whole.push(t, rest.block)
        if paths.detour is None or not _covers(self._place.columns, self._kept):
            return rest.rescale()
        direct = torch.exp(self._log_keep - LN2 * rest.exponent[:, None]).to(rest.block.dtype)
        tangent = torch.zeros_like(self._identity)
        tangent[:, self._kept, self._kept] = torch.diag_embed(direct)
        tangent = tangent[:, :, self._place.columns].contiguous()
        rest.block = rest.block + paths.detour.push(t, tangent)
        return rest.rescale(also=direct)

    def _measure(self, *, direct: bool) -> None:
        rows, columns = self._place.rows, self._place.columns
        self._note("full", self._full.log_norm(rows, columns, self._norm))
        for name, block in self._blocks.items():
            self._note(name, self._full.log_norm(block.rows, block.columns, self._norm))
        for name, product in self._without.items():
            self._note(WITHOUT + name, product.log_norm(rows, slice(None), self._norm))
        if direct:
            self._note("direct", self._direct_norm())
            self._note("rest", self._rest.log_norm(rows, slice(None), self._norm))

    def _note(self, name: str, log_norms: Tensor) -> None:
        self._log_norms.setdefault(name, []).append(log_norms)

    def _direct_norm(self) -> Tensor:
        """Return ln of the norm of the product of keep gates within the measured block."""
        if _covers(self._place.rows, self._kept) and _covers(self._place.columns, self._kept):
            return log_norm_of_logs(self._log_keep, self._norm)
        return torch.full_like(self._log_keep[:, 0], -math.inf)


def _covers(span: slice, part: slice) -> bool:
    return bool(span.start <= part.start and part.stop <= span.stop)
