"""The GRU (Cho et al. 2014), with the reset gate before or after the matrix product.

    r, z = sigmoid(W x + b + U h)                         reset, update gate
    n    = tanh(W_n x + b_in + r * (U_n h + b_hn))        candidate, reset "after" (torch, cuDNN)
    n    = tanh(W_n x + b_in + U_n (r * h) + b_hn)        candidate, reset "before" (textbooks)
    h_t  = z * h_{t-1} + (1 - z) * n                      z keeps

Row order r, z, n and two bias vectors, as in torch.nn.GRUCell. Several papers swap the roles of z
and 1 - z: `swap_update_convention_` goes from one to the other by negating the rows of z.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gradflow.cells.activations import sigmoid_slope, tanh_slope
from gradflow.cells.base import Cell, affine
from gradflow.cells.gru_linearization import AfterLinearization, BeforeLinearization
from gradflow.cells.protocol import Linearization, Step
from gradflow.cells.recurrence import StepProduct, room_for_run, run_by_steps
from gradflow.cells.shapes import Drive, State
from gradflow.cells.torch_weights import copy_weights, load_torch_cell, torch_options
from gradflow.errors import UnknownNameError, nearest_name

Reset = Literal["before", "after"]


class GRU(Cell):
    """A GRU cell; parameters as in torch.nn.GRUCell, z the keep gate.

    Args:
        input_size: width of x.
        hidden_size: width of h.
        reset: "after" (torch) or "before" the recurrent product of the candidate.
        bias, dtype, device: as in `Cell`.

    >>> cell = GRU(3, 5, reset="before")
    >>> sorted(cell.step(torch.zeros(2, 3), cell.initial_state(2)).gates)
    ['reset', 'update']
    """

    kind = "gru"
    row_order = (("reset", "reset"), ("update", "keep"), ("candidate", "candidate"))

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        reset: Reset = "after",
        bias: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        if reset not in get_args(Reset):
            known = nearest_name(reset, get_args(Reset))
            raise UnknownNameError(f"the reset place {reset!r} does not exist. {known}")
        super().__init__(input_size, hidden_size, bias=bias, dtype=dtype, device=device)
        self.reset: Reset = reset

    def _preactivations(self, drive: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the pre-activations of r, z and n, and what r multiplied by the recurrence."""
        size = 2 * self.hidden_size
        if self.reset == "after":
            recurrent = affine(h, self.weight_hh, self.bias_hh)
            r, z = (drive[..., :size] + recurrent[..., :size]).chunk(2, dim=-1)
            gated = recurrent[..., size:]
            return r, z, drive[..., size:] + torch.sigmoid(r) * gated, gated
        bias = (
            (None, None)
            if self.bias_hh is None
            else (self.bias_hh[..., :size], self.bias_hh[..., size:])
        )
        recurrent = affine(h, self.weight_hh[..., :size, :], bias[0])
        r, z = (drive[..., :size] + recurrent).chunk(2, dim=-1)
        product = affine(torch.sigmoid(r) * h, self.weight_hh[..., size:, :], bias[1])
        return r, z, drive[..., size:] + product, h

    def compute(self, drive: Drive, state: State) -> Step:
        """Return the step from the input's share of the pre-activations, without checks."""
        reset, update, candidate, _ = self._preactivations(drive, state[0])
        r, z, n = torch.sigmoid(reset), torch.sigmoid(update), torch.tanh(candidate)
        # sigmoid(-a) is 1 - z without cancellation
        h = z * state[0] + torch.sigmoid(-update) * n
        return Step(parts=self.parts, state=(h,), gates={"reset": r, "update": z}, candidate=n)

    @torch.no_grad()
    def run(self, drive: Drive, state: State) -> State:
        """Return every state of a run; see `Cell.run`."""
        if self.reset == "before":
            return run_by_steps(self, drive, state)
        product = StepProduct(self.weight_hh)
        multiply, weight = product.multiply, product.weight
        size = 2 * self.hidden_size
        base = product.rows(self._bases(drive)).unbind(0)
        driven = product.rows(drive[..., size:]).unbind(0)
        states = room_for_run(drive.shape[0], state)
        h = product.rows(states[0]).unbind(0)
        gates = torch.empty_like(base[0])
        reset_update, gated = gates[..., :size], gates[..., size:]
        reset, update = reset_update.chunk(2, dim=-1)
        write, candidate = torch.empty_like(h[0]), torch.empty_like(h[0])
        for t, row in enumerate(base):
            multiply(row, h[t], weight, out=gates)
            torch.neg(update, out=write).sigmoid_()
            reset_update.sigmoid_()
            torch.addcmul(driven[t], reset, gated, out=candidate)
            torch.mul(write, candidate.tanh_(), out=h[t + 1]).addcmul_(update, h[t])
        return states

    def _bases(self, drive: Drive) -> Tensor:
        """Return what is known of r, z and U_n h + b_hn before the state is."""
        known = drive.clone() if drive.stride(0) else drive[:1].clone()
        known[..., 2 * self.hidden_size :] = 0.0
        base = known if self.bias_hh is None else known + self.bias_hh
        return base.expand_as(drive)

    @torch.no_grad()
    def linearize(
        self,
        drive: Drive,
        states: State,
        *,
        open_gates: bool = False,
        cut: Collection[str] = (),
    ) -> Linearization:
        """Return the closed form of each step's Jacobian; see `Cell.linearize`.

        With a' the slope of a gate and n' = (1 - z) sech^2(n's pre-activation):

            after:  dh_t = z dh + (h - n) z' U_z dh + n' [r U_n dh + (U_n h + b_hn) r' U_r dh]
            before: dh_t = z dh + (h - n) z' U_z dh + n' U_n [r dh + h r' U_r dh]
        """
        h = states[0]
        reset, update, candidate, gated = self._preactivations(drive, h)
        gate = torch.ones_like if open_gates else torch.sigmoid
        slope = torch.ones_like if open_gates else sigmoid_slope
        squash = torch.ones_like if open_gates else tanh_slope
        form = AfterLinearization if self.reset == "after" else BeforeLinearization
        through = {
            "update": (h - torch.tanh(candidate)) * slope(update),
            "candidate": gate(-update) * squash(candidate),
            "reset": gated * slope(reset),
        }
        return form(
            self.weight_hh.detach(),
            keep=gate(update),
            reset=gate(reset),
            **{
                f"through_{name}": torch.zeros_like(part) if name in cut else part
                for name, part in through.items()
            },
        )

    def swap_update_convention_(self) -> GRU:
        """Negate the rows of z in place, so that z becomes 1 - z.

        Weights written for the other convention (1 - z keeps) then give the same network here.
        Doing it twice changes nothing.
        """
        rows = self.rows("update")
        with torch.no_grad():
            for weight in (self.weight_ih, self.weight_hh):
                weight[..., rows, :] *= -1
            for bias in (self.bias_ih, self.bias_hh):
                if bias is not None:
                    bias[..., rows] *= -1
        return self

    @classmethod
    def from_torch(cls, module: nn.GRUCell) -> GRU:
        """Return a copy of a torch.nn.GRUCell (weights are copied, not shared)."""
        cell = cls(module.input_size, module.hidden_size, **torch_options(module))
        return copy_weights(module, cell)

    def to_torch(self) -> nn.GRUCell:
        """Return a torch.nn.GRUCell with a copy of the weights.

        Raises:
            UnknownNameError: the reset gate acts before the product, which torch does not have.
        """
        if self.reset == "before":
            raise UnknownNameError(
                "torch has no GRU with the reset gate before the matrix product, so this cell has "
                "no torch twin. Use GRU(..., reset='after'), or keep this one."
            )
        return load_torch_cell(nn.GRUCell, self)
