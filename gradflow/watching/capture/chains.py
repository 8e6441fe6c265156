"""How the calls of one module within a pass hang together: a layer called step by step is one run.

A call goes on from an earlier one where its first state is, number by number, the last one of that
call, or, for a single step, was computed from it in the user's graph (a mask, a norm). Where the
graph goes along, gradients do; where it does not (`detach`), the run is cut there. A state of the
update before that goes on without its graph is a cut, too: truncated backpropagation.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import Tensor

from gradflow.watching.capture.call import Call

_MOST_TAILS = 8  # of runs that are looked through for the one that goes on


class Link(Enum):
    """What a call's first state is: new, the state before with its graph, or without it."""

    FRESH = "fresh"
    JOINED = "joined"
    CUT = "cut"  # a state goes on without its graph


@dataclass(eq=False)
class Entry:
    """A call's place in a run. The call itself lives with the user's graph until something arrives.

    So a pass without a backward one, such as a validation that forgot `no_grad`, keeps nothing.
    """

    steps: int
    link: Link
    own: weakref.ref[Call]
    kept: Call | None = None

    def keep(self) -> None:
        """Hold the call from now on."""
        self.kept = self.own()


@dataclass(eq=False)
class Chain:
    """Calls that go on from each other; `tail` is the last state, `number` the last call's."""

    entries: list[Entry]
    tail: tuple[Tensor, ...]
    number: int

    @property
    def has_gradient(self) -> bool:
        """Whether anything came back to one of the calls."""
        return any(entry.kept is not None for entry in self.entries)

    def segments(self) -> list[list[Entry]]:
        """Return the entries between cuts."""
        found: list[list[Entry]] = []
        for entry in self.entries:
            if not found or entry.link is Link.CUT:
                found.append([])
            found[-1].append(entry)
        return found


@dataclass(eq=False)
class Chains:
    """The runs of one module in one pass, in the order in which they began."""

    found: list[Chain] = field(default_factory=list)

    def let_go(self) -> None:
        """Give up what the calls have copied."""
        for chain in self.found:
            for entry in chain.entries:
                call, entry.kept = entry.own(), None
                if call is not None:
                    call.let_go()

    def add(self, call: Call, earlier: Sequence[Tensor], *, may_join: bool) -> Entry:
        """Put a call into its run; return its entry.

        Args:
            call: the new one.
            earlier: the module's last state before this pass, empty where nobody knows.
            may_join: False for padded calls and for those that read both ways.
        """
        start = () if _is_zero(call.start) else call.start
        before = self._before(start, call) if may_join and start else None
        link = Link.FRESH
        if start and not call.carries_graph:
            carried = before is not None or _goes_on(earlier, start)
            link = Link.CUT if carried else Link.FRESH
        elif before is not None:
            link = Link.JOINED
        entry = Entry(call.steps, link, weakref.ref(call))
        if before is None:
            self.found.append(Chain([entry], call.final, call.number))
        else:
            before.entries.append(entry)
            before.tail, before.number = call.final, call.number
        return entry

    def _before(self, start: tuple[Tensor, ...], call: Call) -> Chain | None:
        """Return the run that the call goes on from."""
        tails = self.found[-_MOST_TAILS:]
        for chain in reversed(tails):
            if _same(chain.tail, start):
                return chain
        # the loop may have changed the state between two steps, as by a mask or a norm
        return next((each for each in reversed(tails) if each.number in call.follows), None)


def _same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return len(one) == len(other) > 0 and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
        for a, b in zip(one, other, strict=True)
    )


def _goes_on(earlier: Sequence[Tensor], start: Sequence[Tensor]) -> bool:
    """Return whether a row of the first state is the same row of an earlier last one, and not zero.

    Loops reset the rows whose sequence ended, and go on with the others.
    """
    alike = len(earlier) == len(start) and all(
        one.shape == other.shape for one, other in zip(earlier, start, strict=True)
    )
    if not alike or not start:
        return False
    rows = [(a.to(b) == b).all(dim=-1) for a, b in zip(earlier, start, strict=True)]
    live = [part.any(dim=-1) for part in start]
    return bool((torch.stack(rows).all(dim=0) & torch.stack(live).any(dim=0)).any())


def _is_zero(parts: Sequence[Tensor]) -> bool:
    return not any(bool(part.any()) for part in parts)
