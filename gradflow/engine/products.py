"""The running product P_t = J_t ... J_1, with a running scale so that it never under- or overflows.

Each product is an accumulator: it is given one chunk's linearization after the other and leaves
ln ||P_t|| behind for the steps that were asked for. `DenseProduct` carries the matrix;
`DiagonalProduct` carries logarithms, where the units do not see each other.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from gradflow.cells.base import Linearization
from gradflow.engine.blocks import BlockPlace, Norm
from gradflow.engine.log_norms import log_norm, log_norm_of_logs

LN2 = math.log(2.0)


@runtime_checkable  # so that tests can check it where it is annotated
class Product(Protocol):
    """What `measure` asks of an accumulator."""

    def advance(self, linearization: Linearization, points: Tensor) -> Tensor:
        """Take one chunk's steps; return ln ||P|| (points, batch) at `points`.

        `points` are the indices within the chunk, ascending, of the steps asked for.
        """


class DenseProduct:
    """P_t as a (batch, state, columns) matrix times a power of two per batch row.

    Rescaling by powers of two is exact. It happens where the Frobenius norm leaves
    [1/bound, bound]; the bound leaves room to square every entry that matters.
    """

    def __init__(self, block: BlockPlace, norm: Norm, batch: int, *, like: Tensor) -> None:
        self._block, self._norm = block, norm
        identity = torch.eye(block.state_size, dtype=like.dtype, device=like.device)
        start = identity[:, block.columns].expand(batch, -1, -1)
        self._product = start.clone(memory_format=torch.contiguous_format)
        self._spare = torch.empty_like(self._product)
        self._exponent = torch.zeros(batch, dtype=torch.float64, device=like.device)
        self._limit = round(-math.log2(torch.finfo(like.dtype).tiny))  # 2^+-limit are normal
        self._bound = 2.0 ** (self._limit / 8)

    def advance(self, linearization: Linearization, points: Tensor) -> Tensor:
        """Multiply the chunk's steps on; see `Product.advance`."""
        wanted = set(points.tolist())
        blocks, exponents = [], []
        for t in range(linearization.steps):
            linearization.push(t, self._product, out=self._spare)
            self._product, self._spare = self._spare, self._product
            self._rescale()
            if t in wanted:
                blocks.append(self._product[:, self._block.rows].clone())
                exponents.append(self._exponent.clone())
        if not blocks:
            return self._exponent.new_empty(0, self._product.shape[0])
        return log_norm(torch.stack(blocks), self._norm) + LN2 * torch.stack(exponents)

    def _rescale(self) -> None:
        size = torch.linalg.vector_norm(self._product, dim=(-2, -1))
        low, high = torch.aminmax(size)
        if low.item() >= 1.0 / self._bound and high.item() <= self._bound:
            return
        # Now by the largest entry: where one is below 1e-162 the sum of squares is zero.
        size = self._product.abs().amax(dim=(-2, -1))
        ordinary = (size > 0) & torch.isfinite(size)
        exponent = torch.frexp(size).exponent.clamp(-self._limit, self._limit)
        power = torch.where(ordinary, exponent, 0).tolist()
        # torch.ldexp and torch.exp2 are not exact in every dtype; Python's ldexp is
        scale = self._exponent.new_tensor([math.ldexp(1.0, -p) for p in power])
        self._product.mul_(scale.to(self._product.dtype)[:, None, None])
        self._exponent += self._exponent.new_tensor(power)


class DiagonalProduct:
    """ln |P_t| unit by unit, where J_t couples no two units (all recurrent weights are zero).

    With k the kept part, P_t is zero outside the columns of k; there it is diag(K_t) in the rows
    of k and diag(readout_t K_t) in those of another part, K_t = product of the keep gates.
    """

    def __init__(
        self, block: BlockPlace, norm: Norm, batch: int, *, kept_part: str, like: Tensor
    ) -> None:
        self._block, self._norm, self._kept = block, norm, kept_part
        self._log_keep: Tensor | float = 0.0
        self._batch, self._device = batch, like.device

    def advance(self, linearization: Linearization, points: Tensor) -> Tensor:
        """Add the chunk's logarithms up; see `Product.advance`."""
        steps = linearization.diagonal()
        if steps is None:
            raise RuntimeError("the recurrent weights changed while they were measured")
        log_keep = self._log_keep + steps.keep.to(torch.float64).log().cumsum(dim=0)
        self._log_keep = log_keep[-1]
        name = self._block.name
        if name != "joint" and name[1] != self._kept:
            return log_keep.new_full((len(points), self._batch), -math.inf)
        log_keep = log_keep[points]
        if name == "joint":
            squares = [readout[points].to(torch.float64) ** 2 for readout in steps.readout.values()]
            gain = 0.5 * torch.log1p(sum(squares, torch.zeros_like(log_keep)))
        elif name[0] == self._kept:
            gain = torch.zeros_like(log_keep)
        else:
            gain = steps.readout[name[0]][points].to(torch.float64).abs().log()
        return log_norm_of_logs(log_keep + gain, self._norm)


class DirectProduct:
    """The direct path: ln of the product of the keep gates as realised, and their range."""

    def __init__(self, block: BlockPlace, norm: Norm, *, kept_part: str) -> None:
        self._norm = norm
        self._seen = block.name in ("joint", (kept_part, kept_part))
        self._log_keep: Tensor | float = 0.0
        self.keep_min: Tensor | None = None
        self.keep_max: Tensor | None = None

    def advance(self, keep: Tensor, points: Tensor) -> Tensor:
        """Add a chunk of keep gates (time, batch, hidden); see `Product.advance`."""
        low, high = keep.amin(dim=(0, 2)), keep.amax(dim=(0, 2))
        self.keep_min = low if self.keep_min is None else torch.minimum(self.keep_min, low)
        self.keep_max = high if self.keep_max is None else torch.maximum(self.keep_max, high)
        log_keep = self._log_keep + keep.to(torch.float64).log().cumsum(dim=0)
        self._log_keep = log_keep[-1]
        if not self._seen:
            return log_keep.new_full((len(points), keep.shape[1]), -math.inf)
        return log_norm_of_logs(log_keep[points], self._norm)
