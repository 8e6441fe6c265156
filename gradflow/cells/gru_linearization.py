"""The GRU's step Jacobians in closed form, for both places of the reset gate."""

from __future__ import annotations

import copy
from abc import abstractmethod
from functools import cached_property

import torch
from torch import Tensor

from gradflow.cells.protocol import DiagonalSteps, Linearization, StepFactors
from gradflow.cells.recurrence import times_columns
from gradflow.cells.row_sums import RowSums
from gradflow.cells.shapes import Block, GateBlock, Part, StepJacobian

# Below this many columns it is cheaper to multiply by all three matrices than to combine them.
FEW_COLUMNS = 32


class GRULinearization(Linearization):
    """The coefficients of a GRU's step Jacobians, each (time, batch, hidden).

    `keep` is z; `through_update` is (h - n) z'; `through_candidate` is (1 - z) sech^2; `reset` is
    r; `through_reset` is r' times what r multiplied.
    """

    def __init__(
        self,
        recurrent: Tensor,
        *,
        keep: Part,
        through_update: Part,
        through_candidate: Part,
        reset: Part,
        through_reset: Part,
    ) -> None:
        self.keep = keep
        self.steps, batch, self._hidden = keep.shape
        self._recurrent = recurrent
        self._u_reset, self._u_update, self._u_candidate = recurrent.chunk(3, dim=-2)
        self._keep, self._update, self._candidate, self._reset, self._through_reset = (
            part.unsqueeze(-1)
            for part in (keep, through_update, through_candidate, reset, through_reset)
        )
        self._combined = keep.new_empty(batch, self._hidden, self._hidden)

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent; a wide block is multiplied by one combined (H, H) matrix."""
        if tangent.shape[-1] < FEW_COLUMNS:
            product = self._push_columns(t, tangent)
            return product if out is None else out.copy_(product)
        product = torch.matmul(self._combine(t), tangent, out=out)
        return product.addcmul_(self._keep[t], tangent)

    def factors(self, first: int, last: int, room: Tensor | None = None) -> StepFactors:
        """Return J_t less its diagonal, and the diagonal of z; see `StepFactors`."""
        everything = slice(0, self._hidden)
        return StepFactors(
            matrix=self._combine_steps(first, last, room),
            read=everything,
            keep=self._keep[first:last].unsqueeze(2),
            kept=everything,
        )

    def diagonal(self) -> DiagonalSteps | None:
        """Return z where the recurrent weights are all zero."""
        if torch.any(self._recurrent):
            return None
        return DiagonalSteps(keep=self._keep.squeeze(-1), readout={})

    def detour(self) -> Linearization:
        """Return J_t - D_t: the same without the diagonal of z."""
        detour = copy.copy(self)
        detour._keep = torch.zeros_like(self._keep)
        detour.keep = None
        return detour

    def dense(self, t: int) -> StepJacobian:
        """Return J_t, (batch, hidden, hidden)."""
        return self._combine(t) + torch.diag_embed(self._keep[t].squeeze(-1))

    @abstractmethod
    def _combine(self, t: int) -> Tensor:
        """Return J_t less its diagonal of z, in a buffer that the next call writes again."""

    @abstractmethod
    def _combine_steps(self, first: int, last: int, room: Tensor | None) -> Tensor:
        """Return `_combine` of many steps at once, (steps, batch, hidden, hidden)."""

    @abstractmethod
    def _push_columns(self, t: int, tangent: Block) -> Block:
        """Return J_t @ tangent by products with the separate matrices."""


class AfterLinearization(GRULinearization):
    """Reset after the product: the three matrices add up, row by row."""

    def _combine(self, t: int) -> Tensor:
        combined = torch.mul(self._update[t], self._u_update, out=self._combined)
        combined.addcmul_(self._candidate[t] * self._reset[t], self._u_candidate)
        return combined.addcmul_(self._candidate[t] * self._through_reset[t], self._u_reset)

    def _combine_steps(self, first: int, last: int, room: Tensor | None) -> Tensor:
        return self._row_sums.steps(first, last, room)

    @cached_property
    def _row_sums(self) -> RowSums:
        coefficients = [
            self._candidate * self._through_reset,
            self._update,
            self._candidate * self._reset,
        ]
        matrices = self._recurrent.unflatten(-2, (3, self._hidden))
        return RowSums(torch.cat(coefficients, dim=-1), matrices)

    def _push_columns(self, t: int, tangent: Block) -> Block:
        reset, update, candidate = times_columns(self._recurrent, tangent).chunk(3, dim=-2)
        inner = self._reset[t] * candidate + self._through_reset[t] * reset
        return self._keep[t] * tangent + self._update[t] * update + self._candidate[t] * inner

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent."""
        to_reset, to_update, to_candidate = self.pull_drive(t, cotangent).chunk(3, dim=-2)
        to_gates = torch.cat([to_reset, to_update, self._reset[t] * to_candidate], dim=-2)
        return self._keep[t] * cotangent + times_columns(self._recurrent.mT, to_gates)

    def pull_drive(self, t: int, cotangent: Block) -> GateBlock:
        """Return what reaches the pre-activations of r, z, n; see `Linearization.pull_drive`."""
        to_candidate = self._candidate[t] * cotangent
        to_reset = self._through_reset[t] * to_candidate
        return torch.cat([to_reset, self._update[t] * cotangent, to_candidate], dim=-2)


class BeforeLinearization(GRULinearization):
    """Reset before the product: U_n multiplies what the reset gate left of the state."""

    def _combine(self, t: int) -> Tensor:
        inner = self._through_reset[t] * self._u_reset
        inner.diagonal(dim1=-2, dim2=-1).add_(self._reset[t].squeeze(-1))
        combined = torch.matmul(self._u_candidate, inner, out=self._combined)
        return combined.mul_(self._candidate[t]).addcmul_(self._update[t], self._u_update)

    def _combine_steps(self, first: int, last: int, room: Tensor | None) -> Tensor:  # noqa: ARG002
        inner = self._through_reset[first:last] * self._u_reset
        inner.diagonal(dim1=-2, dim2=-1).add_(self._reset[first:last].squeeze(-1))
        combined = torch.matmul(self._u_candidate, inner).mul_(self._candidate[first:last])
        return combined.addcmul_(self._update[first:last], self._u_update)

    def _push_columns(self, t: int, tangent: Block) -> Block:
        gates = times_columns(self._recurrent[..., : 2 * self._hidden, :], tangent)
        reset, update = gates.chunk(2, dim=-2)
        inner = self._reset[t] * tangent + self._through_reset[t] * reset
        candidate = times_columns(self._u_candidate, inner)
        return self._keep[t] * tangent + self._update[t] * update + self._candidate[t] * candidate

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent."""
        to_inner = times_columns(self._u_candidate.mT, self._candidate[t] * cotangent)
        to_gates = torch.cat(
            [self._through_reset[t] * to_inner, self._update[t] * cotangent], dim=-2
        )
        through_gates = times_columns(self._recurrent[..., : 2 * self._hidden, :].mT, to_gates)
        return self._keep[t] * cotangent + self._reset[t] * to_inner + through_gates

    def pull_drive(self, t: int, cotangent: Block) -> GateBlock:
        """Return what reaches the pre-activations of r, z, n; see `Linearization.pull_drive`."""
        to_candidate = self._candidate[t] * cotangent
        to_reset = self._through_reset[t] * times_columns(self._u_candidate.mT, to_candidate)
        return torch.cat([to_reset, self._update[t] * cotangent, to_candidate], dim=-2)
