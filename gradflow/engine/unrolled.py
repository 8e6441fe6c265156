"""A fused layer taken apart in time: each state is a node of the graph that a loss is traced to.

torch's fused layers do not route the recurrence through their output, so the gradient of the
output is not that of the state: without a loss on it, every step but the last reads exactly 0.
Here the same numbers come step by step, and dL/dh_t and dL/dc_t are the true ones, through time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from gradflow.cells import CellLike, State
from gradflow.cells.masking import length_mask, without_padding
from gradflow.cells.stack import output_part
from gradflow.cells.stack.state_form import pack_states, unpack_states

__all__ = ["CellTrace", "UnrolledLayer", "joined_calls", "trace_cell"]


@dataclass(frozen=True)
class CellTrace:
    """One cell's way along one call of its layer, by position in the sequence.

    `inputs` (time, batch, input) are detached; `start` is the state before the first step that is
    read, `states[t]` the state after reading position t: (batch, width) per part, nodes of the
    graph. `lengths` (batch,) are the samples' own steps, None where nothing is padded. A reversed
    cell reads each sample from its own last position to the first.
    """

    inputs: Tensor
    start: State
    states: tuple[State, ...]
    lengths: Tensor | None = None
    reverse: bool = False

    @property
    def own(self) -> Tensor:
        """Which steps are a sample's own, (time, batch), bool."""
        steps, batch = self.inputs.shape[:2]
        if self.lengths is None:
            return torch.ones(steps, batch, dtype=torch.bool, device="cpu")
        return length_mask(self.lengths.cpu(), steps)

    @property
    def before(self) -> State:
        """The state before each position was read, (time, batch, width) per part, detached."""
        after = [tuple(part.detach() for part in state) for state in self.states]
        first = tuple(part.detach() for part in self.start)
        rows = [*after[1:], first] if self.reverse else [first, *after[:-1]]
        return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))


def joined_calls(traces: Sequence[CellTrace]) -> list[CellTrace]:
    """Return traces with those joined that go on from each other: a layer called step by step.

    A call goes on where its first state is, number by number, the last one of the call before
    (detached or not). Padded and reversed calls stand for themselves.
    """
    joined: list[CellTrace] = []
    for trace in traces:
        if joined and _goes_on(joined[-1], trace):
            last = joined[-1]
            inputs = torch.cat([last.inputs, trace.inputs])
            joined[-1] = CellTrace(inputs, last.start, (*last.states, *trace.states))
        else:
            joined.append(trace)
    return joined


def _goes_on(last: CellTrace, trace: CellTrace) -> bool:
    plain = all(each.lengths is None and not each.reverse for each in (last, trace))
    alike = last.inputs.shape[1:] == trace.inputs.shape[1:]
    if not (plain and alike):
        return False
    pairs = zip(last.states[-1], trace.start, strict=True)
    return all(bool(torch.equal(end.detach(), start.detach())) for end, start in pairs)


class UnrolledLayer:
    """A layer of nn.RNN, nn.LSTM or nn.GRU, run step by step; called as the layer is.

    Takes what the layer's `forward` takes: a batch in either layout, one sequence without a batch
    axis, or a packed sequence, with or without a first state. What it visited is kept in `calls`,
    a list with the traces of all cells (in torch's order) for each call, and in `outputs` the
    output of each call, (time, batch, width), as a node of the graph.

    Args:
        cells: in torch's order: layer 0, (layer 0 reversed,) layer 1, ...
        directions: 1 or 2.
        batch_first: the layout of plain tensors.

    >>> from gradflow.cells import GRU
    >>> layer = UnrolledLayer([GRU(2, 3)], directions=1)
    >>> output, h = layer(torch.zeros(5, 1, 2))
    >>> output.shape, len(layer.calls[0][0].states)
    (torch.Size([5, 1, 3]), 5)
    """

    def __init__(
        self, cells: Sequence[CellLike], *, directions: int, batch_first: bool = False
    ) -> None:
        self.cells, self.directions, self.batch_first = tuple(cells), directions, batch_first
        self.calls: list[tuple[CellTrace, ...]] = []
        self.outputs: list[Tensor] = []

    def __call__(self, x: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        """Return the output and the last states, in the form in which the layer would."""
        if isinstance(x, PackedSequence):
            padded, lengths = pad_packed_sequence(x)
            output, last = self._run(padded, hx, lengths)
            return _packed(output, lengths, x), last
        if x.dim() == 2:
            wide = None if hx is None else _mapped(hx, lambda part: part.unsqueeze(1))
            output, last = self._run(x.unsqueeze(1), wide, None)
            return output.squeeze(1), _mapped(last, lambda part: part.squeeze(1))
        steps_first = x.transpose(0, 1) if self.batch_first else x
        output, last = self._run(steps_first, hx, None)
        return (output.transpose(0, 1) if self.batch_first else output), last

    def run(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Run over x (time, batch, input) from zero states; return the output, zero in padding."""
        return self._run(x, None, lengths)[0]

    def _run(self, x: Tensor, hx: Any, lengths: Tensor | None) -> tuple[Tensor, Any]:
        steps, batch = x.shape[:2]
        whole = lengths is None or bool((lengths == steps).all())
        own = None if whole or lengths is None else length_mask(lengths, steps).to(x.device)
        first = [cell.initial_state(batch) for cell in self.cells]
        starts = first if hx is None else unpack_states(self.cells, hx)
        below = x.to(self.cells[0].dtype)
        below = below if own is None else without_padding(below, own)
        traces: list[CellTrace] = []
        for index, cell in enumerate(self.cells):
            reverse = self.directions == 2 and index % 2 == 1
            start = tuple(_node(part.to(cell.dtype)) for part in starts[index])
            states = trace_cell(cell, below, start, own=own, reverse=reverse)
            kept = None if own is None else lengths
            traces.append(CellTrace(below.detach(), start, states, kept, reverse))
            if (index + 1) % self.directions == 0:
                below = _shown(self.cells, traces, self.directions, own)
        self.calls.append(tuple(traces))
        self.outputs.append(below)
        return below, pack_states(self.cells, tuple(map(_final, traces)))


def trace_cell(
    cell: CellLike, x: Tensor, start: State, *, own: Tensor | None, reverse: bool = False
) -> tuple[State, ...]:
    """Return the state after reading each position, by position; the graph is kept.

    Args:
        cell: any cell.
        x: (time, batch, input), with padded steps zeroed.
        start: the state before the first step that is read.
        own: which steps are a sample's own, (time, batch); a padded step leaves the state.
        reverse: read from the last position to the first.
    """
    drive = cell.drive(x).unbind()  # of an index each, the way back would fill a whole tensor
    padded = [False] * len(x) if own is None else (~own).any(dim=1).tolist()
    visited: list[State] = []
    state = start
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        new = cell.advance(drive[t], state)
        if own is not None and padded[t]:
            rows = own[t].unsqueeze(-1)
            new = tuple(torch.where(rows, n, old) for n, old in zip(new, state, strict=True))
        state = new
        visited.append(state)
    return tuple(visited[::-1] if reverse else visited)


def _final(trace: CellTrace) -> State:
    return trace.states[0 if trace.reverse else -1]


def _shown(
    cells: Sequence[CellLike], traces: Sequence[CellTrace], directions: int, own: Tensor | None
) -> Tensor:
    """Return what the last layer run so far hands on, (time, batch, width)."""
    pairs = list(zip(cells, traces, strict=False))[-directions:]
    shown = [torch.stack([s[output_part(cell)] for s in trace.states]) for cell, trace in pairs]
    output = torch.cat(shown, dim=-1)
    return output if own is None else without_padding(output, own)


def _node(part: Tensor) -> Tensor:
    """Return a first state that asks for a gradient, so that all later states are nodes."""
    return part if part.requires_grad else part.detach().clone().requires_grad_()


def _mapped(state: Any, function: Any) -> Any:
    return function(state) if isinstance(state, Tensor) else tuple(map(function, state))


def _packed(output: Tensor, lengths: Tensor, like: PackedSequence) -> PackedSequence:
    return pack_padded_sequence(output, lengths, enforce_sorted=like.sorted_indices is None)
