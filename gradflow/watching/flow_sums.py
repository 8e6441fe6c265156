"""The profile of one cell over an update: its runs added up by distance from their ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gradflow.records.base import FloatArray
from gradflow.records.watch import BrokenTensor
from gradflow.watching.call_flow import CallFlow
from gradflow.watching.capture.chains import Chain, Entry, Link
from gradflow.watching.twin.gates import GateSums
from gradflow.watching.twin.norms import log10_norms

LN10 = math.log(10.0)
Flows = Mapping[Entry, Sequence[CallFlow]]  # of the calls to which something arrived, by cell
Entering = Callable[[Sequence[CallFlow], Sequence[CallFlow] | None], bool | None]


@dataclass
class FlowSum:
    """One cell's runs over the passes of an update.

    `squares[part]` is ln of the sum of squared gradient norms by distance, `counts` how many rows
    have a step there. `came` is like a part's squares, of what came from outside; None once some of
    it is not known. `cut` and `whole` are the longest runs that begin with a state without its
    graph, and those that do not; `steps` is the longest of all with what lies before a cut.
    `together` counts the runs of a pass that are not told apart.
    """

    squares: list[FloatArray] = field(default_factory=list)
    counts: FloatArray = field(default_factory=lambda: np.zeros(0))
    steps: int = 0
    cut: int = 0
    whole: int = 0
    arrives: tuple[int, int] | None = None
    came: FloatArray | None = field(default_factory=lambda: np.zeros(0))
    gates: dict[str, GateSums] = field(default_factory=dict)
    broken: BrokenTensor | None = None
    gap: float | None = None
    padded: bool = False
    together: int = 1

    def add_chain(
        self, chain: Chain, flows: Flows, cell: int, *, reverse: bool, entering: Entering
    ) -> None:
        """Add one run of calls.

        Args:
            chain: the run.
            flows: what came of its calls.
            cell: which of the module's cells.
            reverse: whether it reads from the last position.
            entering: tells of a call and of the one that goes on from it (None at the end) whether
                a gradient came to its last state from outside the run; None where nobody knows.
        """
        dead, before = 0, 0
        for segment in chain.segments():
            length = sum(entry.steps for entry in segment)
            if any(entry in flows for entry in segment):
                self._add_segment(segment, flows, cell, entering=entering)
                self._note_length(length, dead, is_cut=segment[0].link is Link.CUT)
                dead = 0
            else:
                dead += length
            for entry in segment:
                if entry in flows:
                    self._note_fault(flows[entry][cell], before, reverse=reverse)
                before += entry.steps

    def _add_segment(
        self, segment: Sequence[Entry], flows: Flows, cell: int, *, entering: Entering
    ) -> None:
        after, following = 0, None
        for entry in reversed(segment):
            found = flows.get(entry)
            if found is not None:
                self._add_call(found[cell], after)
                comes = entering(found, following)
                if comes is not False:
                    self._add_final(found[cell], after, is_all=comes and following is None)
                if comes:
                    self._note_entry(after, after)
                elif comes is None:
                    self._note_entry(after if self.arrives is None else self.arrives[0], after)
            after, following = after + entry.steps, found

    def _add_call(self, flow: CallFlow, after: int) -> None:
        distance = _distances(flow) + after
        own = distance >= after
        size = after + flow.steps
        for part, logs in enumerate(flow.logs):
            found = _log_squares(distance[own], logs.numpy()[own], size)
            if part == len(self.squares):
                self.squares.append(np.full(0, -math.inf))
            self.squares[part] = _added(self.squares[part], found)
        counts = np.bincount(distance[own], minlength=size).astype(np.float64)
        self.counts = _longer(self.counts, len(counts), 0.0) + _longer(counts, len(self.counts), 0)
        if flow.came is None:
            self.came = None
        elif self.came is not None:
            self.came = _added(self.came, _log_squares(distance[own], flow.came.numpy()[own], size))
        entered = distance[flow.entered.numpy() & own]
        if len(entered):
            self._note_entry(int(entered.min()), int(entered.max()))
        for name, rows in flow.gates.items():
            self.gates[name] = self.gates.get(name, GateSums()).with_rows(rows)
        if flow.gap is not None:
            self.gap = max(flow.gap, self.gap or 0.0)
        self.padded |= flow.lengths is not None

    def _add_final(self, flow: CallFlow, after: int, *, is_all: bool | None) -> None:
        """Add what came to the last states, where all that stands there came from outside."""
        if not is_all:
            self.came = None
        elif self.came is not None:
            parts = [part.reshape(1, -1) for part in flow.final if part is not None]
            found = np.array([2.0 * LN10 * float(log10_norms(part)) for part in parts])
            whole = np.full(after + 1, -math.inf)
            whole[after] = np.logaddexp.reduce(found) if len(found) else -math.inf
            self.came = _added(self.came, whole)

    def _note_entry(self, least: int, greatest: int) -> None:
        low, high = self.arrives or (least, greatest)
        self.arrives = (min(low, least), max(high, greatest))

    def _note_length(self, length: int, dead: int, *, is_cut: bool) -> None:
        self.steps = max(self.steps, length + dead)
        if is_cut:
            self.cut = max(self.cut, length)
        else:
            self.whole = max(self.whole, length)

    def _note_fault(self, flow: CallFlow, before: int, *, reverse: bool) -> None:
        """Keep the first state that is not finite, else the last gradient: where each begins."""
        found = flow.broken
        if found is None:
            return
        step = before + (flow.steps - 1 - found.step if reverse else found.step)
        known = self.broken
        if known is None or ("dL" in known.tensor and step >= known.step):
            self.broken = BrokenTensor(found.tensor, step)

    @property
    def cut_at(self) -> int | None:
        """The distance from which on nothing can come, because the graph ends there."""
        return self.cut if self.cut and self.cut >= self.whole else None


def _distances(flow: CallFlow) -> NDArray[np.int64]:
    """Return each row's steps to its own end, (time, rows); negative in padding."""
    steps, rows = flow.logs[0].shape
    ends: Tensor | None = flow.lengths
    lengths = np.full(rows, steps) if ends is None else ends.numpy()
    found: NDArray[np.int64] = lengths - 1 - np.arange(steps)[:, np.newaxis]
    return found


def _log_squares(distance: NDArray[np.int64], log10: FloatArray, size: int) -> FloatArray:
    """Return ln of the sum over rows of 10^(2 log10), by distance."""
    logs = 2.0 * LN10 * log10
    top = np.full(size, -math.inf)
    np.maximum.at(top, distance, logs)
    base = np.where(np.isfinite(top), top, 0.0)
    total = np.zeros(size)
    with np.errstate(invalid="ignore", over="ignore"):
        np.add.at(total, distance, np.exp(logs - base[distance]))
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(total) + base
    return found


def _added(one: FloatArray, other: FloatArray) -> FloatArray:
    size = max(len(one), len(other))
    with np.errstate(invalid="ignore"):
        found: FloatArray = np.logaddexp(
            _longer(one, size, -math.inf), _longer(other, size, -math.inf)
        )
    return found


def _longer(values: FloatArray, size: int, filling: float) -> FloatArray:
    if len(values) >= size:
        return values
    return np.concatenate([values, np.full(size - len(values), filling)])
