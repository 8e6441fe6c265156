"""The plain RNN run and pulled back: dL/dh_{t-1} = arriving + U^T (phi'_t dL/dh_t)."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.watching.twin.pulled import Parts, Pulled, Weights
from gradflow.watching.twin.slopes import tanh_slope_at


class RNNTwin:
    """A plain RNN that ran along `drive` from `start`.

    Args:
        weights: of this layer and direction.
        drive: the input's share of the pre-activations, both biases included, (time, rows,
            hidden); it is written over.
        start: h before the first step, in a tuple.
        relu: whether relu squashes, and not tanh.
    """

    def __init__(
        self, weights: Weights, drive: Tensor, start: Parts, *, relu: bool = False
    ) -> None:
        self._weights, self._before, self._relu = weights, drive, relu
        self._h = torch.empty_like(drive)
        recurrent, h = weights.recurrent.mT, start[0]
        for before, h_new in zip(drive, self._h, strict=True):
            before.addmm_(h, recurrent)
            h = torch.clamp_min(before, 0.0, out=h_new) if relu else torch.tanh(before, out=h_new)

    @property
    def states(self) -> Parts:
        """h after each step."""
        return (self._h,)

    @property
    def gates(self) -> dict[str, Tensor]:
        """A plain RNN has no gate."""
        return {}

    def pull(self, arriving: Parts) -> Pulled:
        """Pull gradients back through time; see `Twin.pull`."""
        (to_h,) = arriving
        # torch's convention at the kink: the slope of relu at 0 is 0
        if self._relu:
            slope = (self._before > 0).to(self._before)
        else:
            slope = tanh_slope_at(self._before, self._h)
        start = torch.zeros_like(to_h[0])
        for t in reversed(range(len(to_h))):
            earlier = to_h[t - 1] if t else start
            earlier.addmm_(slope[t].mul_(to_h[t]), self._weights.recurrent)
        return Pulled((to_h,), (start,), slope)
