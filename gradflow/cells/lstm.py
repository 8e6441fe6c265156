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
from gradflow.cells.lstm_linearization import LSTMLinearization
from gradflow.cells.protocol import Step
from gradflow.cells.recurrence import StepProduct, add_bias, room_for_run
from gradflow.cells.shapes import Drive, State
from gradflow.cells.torch_weights import copy_weights, load_torch_cell, torch_options


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

    @torch.no_grad()
    def run(self, drive: Drive, state: State) -> State:
        """Return every state of a run; see `Cell.run`."""
        product = StepProduct(self.weight_hh)
        multiply, weight = product.multiply, product.weight
        base = product.rows(add_bias(drive, self.bias_hh)).unbind(0)
        states = room_for_run(drive.shape[0], state)
        h, c = (product.rows(room).unbind(0) for room in states)
        gates, opened = torch.empty_like(base[0]), torch.empty_like(base[0])
        input_, forget, _, output = opened.chunk(4, dim=-1)
        candidate, squashed = gates.chunk(4, dim=-1)[2], torch.empty_like(c[0])
        sigmoid, tanh, mul = torch.sigmoid, torch.tanh, torch.mul
        for row, h_old, c_old, h_new, c_new in zip(base, h, c, h[1:], c[1:], strict=False):
            multiply(row, h_old, weight, out=gates)
            sigmoid(gates, out=opened)
            mul(input_, candidate.tanh_(), out=c_new).addcmul_(forget, c_old)
            mul(output, tanh(c_new, out=squashed), out=h_new)
        return states

    @torch.no_grad()
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
            self.weight_hh.detach(),
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
