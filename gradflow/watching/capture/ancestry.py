"""Which earlier call a state comes from, by the user's graph: calls leave their number on it.

The graph carries numbers alone, so that neither it nor a call lives longer for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import cast

from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

_KEY = "gradflow.watch"
_FARTHEST = 256  # nodes that are looked at: a mask, a norm, a mixture of a few states
_numbers = count(1)


def next_number() -> int:
    """Return a number that no call had before."""
    return next(_numbers)


def mark(values: Iterable[Tensor], number: int) -> None:
    """Leave a call's number on the nodes of what it answered; several watches may leave theirs."""
    for each in values:
        if each.requires_grad:
            _noted_on(get_gradient_edge(each).node).setdefault(_KEY, set()).add(number)


def nearest_calls(state: Iterable[Tensor]) -> frozenset[int]:
    """Return the numbers of the calls that a state was computed from, without what is behind them.

    >>> import torch
    >>> h = torch.ones(2, requires_grad=True) * 3.0
    >>> mark([h], 7)
    >>> sorted(nearest_calls([h * 0.5 + 1.0])), sorted(nearest_calls([h.detach()]))
    ([7], [])
    """
    found: set[int] = set()
    waiting = deque[Node](part.grad_fn for part in state if part.grad_fn is not None)
    seen = set(waiting)
    for _ in range(_FARTHEST):
        if not waiting:
            break
        node = waiting.popleft()
        numbers = _noted_on(node).get(_KEY)
        if numbers is not None:
            found |= numbers
            continue
        below = {each for each, _ in node.next_functions if each is not None} - seen
        seen |= below
        waiting += below
    return frozenset(found)


def _noted_on(node: Node) -> dict[str, set[int]]:
    return cast("dict[str, set[int]]", node.metadata)  # a property, whatever torch's stubs say
