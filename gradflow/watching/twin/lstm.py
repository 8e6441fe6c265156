"""The LSTM run and pulled back by its own formulas, with or without a projection.

    dL/dh_t = arriving + U^T a_{t+1}
    dL/dc_t = arriving + f_{t+1} dL/dc_{t+1} + o_t sech^2(c_t) dL/dm_t,   m_t = o_t tanh(c_t)

where a_t is the gradient at the gates' pre-activations and dL/dm_t is dL/dh_t, or P^T dL/dh_t where
h_t = P m_t. Nothing but two small products per step waits for the step before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.watching.twin.pulled import Parts, Pulled, Weights
from gradflow.watching.twin.slopes import sigmoid_slope_at, tanh_slope_at


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
        self._start_c = start[1]
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
        through, readout = self._slopes()
        forget = self._gates.chunk(4, dim=-1)[1]
        to_h, to_c = arriving
        start_h, start_c = torch.zeros_like(to_h[0]), torch.zeros_like(to_c[0])
        for t in reversed(range(len(to_h))):
            to_m = to_h[t] if project is None else to_h[t] @ project
            into_c = to_c[t].addcmul_(readout[t], to_m)
            writing, showing = through[t].tensor_split((3 * into_c.shape[-1],), dim=-1)
            writing.unflatten(-1, (3, -1)).mul_(into_c.unsqueeze(1))
            showing.mul_(to_m)
            earlier_h, earlier_c = (to_h[t - 1], to_c[t - 1]) if t else (start_h, start_c)
            earlier_h.addmm_(through[t], recurrent)
            earlier_c.addcmul_(forget[t], into_c)
        return Pulled((to_h, to_c), (start_h, start_c), through)

    def readout(self) -> Tensor:
        """Return dm_t/dc_t = o sech^2(c_t), (time, rows, hidden)."""
        o = self._gates.chunk(4, dim=-1)[3]
        return o * tanh_slope_at(self._c, self._squashed)

    def _slopes(self) -> tuple[Tensor, Tensor]:
        """Return what each gate's pre-activation does to c (o: to m), and dm_t/dc_t."""
        i, f, g, o = self._gates.chunk(4, dim=-1)
        before = self._before.chunk(4, dim=-1)
        through = torch.empty_like(self._before)
        by_i, by_f, by_g, by_o = through.chunk(4, dim=-1)
        old = torch.cat([self._start_c.unsqueeze(0), self._c[:-1]])
        torch.mul(g, sigmoid_slope_at(before[0], i), out=by_i)
        torch.mul(old, sigmoid_slope_at(before[1], f), out=by_f)
        torch.mul(i, tanh_slope_at(before[2], g), out=by_g)
        torch.mul(self._squashed, sigmoid_slope_at(before[3], o), out=by_o)
        return through, self.readout()
