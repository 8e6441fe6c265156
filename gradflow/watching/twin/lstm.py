"""The LSTM run and pulled back by its own formulas, with or without a projection.

    dL/dh_t = arriving + U^T a_{t+1}
    dL/dc_t = arriving + f_{t+1} dL/dc_{t+1} + o_t sech^2(c_t) dL/dm_t,   m_t = o_t tanh(c_t)

where a_t is the gradient at the gates' pre-activations and dL/dm_t is dL/dh_t, or P^T dL/dh_t where
h_t = P m_t. Nothing but two small products per step waits for the step before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.activations import tanh_slope
from gradflow.watching.twin.pulled import Parts, Pulled, Weights
from gradflow.watching.twin.slopes import is_near_one


class LSTMTwin:
    """An LSTM that ran along `drive` from `start`.

    Args:
        weights: of this layer and direction.
        drive: the input's share of the pre-activations, both biases included, (time, rows, 4
            hidden), in torch's row order i, f, g, o; it is written over.
        start: h and c before the first step.
    """

    def __init__(self, weights: Weights, drive: Tensor, start: Parts) -> None:
        steps, rows, _ = drive.shape
        self._weights, self._before = weights, drive
        self._start_c, self._one = start[1], drive.new_ones(())
        self._gates = torch.empty_like(drive)
        hidden = weights.recurrent.shape[0] // 4
        self._c = drive.new_empty(steps, rows, hidden)
        self._squashed = torch.empty_like(self._c)
        self._h = drive.new_empty(steps, rows, weights.recurrent.shape[1])
        self._run(start[0], start[1])

    def _run(self, h: Tensor, c: Tensor) -> None:
        recurrent, project = self._weights.recurrent.mT, self._weights.projection
        shown = None if project is None else project.mT
        rows = zip(self._before, self._gates, self._c, self._squashed, self._h, strict=True)
        for before, gates, c_new, squashed, h_new in rows:
            before.addmm_(h, recurrent)
            torch.sigmoid(before, out=gates)
            i, f, g, o = gates.chunk(4, dim=-1)
            torch.tanh(before.chunk(4, dim=-1)[2], out=g)
            torch.mul(i, g, out=c_new).addcmul_(f, c)
            torch.tanh(c_new, out=squashed)
            if shown is None:
                torch.mul(o, squashed, out=h_new)
            else:
                torch.mm(o * squashed, shown, out=h_new)
            h, c = h_new, c_new

    @property
    def states(self) -> Parts:
        """h and c after each step."""
        return self._h, self._c

    @property
    def gates(self) -> dict[str, Tensor]:
        """Input, forget and output gate."""
        i, f, _, o = self._gates.chunk(4, dim=-1)
        return {"input": i, "forget": f, "output": o}

    def pull(self, arriving: Parts) -> Pulled:
        """Pull gradients back through time; see `Twin.pull`."""
        recurrent, project = self._weights.recurrent, self._weights.projection
        forget = self._gates.chunk(4, dim=-1)[1]
        is_near_end = self._is_near_end()
        # what was before the gates is not needed again then, and memory that is known is faster
        drive = torch.empty_like(self._before) if is_near_end else self._before
        to_h, to_c = arriving
        start_h, start_c = torch.zeros_like(to_h[0]), torch.zeros_like(to_c[0])
        for t in reversed(range(len(to_h))):
            to_m = to_h[t] if project is None else to_h[t] @ project
            readout = self._slopes(t, drive[t], is_near_end=is_near_end)
            into_c = to_c[t].addcmul_(readout, to_m)
            writing, showing = drive[t].tensor_split((3 * into_c.shape[-1],), dim=-1)
            writing.unflatten(-1, (3, -1)).mul_(into_c.unsqueeze(1))
            showing.mul_(to_m)
            earlier_h, earlier_c = (to_h[t - 1], to_c[t - 1]) if t else (start_h, start_c)
            earlier_h.addmm_(drive[t], recurrent)
            earlier_c.addcmul_(forget[t], into_c)
        return Pulled((to_h, to_c), (start_h, start_c), drive)

    def readout(self) -> Tensor:
        """Return dm_t/dc_t = o sech^2(c_t), (time, rows, hidden)."""
        return self._gates.chunk(4, dim=-1)[3] * tanh_slope(self._c)

    def _is_near_end(self) -> bool:
        """Return whether any gate or squashed number is so near 1 that slopes need its argument."""
        return is_near_one(self._gates) or is_near_one(self._squashed)

    def _slopes(self, t: int, through: Tensor, *, is_near_end: bool) -> Tensor:
        """Write what a step's pre-activations do to c (o: to m); return dm_t/dc_t.

        It is done step by step, while the numbers are in the processor's cache.
        """
        i, _, g, o = self._gates[t].chunk(4, dim=-1)
        by_i, by_f, by_g, by_o = through.chunk(4, dim=-1)
        if is_near_end:
            before = self._before[t]
            torch.mul(torch.sigmoid(-before), self._gates[t], out=through)
            by_g.copy_(tanh_slope(before.chunk(4, dim=-1)[2]))
            squash = tanh_slope(self._c[t])
        else:
            torch.addcmul(self._gates[t], self._gates[t], self._gates[t], value=-1.0, out=through)
            torch.addcmul(self._one, g, g, value=-1.0, out=by_g)
            squash = torch.addcmul(self._one, self._squashed[t], self._squashed[t], value=-1.0)
        by_i.mul_(g)
        by_f.mul_(self._c[t - 1] if t else self._start_c)
        by_g.mul_(i)
        by_o.mul_(self._squashed[t])
        return squash.mul_(o)
