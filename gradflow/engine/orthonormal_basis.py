"""A growing set of orthonormal vectors."""

from __future__ import annotations

import torch
from torch import Tensor


class OrthonormalBasis:
    """Orthonormal columns, (batch, size, vectors), to which blocks are added.

    Args:
        block: the first vectors, (batch, size, width), made orthonormal; None for none yet.
    """

    def __init__(self, block: Tensor | None = None) -> None:
        self._vectors: Tensor | None = None
        self._width = 0
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

        Twice: after one pass round-off is left along the old vectors wherever little was new.
        """
        fresh, triangle = torch.linalg.qr(block)
        self._width = block.shape[2]
        if self._vectors is None:
            self._vectors = fresh
            first: Tensor = triangle
            return first
        old = self._vectors
        along = old.mT @ block
        fresh, triangle = torch.linalg.qr(block - old @ along)
        again = old.mT @ fresh
        fresh, turn = torch.linalg.qr(fresh - old @ again)
        self._vectors = torch.cat([old, fresh], dim=2)
        coefficients: Tensor = torch.cat([along + again @ triangle, turn @ triangle], dim=1)
        return coefficients

    def combine(self, coefficients: Tensor) -> Tensor:
        """Return combinations of the first vectors, as many as there are coefficients."""
        assert self._vectors is not None
        combined: Tensor = self._vectors[:, :, : coefficients.shape[1]] @ coefficients
        return combined
