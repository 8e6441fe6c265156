"""A growing set of orthonormal vectors."""

from __future__ import annotations

import torch
from torch import Tensor

# Of a unit vector: one of which less is left is taken to be made of rounding.
LEFT = 0.01
PASSES = 5


class OrthonormalBasis:
    """Orthonormal columns, (batch, size, vectors), to which blocks are added.

    Args:
        block: the first vectors, (batch, size, width), made orthonormal; None for none yet.
    """

    def __init__(self, block: Tensor | None = None) -> None:
        self._vectors: Tensor | None = None
        self._width = 0
        self._generator = torch.Generator("cpu").manual_seed(0)
        if block is not None:
            self.extend(block)

    @property
    def newest(self) -> Tensor:
        """The last block that was added."""
        assert self._vectors is not None
        newest: Tensor = self._vectors[:, :, -self._width :]
        return newest

    def extend(self, block: Tensor) -> Tensor:
        """Add what is new in a block; return its coefficients, (batch, vectors, width).

        As many vectors are added as the block has columns. Where it has nothing new (it lies among
        the old vectors, as all does once they span an invariant space), random ones are, with
        coefficients of 0: what rounding leaves of it is no direction, and not orthogonal to any.
        """
        self._width = block.shape[2]
        if self._vectors is None:
            self._vectors, triangle = torch.linalg.qr(block)
            first: Tensor = triangle
            return first
        old = self._vectors
        along = old.mT @ block
        rest = block - old @ along
        again = old.mT @ rest  # round-off along the old vectors, wherever little was new
        rest = rest - old @ again
        fresh = self._orthonormal_to(old, rest)
        self._vectors = torch.cat([old, fresh], dim=2)
        coefficients: Tensor = torch.cat([along + again, fresh.mT @ rest], dim=1)
        return coefficients

    def _orthonormal_to(self, old: Tensor, rest: Tensor) -> Tensor:
        """Return orthonormal vectors beside the old ones: the directions of `rest`, or random."""
        fresh: Tensor = torch.linalg.qr(rest)[0]
        for _ in range(PASSES):
            fresh, kept = torch.linalg.qr(fresh - old @ (old.mT @ fresh))
            lost = kept.diagonal(dim1=1, dim2=2).abs() < LEFT
            if not bool(lost.any()):
                break
            drawn = torch.randn(
                fresh.shape, generator=self._generator, dtype=torch.float64, device="cpu"
            )
            unit = torch.linalg.qr(drawn)[0].to(fresh)
            fresh = torch.where(lost[:, None, :], unit, fresh)
        return fresh
