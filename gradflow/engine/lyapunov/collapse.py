"""Why a direction collapsed: because the recurrence is built so, or because numbers ran out.

The question is asked when a direction collapses, of the steps up to then with every gate and slope
open: a rank that is missing even there is missing in the structure.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization, Recurrence
from gradflow.cells.shapes import State
from gradflow.engine.generic import step_jacobians
from gradflow.engine.patterns import pattern_of, reached_through

# Patterns are multiplied over so many steps at most: a chain of more units is not looked through.
LONGEST_CHAIN = 64
TRIED_STATES = 3


def structural_rank(
    subject: Recurrence, drive: Tensor, states: State, *, given: Linearization, last: int
) -> Tensor:
    """Return a bound on the rank of J_last ... J_0 that holds by structure alone, (batch,).

    With a closed form, from its open gates: its rank bound, and the rows that are not zero in the
    product of the patterns of the last steps. Without one, from the patterns as they are and the
    rank at random states: where a step is an analytic function its Jacobian has the greatest rank
    almost everywhere, so a rank that is missing at random states is missing everywhere.

    Args:
        subject: the cell or the function.
        drive, states: as in `Cell.linearize`.
        given: the step Jacobians at these states.
        last: the step (an index into `states`) at which the direction collapsed.
    """
    window = slice(max(0, last + 1 - LONGEST_CHAIN), last + 1)
    part = tuple(values[window] for values in states)
    opened = None
    if isinstance(subject, CellLike):
        opened = subject.linearize(drive[window], part, open_gates=True)
    if opened is None:
        patterns = [pattern_of(given.dense(t)) for t in range(window.start, window.stop)]
        return _pattern_rank(patterns).minimum(_rank_at_random(subject, drive[window], part))
    rank = _pattern_rank([pattern_of(opened.dense(t)) for t in range(opened.steps)])
    bound = opened.rank_bound()
    return rank if bound is None else rank.minimum(bound[-1])


def _pattern_rank(patterns: list[Tensor]) -> Tensor:
    """Return how many rows of the product of (batch, state, state) patterns have an entry."""
    reached = patterns[0]
    for pattern in patterns[1:]:
        reached = reached_through(pattern, reached)
    return reached.any(dim=-1).sum(dim=-1)


def _rank_at_random(subject: Recurrence, drive: Tensor, states: State) -> Tensor:
    """Return the greatest rank of the last step's Jacobian over a few random states, (batch,)."""
    generator = torch.Generator("cpu").manual_seed(0)
    ranks = []
    for _ in range(TRIED_STATES):
        drawn = tuple(
            torch.randn(part[-1:].shape, generator=generator, dtype=torch.float64, device="cpu").to(
                part
            )
            for part in states
        )
        jacobian = step_jacobians(subject, drive[-1:], drawn)[0]
        known = torch.isfinite(jacobian).flatten(1).all(dim=-1)
        rank = torch.linalg.matrix_rank(torch.nan_to_num(jacobian))
        ranks.append(torch.where(known, rank, jacobian.shape[-1]))
    return torch.stack(ranks).amax(dim=0)
