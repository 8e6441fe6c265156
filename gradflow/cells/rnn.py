"""The plain recurrent network of Elman (1990), with tanh or relu.

    h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)

It has no gate: nothing but the recurrent matrix and the slope of tanh decides how a gradient
fades, J_t = diag(1 - h_t^2) W_hh.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from gradflow.cells.activations import tanh_slope
from gradflow.cells.base import Cell, affine
from gradflow.cells.gates import Gate
from gradflow.cells.protocol import DiagonalSteps, Linearization, Step, StepFactors
from gradflow.cells.recurrence import StepProduct, add_bias, room_for_run, times_columns
from gradflow.cells.row_sums import take_room
from gradflow.cells.shapes import Block, Drive, GateBlock, Part, State, StepJacobian
from gradflow.cells.torch_weights import copy_weights, load_torch_cell, torch_options
from gradflow.errors import UnknownNameError, nearest_name

Nonlinearity = Literal["tanh", "relu"]


class RNN(Cell):
    """A plain RNN cell; parameters as in torch.nn.RNNCell.

    Args:
        input_size: width of x.
        hidden_size: width of h.
        nonlinearity: "tanh" or "relu".
        bias, dtype, device: as in `Cell`.

    >>> cell = RNN(3, 5)
    >>> cell.step(torch.zeros(2, 3), cell.initial_state(2))["h"].shape
    torch.Size([2, 5])
    """

    kind = "rnn"
    row_order = (("candidate", "candidate"),)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        if nonlinearity not in get_args(Nonlinearity):
            known = nearest_name(nonlinearity, get_args(Nonlinearity))
            raise UnknownNameError(f"nonlinearity {nonlinearity!r} does not exist. {known}")
        super().__init__(input_size, hidden_size, bias=bias, dtype=dtype, device=device)
        self.nonlinearity: Nonlinearity = nonlinearity

    @property
    def gates(self) -> tuple[Gate, ...]:
        """A plain RNN has no gate."""
        return ()

    def _preactivation(self, drive: Tensor, state: State) -> Tensor:
        return drive + affine(state[0], self.weight_hh, self.bias_hh)

    def compute(self, drive: Drive, state: State) -> Step:
        """Return the step from the input's share of the pre-activations, without checks."""
        activation = torch.tanh if self.nonlinearity == "tanh" else torch.relu
        h = activation(self._preactivation(drive, state))
        return Step(parts=self.parts, state=(h,), gates={}, candidate=h)

    @torch.no_grad()
    def run(self, drive: Drive, state: State) -> State:
        """Return every state of a run; see `Cell.run`."""
        product = StepProduct(self.weight_hh)
        multiply, weight = product.multiply, product.weight
        base = product.rows(add_bias(drive, self.bias_hh)).unbind(0)
        states = room_for_run(drive.shape[0], state)
        h = product.rows(states[0]).unbind(0)
        squash = torch.tanh_ if self.nonlinearity == "tanh" else torch.relu_
        for t, row in enumerate(base):
            squash(multiply(row, h[t], weight, out=h[t + 1]))
        return states

    @torch.no_grad()
    def linearize(
        self,
        drive: Drive,
        states: State,
        *,
        open_gates: bool = False,
        cut: Collection[str] = (),
    ) -> RNNLinearization:
        """Return J_t = diag(slope_t) W_hh at each state; see `Cell.linearize`."""
        preactivation = self._preactivation(drive, states)
        if self.nonlinearity == "relu":
            # torch's convention at the kink: the slope of relu at 0 is 0
            slope = (preactivation > 0).to(preactivation.dtype)
            slope = torch.where(torch.isnan(preactivation), preactivation, slope)
        elif open_gates:
            slope = torch.ones_like(preactivation)
        else:
            slope = tanh_slope(preactivation)
        return RNNLinearization(
            self.weight_hh.detach(), torch.zeros_like(slope) if "candidate" in cut else slope
        )

    @classmethod
    def from_torch(cls, module: nn.RNNCell) -> RNN:
        """Return a copy of a torch.nn.RNNCell (weights are copied, not shared)."""
        nonlinearity = cast(Nonlinearity, module.nonlinearity)
        cell = cls(
            module.input_size,
            module.hidden_size,
            nonlinearity=nonlinearity,
            **torch_options(module),
        )
        return copy_weights(module, cell)

    def to_torch(self) -> nn.RNNCell:
        """Return a torch.nn.RNNCell with a copy of the weights."""
        return load_torch_cell(nn.RNNCell, self, nonlinearity=self.nonlinearity)


class RNNLinearization(Linearization):
    """J_t = diag(slope_t) W_hh."""

    def __init__(self, recurrent: Tensor, slope: Part) -> None:
        self._recurrent, self._slope = recurrent, slope.unsqueeze(-1)
        self.steps = slope.shape[0]

    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return diag(slope_t) (W_hh @ tangent)."""
        if out is None:
            return times_columns(self._recurrent, tangent).mul_(self._slope[t])
        return torch.matmul(self._recurrent, tangent, out=out).mul_(self._slope[t])

    def pull(self, t: int, cotangent: Block) -> Block:
        """Return W_hh^T (slope_t * cotangent)."""
        return times_columns(self._recurrent.mT, self._slope[t] * cotangent)

    def pull_drive(self, t: int, cotangent: Block) -> GateBlock:
        """Return slope_t * cotangent; see `Linearization.pull_drive`."""
        return self._slope[t] * cotangent

    def factors(self, first: int, last: int, room: Tensor | None = None) -> StepFactors:
        """Return the plain matrices; see `StepFactors`."""
        slope = self._slope[first:last]
        shape = (*slope.shape[:2], *self._recurrent.shape[-2:])
        matrix = torch.mul(slope, self._recurrent, out=take_room(room, shape, like=slope))
        return StepFactors(matrix=matrix, read=slice(0, matrix.shape[-1]))

    def diagonal(self) -> DiagonalSteps | None:
        """Return zeros where W_hh is zero: then nothing of the old state is left."""
        if torch.any(self._recurrent):
            return None
        keep = self._slope.squeeze(-1) * 0.0  # a slope that is no number stays none
        return DiagonalSteps(keep=keep, readout={})

    def rank_bound(self) -> Tensor:
        """Return rank(W_hh), or the number of units whose slope is not zero, (time, batch)."""
        live = torch.count_nonzero(self._slope, dim=(-2, -1))
        return live.minimum(torch.linalg.matrix_rank(self._recurrent))

    def dense(self, t: int) -> StepJacobian:
        """Return diag(slope_t) W_hh."""
        return self._slope[t] * self._recurrent
