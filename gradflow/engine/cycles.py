"""When a run repeats itself: constant input, and a state that comes back bit for bit.

From then on nothing is new: the step Jacobians repeat with the same period (1 at a fixed point;
a last bit that flips back and forth makes it 2), and powers of their product can leap ahead.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.engine.trajectory import Chunk

LONGEST_PERIOD = 8


def constant_from(x: Tensor) -> int:
    """Return the step (from 0) from which the input (time, batch, input) stays the same.

    >>> constant_from(torch.tensor([1.0, 2.0, 3.0, 3.0]).reshape(4, 1, 1))
    2
    """
    if x.shape[0] < 2 or x.stride(0) == 0:
        return 0
    changes = torch.nonzero((x[1:] != x[:-1]).flatten(1).any(dim=1))
    return int(changes[-1]) + 1 if len(changes) else 0


def period_of(chunk: Chunk) -> int | None:
    """Return how many steps before the end of the chunk its last state was there before, or None.

    The states of all batch rows must come back at once.
    """
    count = min(LONGEST_PERIOD, chunk.steps)
    same = torch.ones(count, dtype=torch.bool, device=chunk.last[0].device)
    for before, last in zip(chunk.states, chunk.last, strict=True):
        same &= (before[-count:] == last).flatten(1).all(dim=1)
    found = torch.nonzero(same)
    return count - int(found[-1]) if len(found) else None
