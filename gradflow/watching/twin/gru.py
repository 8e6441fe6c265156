"""torch's GRU (reset gate after the product) run and pulled back by its own formulas.

    dL/dh_{t-1} = arriving + z dL/dh_t + U^T [a_r, a_z, r a_n]

with a the gradients at the pre-activations: a_n = (1 - z) n' dL/dh_t,
a_z = (h_{t-1} - n) z' dL/dh_t and a_r = (U_n h_{t-1} + b_hn) r' a_n.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.watching.twin.pulled import Parts, Pulled, Weights
from gradflow.watching.twin.slopes import sigmoid_slope_at, tanh_slope_at


class GRUTwin:
    """A GRU that ran along `drive` from `start`.

    Args:
        weights: of this layer and direction; `recurrent_bias` is the candidate's own, (hidden,).
        drive: the input's share of the pre-activations of r, z and n, with all biases but that
            one, (time, rows, 3 hidden); it is written over.
        start: h before the first step, in a tuple.
    """

    def __init__(self, weights: Weights, drive: Tensor, start: Parts) -> None:
        steps, rows, width = drive.shape
        self._weights, self._before, self._start = weights, drive, start[0]
        self._opened = drive.new_empty(steps, rows, 2 * width // 3)
        self._gated, self._candidate, self._h = drive.new_empty(3, steps, rows, width // 3).unbind()
        self._run(start[0])

    def _run(self, h: Tensor) -> None:
        size = 2 * h.shape[-1]
        gates, inner = (part.mT for part in self._weights.recurrent.tensor_split((size,)))
        bias = self._weights.recurrent_bias
        for t, before in enumerate(self._before):
            both, last = before[..., :size], before[..., size:]
            torch.sigmoid(both.addmm_(h, gates), out=self._opened[t])
            torch.mm(h, inner, out=self._gated[t])
            if bias is not None:
                self._gated[t].add_(bias)
            r, z = self._opened[t].chunk(2, dim=-1)
            torch.tanh(last.addcmul_(r, self._gated[t]), out=self._candidate[t])
            # sigmoid(-a) is 1 - z without cancellation
            write = torch.sigmoid(-both.chunk(2, dim=-1)[1])
            h = torch.mul(write, self._candidate[t], out=self._h[t]).addcmul_(z, h)

    @property
    def states(self) -> Parts:
        """h after each step."""
        return (self._h,)

    @property
    def gates(self) -> dict[str, Tensor]:
        """Reset and update gate; the update gate keeps."""
        r, z = self._opened.chunk(2, dim=-1)
        return {"reset": r, "update": z}

    def pull(self, arriving: Parts) -> Pulled:
        """Pull gradients back through time; see `Twin.pull`."""
        (to_h,) = arriving
        reset, update = self._opened.chunk(2, dim=-1)
        by_reset, by_update, by_candidate = self._slopes()
        drive = torch.empty_like(self._before)
        start = torch.zeros_like(to_h[0])
        recurrent, size = self._weights.recurrent, 2 * to_h.shape[-1]
        for t in reversed(range(len(to_h))):
            to_reset, to_update, to_candidate = drive[t].chunk(3, dim=-1)
            torch.mul(by_candidate[t], to_h[t], out=to_candidate)
            torch.mul(by_update[t], to_h[t], out=to_update)
            torch.mul(by_reset[t], to_candidate, out=to_reset)
            earlier = to_h[t - 1] if t else start
            earlier.addmm_(drive[t, :, :size], recurrent[:size])
            earlier.addmm_(reset[t] * to_candidate, recurrent[size:])
            earlier.addcmul_(update[t], to_h[t])
        return Pulled((to_h,), (start,), drive)

    def _slopes(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return what moves r's, z's and n's pre-activation, per unit of what comes after them."""
        reset, update, candidate = self._before.chunk(3, dim=-1)
        r, z = self._opened.chunk(2, dim=-1)
        old = torch.cat([self._start.unsqueeze(0), self._h[:-1]])
        by_reset = self._gated * sigmoid_slope_at(reset, r)
        by_update = (old - self._candidate) * sigmoid_slope_at(update, z)
        return (
            by_reset,
            by_update,
            torch.sigmoid(-update) * tanh_slope_at(candidate, self._candidate),
        )
