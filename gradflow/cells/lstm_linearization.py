"""The LSTM's step Jacobians in closed form."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from gradflow.cells.protocol import DiagonalSteps, Linearization, StepFactors
from gradflow.cells.recurrence import times_columns
from gradflow.cells.row_sums import RowSums
from gradflow.cells.shapes import Block, GateBlock, Part, StepJacobian

# Below this many columns it is cheaper to multiply by all four matrices than to combine them.
FEW_COLUMNS = 32


class LSTMLinearization(Linearization):
    """The coefficients of an LSTM's step Jacobians, each (time, batch, hidden).

    `keep` is f; `through_x` is what a change of gate x's pre-activation does to the new state (to
    c, but for the output gate to h); `readout` is dh_t/dc_t = o sech^2(c_t).
    """

    def __init__(
        self,
        recurrent: Tensor,
        *,
        keep: Part,
        through_forget: Part,
        through_input: Part,
        through_candidate: Part,
        through_output: Part,
        readout: Part,
    ) -> None:
        self.keep: Tensor = keep
        self.readout = readout
        self._through_output = through_output
        self.steps, _, self._hidden = keep.shape
        self._recurrent = recurrent
        self._by_gate = recurrent.chunk(4, dim=-2)
        # a column each, so that a coefficient scales a row of the matrix that it multiplies
        self._keep, self._readout = keep.unsqueeze(-1), readout.unsqueeze(-1)
        self._through = [
            part.unsqueeze(-1)
            for part in (through_input, through_forget, through_candidate, through_output)
        ]
        self._combined = keep.new_empty(keep.shape[1], 2 * self._hidden, self._hidden)

    @cached_property
    def _kept(self) -> Tensor:
        """What is left of dc in h and in c, (time, batch, 2, hidden, 1)."""
        return torch.stack([self._readout * self._keep, self._keep], dim=2)

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent with one (2H, H) product: the gates that feed c add up first."""
        dh, dc = tangent[:, : self._hidden], tangent[:, self._hidden :]
        out = torch.empty_like(tangent) if out is None else out
        new_h, new_c = out[:, : self._hidden], out[:, self._hidden :]
        if tangent.shape[-1] < FEW_COLUMNS:
            i, f, g, o = times_columns(self._recurrent, dh).chunk(4, dim=-2)
            by_input, by_forget, by_candidate, by_output = (part[t] for part in self._through)
            torch.mul(by_forget, f, out=new_c)
            new_c.addcmul_(by_input, i).addcmul_(by_candidate, g)
            torch.mul(by_output, o, out=new_h)
        else:
            torch.bmm(self._combine(t), dh, out=out)
        new_c.addcmul_(self._keep[t], dc)
        new_h.addcmul_(self._readout[t], new_c)
        return out

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent: c collects what came to h through the readout first."""
        to_c = self._to_cell(t, cotangent)
        old_h = times_columns(self._recurrent.mT, self._to_gates(t, cotangent, to_c))
        return torch.cat([old_h, self._keep[t] * to_c], dim=-2)

    def pull_drive(self, t: int, cotangent: Block) -> GateBlock:
        """Return what reaches the pre-activations of i, f, g, o; see `Linearization.pull_drive`."""
        return self._to_gates(t, cotangent, self._to_cell(t, cotangent))

    def _to_cell(self, t: int, cotangent: Block) -> Tensor:
        return cotangent[:, self._hidden :] + self._readout[t] * cotangent[:, : self._hidden]

    def _to_gates(self, t: int, cotangent: Block, to_c: Tensor) -> GateBlock:
        by_input, by_forget, by_candidate, by_output = (part[t] for part in self._through)
        to_h = cotangent[:, : self._hidden]
        return torch.cat(
            [by_input * to_c, by_forget * to_c, by_candidate * to_c, by_output * to_h], dim=-2
        )

    def factors(self, first: int, last: int, room: Tensor | None = None) -> StepFactors:
        """Return the rows of h and c that read dh, and those that keep dc; see `StepFactors`.

        What h reads of the new c is put into its rows beforehand: h' = (A + r C) dh + r f dc.
        """
        return StepFactors(
            matrix=self._row_sums.steps(first, last, room),
            read=slice(0, self._hidden),
            keep=self._kept[first:last],
            kept=slice(self._hidden, 2 * self._hidden),
        )

    @cached_property
    def _row_sums(self) -> RowSums:
        into_c = torch.cat([*self._through[:3], torch.zeros_like(self._keep)], dim=-1)
        into_h = torch.cat([self._readout * into_c[..., :3], self._through[3]], dim=-1)
        by_gate = self._recurrent.unflatten(-2, (4, self._hidden))
        return RowSums(torch.cat([into_h, into_c], dim=-2), by_gate)

    def diagonal(self) -> DiagonalSteps | None:
        """Return f and o sech^2(c_t) where the recurrent weights are all zero."""
        if torch.any(self._recurrent):
            return None
        return DiagonalSteps(keep=self.keep, readout={"h": self.readout})

    def detour(self) -> Linearization:
        """Return J_t - D_t: c keeps nothing of itself, h still reads what it kept."""
        return LSTMDetour(self)

    def rank_bound(self) -> Tensor:
        """Return H + rank(diag(through_output_t) U_o), (time, batch).

        J_t = [I, readout; 0, I] [through_output U_o, 0; A, f]: the first factor has full rank, the
        second is block triangular. Gates that h does not move leave rank H of 2H.
        """
        open_rows = torch.count_nonzero(self._through_output, dim=-1)
        return self._hidden + open_rows.minimum(torch.linalg.matrix_rank(self._by_gate[3]))

    def dense(self, t: int) -> StepJacobian:
        """Return J_t, (batch, 2 hidden, 2 hidden), rows and columns in the order h, c."""
        batch = self.keep.shape[1]
        identity = torch.eye(2 * self._hidden, dtype=self.keep.dtype, device=self.keep.device)
        tangent = identity.expand(batch, -1, -1)
        return self.push(
            t, tangent, out=torch.empty_like(tangent, memory_format=torch.contiguous_format)
        )

    def _combine(self, t: int) -> Tensor:
        """Return [through_output U_o ; sum of the rest], the (2H, H) matrix that reads dh."""
        by_input, by_forget, by_candidate, by_output = (part[t] for part in self._through)
        u_input, u_forget, u_candidate, u_output = self._by_gate
        torch.mul(by_output, u_output, out=self._combined[:, : self._hidden])
        into_c = torch.mul(by_forget, u_forget, out=self._combined[:, self._hidden :])
        into_c.addcmul_(by_input, u_input).addcmul_(by_candidate, u_candidate)
        return self._combined


class LSTMDetour(Linearization):
    """J_t - D_t of an LSTM: the new h still reads f dc through c_t, the new c does not keep it."""

    def __init__(self, whole: LSTMLinearization) -> None:
        self._whole, self.steps = whole, whole.steps
        self._hidden = whole.keep.shape[-1]
        self._kept_then_read = (whole.readout * whole.keep).unsqueeze(-1)

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return (J_t - D_t) @ tangent."""
        dc = tangent[:, self._hidden :]
        through_h = torch.cat([tangent[:, : self._hidden], torch.zeros_like(dc)], dim=-2)
        out = self._whole.push(t, through_h, out=out)
        out[:, : self._hidden].addcmul_(self._kept_then_read[t], dc)
        return out

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return (J_t - D_t)^T @ cotangent."""
        pulled = self._whole.pull(t, cotangent)
        to_h = cotangent[:, : self._hidden]
        return torch.cat([pulled[:, : self._hidden], self._kept_then_read[t] * to_h], dim=-2)

    def dense(self, t: int) -> StepJacobian:
        """Return J_t - D_t."""
        identity = torch.eye(2 * self._hidden).to(self._kept_then_read)
        return self.push(t, identity.repeat(self._kept_then_read.shape[1], 1, 1))
