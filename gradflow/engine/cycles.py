"""When a run repeats itself: constant input, and a state that comes back bit for bit, or rests.

From then on nothing is new: the step Jacobians repeat with the same period (1 at a fixed point;
a last bit that flips back and forth makes it 2), and powers of their product can leap ahead.

Where many units are mixed, the last bits of a fixed point never come to rest. A state that moved
by a few units of round-off in many steps, and Jacobians that moved as little, stand for the fixed
point as well as any of them: the steps that are computed one by one carry the same noise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization
from gradflow.cells.shapes import State
from gradflow.engine.trajectory import Chunk

LONGEST_PERIOD = 8
# over so many steps a state must stay within so many units of round-off of its last value
LONG_REST, FEW_UNITS = 256, 4


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


def rests(chunk: Chunk, steps: Linearization) -> bool:
    """Return whether the state moved in its last digits alone, all through a long chunk.

    Args:
        chunk: the steps, at constant input.
        steps: their Jacobians, or those of the last of them: where a slope jumps (a relu at its
            kink) the state alone would not tell that they differ.
    """
    if min(chunk.steps, steps.steps) < LONG_REST:
        return False
    unit = torch.finfo(chunk.last[0].dtype).eps
    for before, last in zip(chunk.states, chunk.last, strict=True):
        room = FEW_UNITS * unit * last.abs().clamp_min(1.0)
        if not bool(((before - last).abs() <= room).all()):
            return False
    return _same_jacobians(steps, chunk.last, tolerance=4 * FEW_UNITS * unit)


def _same_jacobians(steps: Linearization, state: State, *, tolerance: float) -> bool:
    """Return whether all step Jacobians move one random vector alike, block by block.

    A block that fades, as one that is driven by a fading state does, is seen however small it is
    beside the others.
    """
    widths = [part.shape[-1] for part in state]
    generator = torch.Generator("cpu").manual_seed(0)
    drawn = torch.randn(sum(widths), generator=generator, dtype=torch.float64, device="cpu").to(
        state[0]
    )
    probe = torch.block_diag(*(part.unsqueeze(-1) for part in drawn.split(widths)))
    probe = probe.expand(len(state[0]), -1, -1)
    images = torch.stack([steps.push(t, probe) for t in range(steps.steps)])
    for image in images.split(widths, dim=-2):
        size = torch.linalg.vector_norm(image[-1], dim=-2, keepdim=True)
        if not bool(((image - image[-1]).abs() <= tolerance * size).all()):
            return False
    return True
