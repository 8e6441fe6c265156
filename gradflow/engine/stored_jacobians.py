"""Step Jacobians that are there as matrices, of a recurrence that gives no closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization, StepFactors
from gradflow.cells.shapes import Block, StepJacobian

# A diagonal entry nearer than this to its keep gate, in units of the gate's rounding, is the gate.
SAME_UNITS = 16.0


class StoredJacobians(Linearization):
    """Stored step Jacobians, (time, batch, state, state).

    Args:
        jacobians: the matrices.
        keep: the keep gate at each step, (time, batch, hidden), where it is known.
        kept: where the part that it multiplies lies in the state.
    """

    def __init__(
        self, jacobians: Tensor, *, keep: Tensor | None = None, kept: slice | None = None
    ) -> None:
        self._jacobians, self._kept = jacobians, kept
        self.steps, self.keep = jacobians.shape[0], keep

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent."""
        return torch.matmul(self._jacobians[t], tangent, out=out)

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent."""
        return torch.matmul(self._jacobians[t].mT, cotangent)

    def factors(self, first: int, last: int, room: Tensor | None = None) -> StepFactors:  # noqa: ARG002 - nothing is made
        """Return the stored matrices; see `StepFactors`."""
        matrix = self._jacobians[first:last]
        return StepFactors(matrix=matrix, read=slice(0, matrix.shape[-1]))

    def dense(self, t: int) -> StepJacobian:
        """Return J_t."""
        return self._jacobians[t]

    def detour(self) -> Linearization:
        """Return J_t - D_t, entry by entry: the only way without a formula.

        What is left of an entry within rounding of its keep gate is taken for zero, so that a
        recurrence without detours has none, and no sum of rounding errors in their place.
        """
        if self.keep is None or self._kept is None:
            return self
        detours = self._jacobians.clone()
        diagonal = detours[..., self._kept, self._kept].diagonal(dim1=-2, dim2=-1)
        left = diagonal - self.keep
        same = left.abs() <= SAME_UNITS * torch.finfo(left.dtype).eps * self.keep
        diagonal.copy_(left.masked_fill(same, 0.0))
        return StoredJacobians(detours)
