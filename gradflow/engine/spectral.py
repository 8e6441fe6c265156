"""The largest singular value of a running product, followed from step to step.

A decomposition of every prefix would cost more than the product itself. The leading right
singular vectors move little from one step to the next, so a block of them, multiplied once by
P^T P, is nearly right already. It is accepted only with a proof.

The proof. Let theta_1 >= ... >= theta_k be the Ritz values of G = P^T P in a block and r_i the
residuals. With the first j of its vectors split off, G is [[Theta, B^T], [B, D]], where
||B||_F^2 = sum of ||r_i||^2 over i <= j, and ||D|| <= trace D = ||P||_F^2 - theta_1 - ... -
theta_j =: rho. Where rho < theta_1, the largest eigenvalue of G lies between theta_1 and
theta_1 + ||B||_F^2 / (theta_1 - rho). A small residual alone would not do: it proves *a* singular
value, and where directions cross, the wrong one. Where no j gives a proof, the value comes from
the eigenvalues of P^T P.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.engine.log_norms import LN2, log_norm
from gradflow.engine.norm_readers import SafeRange

BLOCK = 8
PASSES = 3
# relative, of a squared singular value: half of it is the error of the logarithm
TOLERANCE = 2e-13
# the part of theta_1 that theta_1 - rho must exceed, so that its own rounding does not matter
SEPARATION = 0.01
LONGEST_WAIT = 16


class WarmSpectralReader:
    """Follows the largest singular value of each batch row; see `NormReader`.

    Args:
        batch: how many rows.
        columns: the width of the block.
        like: a tensor on the device of the product.
    """

    def __init__(self, batch: int, columns: int, *, like: Tensor) -> None:
        self._rows = [LeadingSingularValue(columns, device=like.device) for _ in range(batch)]
        self._logs: list[list[float]] = []
        self._empty = torch.empty(0, batch, dtype=torch.float64, device=like.device)
        self._range = SafeRange(torch.float64)

    def read(self, block: Tensor, sizes: Sequence[float], exponents: Sequence[int]) -> None:
        """Read one step; see `NormReader.read`."""
        wide = block.to(torch.float64)
        logs = []
        for matrix, row, size, power in zip(wide, self._rows, sizes, exponents, strict=True):
            safe = self._range.holds([size])
            log = row.log_of(matrix, size) if safe else float(log_norm(matrix, "spectral"))
            logs.append(log + LN2 * power)
        self._logs.append(logs)

    def log_norms(self) -> Tensor:
        """Return what was read so far."""
        return self._empty.new_tensor(self._logs) if self._logs else self._empty

    @property
    def proved(self) -> int:
        """How many values were proved without a decomposition."""
        return sum(row.proved for row in self._rows)


class LeadingSingularValue:
    """The largest singular value of a matrix that changes little between two questions.

    Args:
        columns: the width of the matrix.
        device: where it is.
    """

    def __init__(self, columns: int, *, device: torch.device) -> None:
        start = torch.randn(
            columns,
            min(BLOCK, columns),
            dtype=torch.float64,
            generator=torch.Generator().manual_seed(columns),
        )
        self._vectors = torch.linalg.qr(start.to(device))[0]
        self._wait = self._failures = 0
        self.proved = 0

    def log_of(self, matrix: Tensor, size: float) -> float:
        """Return ln of the largest singular value.

        Args:
            matrix: (rows, columns), float64.
            size: its Frobenius norm.
        """
        if self._wait:  # a flat spectrum stays flat for a while: no use asking at every step
            self._wait -= 1
            return float(log_norm(matrix, "spectral"))
        for _ in range(PASSES):
            square, hopeless = self._iterate(matrix, size * size)
            if square is not None:
                self._failures = 0
                self.proved += 1
                return 0.5 * math.log(square)
            if hopeless:
                break
        self._failures += 1
        self._wait = min(2**self._failures, LONGEST_WAIT)
        return float(log_norm(matrix, "spectral"))

    def _iterate(self, matrix: Tensor, trace: float) -> tuple[float | None, bool]:
        """Multiply the block by P^T P once; return theta_1 if proved, and whether it cannot be."""
        image = matrix @ self._vectors
        values, turn = torch.linalg.eigh(image.mT @ image)
        pulled = (turn.mT @ image.mT) @ matrix  # rows: G v_i, from the smallest value
        residual = torch.addcmul(pulled, values[:, None], turn.mT @ self._vectors.mT, value=-1)
        errors = torch.linalg.vector_norm(residual, dim=1).tolist()[::-1]
        thetas = values.tolist()[::-1]
        self._vectors = torch.linalg.qr(pulled.flip(0).mT)[0]
        return proved_square(thetas, errors, trace), not is_alone(thetas, trace)


def is_alone(thetas: Sequence[float], trace: float) -> bool:
    """Return whether less than theta_1 is left of the trace, so that a proof can exist."""
    return trace - sum(thetas) < (1.0 - SEPARATION) * thetas[0]


def proved_square(thetas: Sequence[float], errors: Sequence[float], trace: float) -> float | None:
    """Return theta_1 where it is proved to be the largest eigenvalue, else None.

    Args:
        thetas: Ritz values, the largest first.
        errors: norms of their residuals.
        trace: of the whole matrix.

    >>> proved_square([4.0, 1.0], [1e-9, 1e-3], trace=6.0)
    4.0
    >>> proved_square([4.0, 1.0], [1e-9, 1e-9], trace=9.5) is None
    True
    """
    rest, coupling = trace, 0.0
    for theta, error in zip(thetas, errors, strict=True):
        rest -= theta
        coupling += error * error
        gap = thetas[0] - rest
        if gap > SEPARATION * thetas[0] and coupling <= TOLERANCE * thetas[0] * gap:
            return thetas[0]
    return None
