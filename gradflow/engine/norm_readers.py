"""Reading the norm off a running product, step by step: ln ||block|| of every batch row.

A reader is given the block as it stands, its Frobenius sizes (known from watching the scale) and
the power of two that was taken out of it. `FrobeniusReader` and `ExactSpectralReader` are here;
`gradflow.engine.spectral` has the one that follows the largest singular value of a wide block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from gradflow.engine.log_norms import LN2, log_norm

KEPT_ELEMENTS = 2**20  # blocks that wait for one batched decomposition


@runtime_checkable
class NormReader(Protocol):
    """What a dense product asks of a reader."""

    def read(self, block: Tensor, sizes: Sequence[float], exponents: Sequence[int]) -> None:
        """Read one step.

        Args:
            block: (batch, rows, columns); it is overwritten after the call.
            sizes: the Frobenius norm of each batch row's block.
            exponents: each block stands for block * 2**exponent.
        """

    def log_norms(self) -> Tensor:
        """Return ln ||block|| of all steps read so far, (points, batch), float64."""


class SafeRange:
    """Between which sizes a norm may be taken by squaring: all that counts stays normal."""

    def __init__(self, dtype: torch.dtype) -> None:
        info = torch.finfo(dtype)
        self.low = math.sqrt(info.tiny) / info.eps
        self.high = math.sqrt(info.max) * info.eps

    def holds(self, sizes: Sequence[float]) -> bool:
        """Return whether all sizes are safe; nan, which a sum passes on and `min` need not, is not.

        >>> SafeRange(torch.float64).holds([1.0, float("nan")])
        False
        """
        return self.low < min(sizes) and sum(sizes) < self.high


class FrobeniusReader:
    """Takes the sizes as they are, and looks at the block only where squaring was not safe."""

    def __init__(self, batch: int, *, like: Tensor) -> None:
        self._range = SafeRange(like.dtype)
        self._sizes: list[Sequence[float]] = []
        self._exponents: list[Sequence[int]] = []
        self._odd: dict[int, Tensor] = {}
        self._empty = like.new_empty(0, batch, dtype=torch.float64)

    def read(self, block: Tensor, sizes: Sequence[float], exponents: Sequence[int]) -> None:
        """Read one step; see `NormReader.read`."""
        if not self._range.holds(sizes):
            self._odd[len(self._sizes)] = log_norm(block)
        self._sizes.append(sizes)
        self._exponents.append(exponents)

    def log_norms(self) -> Tensor:
        """Return what was read so far."""
        if not self._sizes:
            return self._empty
        logs = self._empty.new_tensor(self._sizes).log()
        for index, log in self._odd.items():
            logs[index] = log
        return logs + LN2 * self._empty.new_tensor(self._exponents)


class ExactSpectralReader:
    """Keeps the blocks of some steps and decomposes them in one batched call."""

    def __init__(self, batch: int, *, like: Tensor) -> None:
        self._norms: list[Tensor] = [like.new_empty(0, batch, dtype=torch.float64)]
        self._blocks: list[Tensor] = []
        self._exponents: list[list[int]] = []

    def read(self, block: Tensor, sizes: Sequence[float], exponents: Sequence[int]) -> None:  # noqa: ARG002 - the form of every reader
        """Keep one step's block; see `NormReader.read`."""
        kept = block.clone()
        self._exponents.append(list(exponents))
        self._blocks.append(kept)
        if len(self._blocks) * kept.numel() >= KEPT_ELEMENTS:
            self._decompose()

    def log_norms(self) -> Tensor:
        """Return what was read so far."""
        if self._blocks:
            self._decompose()
        return torch.cat(self._norms)

    def _decompose(self) -> None:
        scale = LN2 * self._norms[0].new_tensor(self._exponents)
        self._norms.append(log_norm(torch.stack(self._blocks), "spectral") + scale)
        self._blocks, self._exponents = [], []
