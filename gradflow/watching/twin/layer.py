"""A fused layer with all its levels and directions, run again and pulled back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradflow.records.watch import BrokenTensor
from gradflow.watching.twin.broken import first_broken, is_sound
from gradflow.watching.twin.gates import gate_rows
from gradflow.watching.twin.gru import GRUTwin
from gradflow.watching.twin.lstm import LSTMTwin
from gradflow.watching.twin.norms import LIFT, has_faded, lifted_where_faded, log10_norms
from gradflow.watching.twin.pulled import Parts, Pulled, Twin, Weights
from gradflow.watching.twin.rnn import RNNTwin


@dataclass(frozen=True)
class LayerForm:
    """What a layer is: lstm, gru or rnn, and the weights of its cells in torch's order."""

    kind: str
    weights: tuple[Weights, ...]
    directions: int = 1
    relu: bool = False

    @property
    def levels(self) -> int:
        """How many levels lie on each other."""
        return len(self.weights) // self.directions

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the state's parts."""
        return ("h", "c") if self.kind == "lstm" else ("h",)


@dataclass(frozen=True)
class LayerRun:
    """What a layer read, and what reached it from outside; float64, on one device.

    `x` (time, rows, input); `start` per part (cells, rows, width); `lengths` (rows,) where rows
    are padded; `masks[l]` factors on what level l reads, (time, rows, width), None where nothing is
    dropped. `output` (time, rows, width) and `final`, per part (cells, rows, width), are gradients;
    None where none came. With `c_holds_h` what reached the final c has what h of that step hands it
    (one cell, one step).
    """

    x: Tensor
    start: Parts
    lengths: Tensor | None
    masks: tuple[Tensor | None, ...]
    output: Tensor | None
    final: tuple[Tensor | None, ...]
    c_holds_h: bool = False

    def turned(self, values: Tensor) -> Tensor:
        """Return (time, rows) or (time, rows, width) turned round, each row about its own steps."""
        if self.lengths is None:
            return values.flip(0)
        steps = torch.arange(len(self.x), device=values.device).unsqueeze(1)
        index = torch.where(steps < self.lengths, self.lengths - 1 - steps, steps)
        if values.dim() == 2:
            return values.gather(0, index)
        return values.gather(0, index.unsqueeze(-1).expand_as(values))

    def rows(self, first: int, last: int) -> LayerRun:
        """Return some of the rows."""

        def of(each: Tensor | None) -> Tensor | None:
            return None if each is None else each[:, first:last]

        return LayerRun(
            x=self.x[:, first:last],
            start=tuple(part[:, first:last] for part in self.start),
            lengths=None if self.lengths is None else self.lengths[first:last],
            masks=tuple(map(of, self.masks)),
            output=of(self.output),
            final=tuple(map(of, self.final)),
            c_holds_h=self.c_holds_h,
        )


@dataclass(frozen=True)
class CellFlow:
    """One layer and direction of a run, in the order in which it reads.

    `logs` has per part log10 ||dL/d(state)|| of each row, (time, rows), on the CPU; `start` the
    gradient at the first state, per part (rows, width); `final` the last own states and `reached`
    what came to them from outside, None where nothing did; `gates` each gate's sums by row (see
    `gate_rows`). `broken` is the first tensor that is not finite, by reading step.
    """

    logs: Parts
    start: Parts
    final: Parts
    reached: tuple[Tensor | None, ...]
    gates: Mapping[str, Tensor]
    broken: BrokenTensor | None


def replay(form: LayerForm, run: LayerRun) -> list[CellFlow]:
    """Run a layer again, and pull back what reached it; one flow for each cell, torch's order.

    Norms are taken in float64. Where they come to its end (1e-308) the way back is gone again for
    2^900 times the gradient, so that a zero is a true one down to about 1e-570.
    """
    with torch.no_grad():
        twins = _run_twins(form, run)
        run = _without_share_of_h(run, twins[0])
        plain = _pull_back(form, run, twins, factor=1.0)
        logs = [tuple(map(log10_norms, pulled.states)) for pulled in plain]
        if any(has_faded(part) for parts in logs for part in parts):
            wide = _pull_back(form, run, twins, factor=LIFT)
            logs = [_lifted(*pair) for pair in zip(logs, wide, strict=True)]
        return [
            _flow(form, run, index, twins[index], (logs[index], plain[index].start))
            for index in range(len(twins))
        ]


def _lifted(logs: Parts, wide: Pulled) -> Parts:
    pairs = zip(logs, wide.states, strict=True)
    return tuple(lifted_where_faded(part, log10_norms(values)) for part, values in pairs)


def _flow(
    form: LayerForm, run: LayerRun, index: int, twin: Twin, gradients: tuple[Parts, Parts]
) -> CellFlow:
    logs, start = gradients
    final = _last(twin.states, run.lengths)
    reached = tuple(None if part is None else part[index] for part in run.final)
    broken = None
    if not is_sound(final, logs):
        read = run.x if index == 0 else None
        broken = first_broken(read, form.parts, twin.states, logs)
    return CellFlow(logs, start, final, reached, gate_rows(twin.gates, run.lengths), broken)


def _without_share_of_h(run: LayerRun, twin: Twin) -> LayerRun:
    """Return the run with the gradient of c alone, where it came with what h handed it."""
    if not (run.c_holds_h and isinstance(twin, LSTMTwin)) or any(
        part is None for part in run.final
    ):
        return run
    to_h, to_c = run.final
    assert to_h is not None
    assert to_c is not None
    return replace(run, final=(to_h, to_c - twin.readout()[-1] * to_h))


def _run_twins(form: LayerForm, run: LayerRun) -> list[Twin]:
    twins: list[Twin] = []
    below = run.x
    for level in range(form.levels):
        mask = run.masks[level]
        read = below if mask is None else below * mask
        shown = []
        for direction in range(form.directions):
            index = level * form.directions + direction
            start = tuple(part[index] for part in run.start)
            fed = run.turned(read) if direction else read
            twins.append(_twin(form, form.weights[index], fed, start))
            h = twins[-1].states[0]
            shown.append(run.turned(h) if direction else h)
        below = shown[0] if len(shown) == 1 else torch.cat(shown, dim=-1)
    return twins


def _twin(form: LayerForm, weights: Weights, read: Tensor, start: Parts) -> Twin:
    drive = torch.nn.functional.linear(read, weights.input, weights.bias)
    if form.kind == "lstm":
        return LSTMTwin(weights, drive, start)
    if form.kind == "gru":
        return GRUTwin(weights, drive, start)
    return RNNTwin(weights, drive, start, relu=form.relu)


def _pull_back(
    form: LayerForm, run: LayerRun, twins: Sequence[Twin], *, factor: float
) -> list[Pulled]:
    """Pull from the top level down; what reaches a level's input arrives at the one below."""
    found: list[Pulled] = []
    arriving = None if run.output is None else run.output * factor
    for level in reversed(range(form.levels)):
        to_input: Tensor | None = None
        for direction in reversed(range(form.directions)):
            index = level * form.directions + direction
            twin = twins[index]
            parts = tuple(torch.zeros_like(part) for part in twin.states)
            if arriving is not None:
                share = arriving.chunk(form.directions, dim=-1)[direction]
                parts[0].add_(run.turned(share) if direction else share)
            for part, final in zip(parts, run.final, strict=True):
                if final is not None:
                    _add_at_end(part, final[index] * factor, run.lengths)
            found.append(twin.pull(parts))
            if level:
                reached = found[-1].drive @ form.weights[index].input
                reached = run.turned(reached) if direction else reached
                to_input = reached if to_input is None else to_input + reached
        mask = run.masks[level]
        arriving = to_input if mask is None or to_input is None else to_input * mask
    return found[::-1]


def _add_at_end(part: Tensor, final: Tensor, lengths: Tensor | None) -> None:
    """Add what reaches the final states, at each row's own last step."""
    if lengths is None:
        part[-1].add_(final)
    else:
        part[lengths - 1, torch.arange(len(lengths), device=part.device)] += final


def _last(states: Parts, lengths: Tensor | None) -> Parts:
    if lengths is None:
        return tuple(part[-1].clone() for part in states)
    rows = torch.arange(len(lengths), device=lengths.device)
    return tuple(part[lengths - 1, rows] for part in states)
