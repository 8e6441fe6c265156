"""The spectral norm of P_T without the matrix: vectors pushed forward and pulled back.

A block Golub-Kahan-Lanczos process (Golub, Luk & Overton 1981) on A, a block of
P_T = J_T ... J_1: A v pushes vectors through the run, A^T u pulls them back, and the largest
singular value of the small matrix U^T A V grows towards that of A from below. All vectors are
kept and made orthogonal again, so that none is found twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.engine.blocks import BlockPlace
from gradflow.engine.log_norms import LN2
from gradflow.engine.matrix_powers import scale_by_powers_of_two_
from gradflow.engine.orthonormal_basis import OrthonormalBasis
from gradflow.engine.stored_run import StoredRun

BLOCK = 8
MOST_PAIRS = 40
# Of a singular value, relative: a tenth of what `converged` promises. A float32 push cannot tell
# its own rounding from more.
TOLERANCE = {torch.float64: 1e-7, torch.float32: 5e-6}
EXACT = 1e-13


@dataclass(frozen=True)
class Estimates:
    """ln of the largest singular value at one T, each (batch,), float64.

    `lower` is the estimate, and a proved lower bound; `upper` adds the error that the residual
    and the next value leave room for: the largest one lies between the two, unless the process
    overlooked it. `converged` tells whether the estimate holds to 1e-6; `pairs` counts the pushes
    and pulls.
    """

    lower: Tensor
    upper: Tensor
    converged: Tensor
    pairs: int


class KrylovProcess:
    """Estimates ln ||P_T||_2 for one T after the other.

    Each begins with random vectors. What was leading at the T before would be a start that has
    settled already, and the process would stop before it had seen a direction that overtook it.

    Args:
        run: the run, followed to its end.
        place: which block of the Jacobian is measured.
        like: a tensor of the dtype and on the device of the cell.
        batch: how many rows.
        most_pairs: after how many pushes and pulls to give up.
    """

    def __init__(
        self,
        run: StoredRun,
        place: BlockPlace,
        *,
        like: Tensor,
        batch: int,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        self._run, self._place, self._like, self._batch = run, place, like, batch
        self._columns = place.columns.stop - place.columns.start
        narrow = min(self._columns, place.rows.stop - place.rows.start)
        self._width = max(1, min(BLOCK, narrow // 16))
        self._most_pairs = min(most_pairs, narrow // self._width)
        self._tolerance = TOLERANCE.get(like.dtype, 1e-2)
        self._generator = torch.Generator("cpu").manual_seed(0)

    def estimate(self, steps: int) -> Estimates:
        """Return the estimates at T = steps."""
        right, left = OrthonormalBasis(self._start()), OrthonormalBasis()
        images: list[Tensor] = []
        reference: list[int] | None = None
        before: Tensor | None = None
        while True:
            image, exponents = self._push(right.newest, steps)
            reference = exponents if reference is None else reference
            images.append(left.extend(_scaled(image, exponents, reference)))
            image, exponents = self._pull(left.newest, steps)
            beyond = right.extend(_scaled(image, exponents, reference))[:, -self._width :]
            ritz = RitzValues.of(images, beyond)
            settled = ritz.settled(before, self._tolerance)
            if bool(settled.all()) or len(images) == self._most_pairs:
                break
            before = ritz.largest
        scale = LN2 * ritz.largest.new_tensor(reference)
        upper = (ritz.largest + ritz.error).log() + scale
        return Estimates(ritz.largest.log() + scale, upper, settled, len(images))

    def _start(self) -> Tensor:
        """Return the first block, random vectors: none misses a direction altogether."""
        shape = (self._batch, self._columns, self._width)
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64, device="cpu")
        return drawn.to(self._like.device)

    def _push(self, block: Tensor, steps: int) -> tuple[Tensor, list[int]]:
        image, exponents = self._run.push(self._embed(block, self._place.columns), steps)
        return image[:, self._place.rows], exponents

    def _pull(self, block: Tensor, steps: int) -> tuple[Tensor, list[int]]:
        image, exponents = self._run.pull(self._embed(block, self._place.rows), steps)
        return image[:, self._place.columns], exponents

    def _embed(self, block: Tensor, span: slice) -> Tensor:
        """Return the block in the rows of the whole state that it stands for."""
        whole = self._like.new_zeros(self._batch, self._place.state_size, block.shape[2])
        whole[:, span] = block
        return whole


@dataclass(frozen=True)
class RitzValues:
    """The singular values of U^T A V: `largest` and `second` (batch,), and the residual's norm."""

    largest: Tensor
    second: Tensor
    residual: Tensor

    @classmethod
    def of(cls, images: Sequence[Tensor], beyond: Tensor) -> RitzValues:
        """Decompose what is known of A.

        Args:
            images: U^T A V, a block of columns each, as far down as U went then.
            beyond: the part of A^T U that is outside of V, by its newest block.
        """
        height = images[-1].shape[1]
        padded = [torch.nn.functional.pad(i, (0, 0, 0, height - i.shape[1])) for i in images]
        small = torch.cat(padded, dim=2)
        lost = ~torch.isfinite(small).flatten(1).all(dim=1)
        # LAPACK refuses what is no number; the other rows are as they would be alone
        left, values, _ = torch.linalg.svd(small.masked_fill(lost[:, None, None], 0.0))
        values = values.masked_fill(lost[:, None], torch.nan)
        residual = beyond @ left[:, -beyond.shape[2] :, :1]
        second = values[:, 1] if values.shape[1] > 1 else torch.zeros_like(values[:, 0])
        norm = torch.linalg.vector_norm(residual, dim=(1, 2))
        return cls(values[:, 0], second, norm)

    @property
    def error(self) -> Tensor:
        """How far the largest value may lie above: the residual, or its square over the gap."""
        gap = (self.largest - self.second).clamp_min(torch.finfo(torch.float64).tiny)
        return torch.minimum(self.residual, self.residual**2 / gap)

    def settled(self, before: Tensor | None, tolerance: float) -> Tensor:
        """Return which rows are done: no error left, or little and no growth since the last pair.

        A value that is not a number does not become one.
        """
        done = (self.residual <= EXACT * self.largest) | torch.isnan(self.largest)
        if before is None:
            return done
        still = self.largest - before <= tolerance * self.largest
        return done | ((self.error <= tolerance * self.largest) & still)


def _scaled(image: Tensor, exponents: Sequence[int], reference: Sequence[int]) -> Tensor:
    """Return the block in float64 and in units of 2**reference."""
    shifts = [max(-2000, min(1000, e - r)) for e, r in zip(exponents, reference, strict=True)]
    return scale_by_powers_of_two_(image.to(torch.float64, copy=True), shifts)
