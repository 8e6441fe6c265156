"""What a twin of one layer and direction is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

Parts = tuple[Tensor, ...]  # h, or (h, c)


@dataclass(frozen=True)
class Weights:
    """The weights of one layer and direction; a bias is the sum of torch's two, but for a GRU.

    `input` (gates, input), `recurrent` (gates, hidden), `bias` (gates,) and, for the GRU whose
    reset gate multiplies it, `recurrent_bias`; `projection` (shown, hidden) of an LSTM that has it.
    """

    input: Tensor
    recurrent: Tensor
    bias: Tensor | None
    recurrent_bias: Tensor | None = None
    projection: Tensor | None = None


@dataclass(frozen=True)
class Pulled:
    """The gradient of a loss along one run.

    `states` holds per part dL/d(state after step t), (time, rows, width); `start` the same of the
    state before the first step, (rows, width); `drive` that of what the input adds to the gates,
    (time, rows, gates): `drive @ weights.input` is what reaches the input.
    """

    states: Parts
    start: Parts
    drive: Tensor


class Twin(Protocol):
    """One layer and direction that has run, in the order in which it reads."""

    @property
    def states(self) -> Parts:
        """The state after each step, (time, rows, width) per part."""

    @property
    def gates(self) -> Mapping[str, Tensor]:
        """Each gate's values, (time, rows, hidden)."""

    def pull(self, arriving: Parts) -> Pulled:
        """Pull gradients back through time.

        Args:
            arriving: what reaches each state from outside the recurrence, (time, rows, width) per
                part; it is written over, and becomes `Pulled.states`.
        """
