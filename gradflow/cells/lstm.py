"""The LSTM with a forget gate (Hochreiter & Schmidhuber 1997; Gers, Schmidhuber & Cummins 2000).

    i, f, o = sigmoid(W x + b + U h)          input, forget, output gate
    g       = tanh(W_g x + b_g + U_g h)       candidate
    c_t     = f * c_{t-1} + i * g             cell state: f keeps, i writes
    h_t     = o * tanh(c_t)                   hidden state: o shows

Row order i, f, g, o, and two bias vectors that add up, as in torch.nn.LSTMCell.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

from gradflow.cells.activations import sigmoid_slope, tanh_slope
from gradflow.cells.base import Cell, affine
from gradflow.cells.protocol import DiagonalSteps, Linearization, Step
from gradflow.cells.shapes import Block, Drive, Part, State, StepJacobian
from gradflow.cells.torch_weights import copy_weights, load_torch_cell, torch_options

# Below this many columns it is cheaper to multiply by all four matrices than to combine them.
FEW_COLUMNS = 8


class LSTM(Cell):
    """An LSTM cell; parameters as in torch.nn.LSTMCell, state order (h, c).

    >>> cell = LSTM(3, 5)
    >>> step = cell.step(torch.zeros(2, 3), cell.initial_state(2))
    >>> sorted(step.gates), step["c"].shape
    (['forget', 'input', 'output'], torch.Size([2, 5]))
    """

    kind = "lstm"
    parts = ("h", "c")
    kept_part = "c"
    row_order = (
        ("input", "write"),
        ("forget", "keep"),
        ("candidate", "candidate"),
        ("output", "output"),
    )

    def _preactivations(self, drive: Tensor, state: State) -> tuple[Tensor, ...]:
        return (drive + affine(state[0], self.weight_hh, self.bias_hh)).chunk(4, dim=-1)

    def compute(self, drive: Drive, state: State) -> Step:
        """Return the step from the input's share of the pre-activations, without checks."""
        input_, forget, candidate, output = self._preactivations(drive, state)
        i, f, o = torch.sigmoid(input_), torch.sigmoid(forget), torch.sigmoid(output)
        g = torch.tanh(candidate)
        c = f * state[1] + i * g
        h = o * torch.tanh(c)
        gates = {"input": i, "forget": f, "output": o}
        return Step(parts=self.parts, state=(h, c), gates=gates, candidate=g)

    def linearize(
        self,
        drive: Drive,
        states: State,
        *,
        open_gates: bool = False,
        cut: Collection[str] = (),
    ) -> LSTMLinearization:
        """Return the closed form of each step's Jacobian; see `Cell.linearize`.

        With d = the derivative with respect to the old state (dh, dc):

            dc_t = f dc + (c f' U_f + g i' U_i + i g' U_g) dh
            dh_t = o sech^2(c_t) dc_t + tanh(c_t) o' U_o dh
        """
        input_, forget, candidate, output = self._preactivations(drive, states)
        g = torch.tanh(candidate)
        c = torch.sigmoid(forget) * states[1] + torch.sigmoid(input_) * g
        gate = torch.ones_like if open_gates else torch.sigmoid
        slope = torch.ones_like if open_gates else sigmoid_slope
        squash = torch.ones_like if open_gates else tanh_slope
        through = {
            "forget": states[1] * slope(forget),
            "input": g * slope(input_),
            "candidate": gate(input_) * squash(candidate),
            "output": torch.tanh(c) * slope(output),
        }
        return LSTMLinearization(
            self.weight_hh,
            keep=gate(forget),
            readout=gate(output) * squash(c),
            **{
                f"through_{name}": torch.zeros_like(part) if name in cut else part
                for name, part in through.items()
            },
        )

    @classmethod
    def from_torch(cls, module: nn.LSTMCell) -> LSTM:
        """Return a copy of a torch.nn.LSTMCell (weights are copied, not shared)."""
        cell = cls(module.input_size, module.hidden_size, **torch_options(module))
        return copy_weights(module, cell)

    def to_torch(self) -> nn.LSTMCell:
        """Return a torch.nn.LSTMCell with a copy of the weights."""
        return load_torch_cell(nn.LSTMCell, self)


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

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent with one (2H, H) product: the gates that feed c add up first."""
        dh, dc = tangent[:, : self._hidden], tangent[:, self._hidden :]
        out = torch.empty_like(tangent) if out is None else out
        new_h, new_c = out[:, : self._hidden], out[:, self._hidden :]
        if tangent.shape[-1] < FEW_COLUMNS:
            i, f, g, o = torch.matmul(self._recurrent, dh).chunk(4, dim=-2)
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
        to_h, to_c = cotangent[:, : self._hidden], cotangent[:, self._hidden :]
        to_c = to_c + self._readout[t] * to_h
        by_input, by_forget, by_candidate, by_output = (part[t] for part in self._through)
        to_gates = torch.cat(
            [by_input * to_c, by_forget * to_c, by_candidate * to_c, by_output * to_h], dim=-2
        )
        old_h = torch.matmul(self._recurrent.mT, to_gates)
        return torch.cat([old_h, self._keep[t] * to_c], dim=-2)

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
