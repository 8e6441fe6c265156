"""A sampled update: from its first forward pass to the optimizer's step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from gradflow.records.watch import FlowLayer, FlowSample
from gradflow.watching.call_flow import CallFlow, flow_as_trained
from gradflow.watching.capture.call import Call, Slots
from gradflow.watching.capture.chains import Chain, Chains, Entry
from gradflow.watching.capture.hooks import is_recorded, on_arrival
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.flow_layers import flow_layer
from gradflow.watching.flow_sums import FlowSum
from gradflow.watching.own_cells import told_gates
from gradflow.watching.parameter_norms import ParameterNorms
from gradflow.watching.places import cell_places, entering_of, part_names
from gradflow.watching.replay_calls import replay_calls
from gradflow.watching.twin.weights import Tensors, forget_bias, snapshot, weights_by_cell

MOST_CALLS = 8  # of one module in an update that are told apart


@dataclass(eq=False)
class _Pass:
    """The runs of each module, from one forward pass to the next after gradients have come."""

    chains: dict[int, Chains] = field(default_factory=dict)
    weights: dict[int, Tensors] = field(default_factory=dict)
    has_arrivals: bool = False
    is_over: bool = False

    def end(self) -> dict[int, Chains]:
        """Hand the runs over; what the user's graph still holds is empty then."""
        chains, self.chains, self.is_over = self.chains, {}, True
        return chains


@dataclass(frozen=True)
class _Shape:
    """What a module's calls look like: their states' names and widths, and their precision."""

    parts: tuple[str, ...]
    widths: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class _Arrive:
    """Brings a gradient to its place; the user's graph holds it, and by it the call."""

    window: Window
    whole: _Pass
    index: int
    call: Call
    entry: Entry
    slot: str | int

    def __call__(self, gradient: Tensor) -> None:
        self.window.guard(self.window.arrive, self, gradient)


class Window:
    """What is captured and measured of one update.

    Args:
        watched: the model's recurrent modules.
        parameters: the model's, for the norm of their gradients.
        guard: calls a function with its arguments, and lets no fault of it reach the training.
    """

    def __init__(
        self,
        watched: Sequence[WatchedModule],
        parameters: Iterable[nn.Parameter],
        guard: Callable[..., None],
    ) -> None:
        self._watched, self.guard = watched, guard
        self._pass = _Pass()
        self._sums: dict[tuple[int, int], list[FlowSum]] = {}
        self._biases: dict[tuple[int, int], float | None] = {}
        self._broken: dict[int, str | None] = {}
        self._shapes: dict[int, _Shape] = {}
        self._silent: dict[int, int] = {}
        self._open = True
        self.norms = ParameterNorms(parameters)
        self.notes: dict[str, None] = {}
        self.seconds = 0.0
        self.has_arrivals = False

    # ---- while the user's forward pass runs

    def capture(self, index: int, call: Call, slots: Slots, earlier: Sequence[Tensor] = ()) -> None:
        """Note a call of a module, and hang on to its outputs.

        Args:
            index: which module.
            call, slots: the call, and its outputs by slot.
            earlier: the module's last state before this pass, where it is known.
        """
        if self._pass.has_arrivals:
            self.end_pass()
        watched = self._watched[index]
        if watched.torchs_own is None:
            call.gates = told_gates(watched, call)
        chains = self._pass.chains.setdefault(index, Chains())
        joins = call.layout.lengths is None and watched.directions == 1
        entry = chains.add(call, earlier, may_join=joins)
        self._shapes[index] = _Shape(
            part_names(watched, call),
            tuple(part.shape[-1] for part in call.final),
            str(call.precision).removeprefix("torch."),
        )
        for slot, values in slots.items():
            if is_recorded(values):
                place = _Arrive(self, self._pass, index, call, entry, slot)
                on_arrival(values, place, of_layer=watched.sort == "layer")

    # ---- while the user's backward pass runs

    def arrive(self, place: _Arrive, gradient: Tensor) -> None:
        """Take a gradient that reaches a call's output or state."""
        if not self._open:
            return
        if torch.is_grad_enabled():
            self.notes["Backward passes with create_graph=True are left out."] = None
        elif place.whole.is_over:
            self.notes[
                "A second backward pass came through a part of the graph that had been measured; "
                "it is left out."
            ] = None
        else:
            with self.timed():
                own = self._watched[place.index].torchs_own
                if own is not None and place.index not in place.whole.weights:
                    place.whole.weights[place.index] = snapshot(own)
                place.call.arrive(place.slot, gradient)
                place.entry.keep()
                place.whole.has_arrivals = self.has_arrivals = True

    # ---- afterwards

    def end_pass(self) -> None:
        """Measure what has come back, and let go of it."""
        done, self._pass = self._pass, _Pass()
        weights, done.weights = done.weights, {}
        chains = done.end()
        with self.timed(), torch.no_grad(), _without_autocast(self._watched):
            for index, runs in chains.items():
                alive = [chain for chain in runs.found if chain.has_gradient]
                if alive:
                    self._measure(index, alive, weights.get(index))
                elif done.has_arrivals:
                    longest = max(sum(e.steps for e in chain.entries) for chain in runs.found)
                    self._silent[index] = max(longest, self._silent.get(index, 0))

    def finish(
        self, update: int, log10_scale: float, loss_scale: float | None
    ) -> FlowSample | None:
        """Return the sample; None where no gradient came to any layer."""
        self.end_pass()
        with self.timed():
            layers = tuple(self._layers(log10_scale))
        norm = self.norms.log10_total()
        told = any(sums for sums in self._sums.values())
        self.discard()
        if not told:
            return None
        return FlowSample(
            update=update,
            layers=layers,
            log10_parameter_gradient_norm=None if norm is None else norm - log10_scale,
            loss_scale=loss_scale,
            seconds=self.seconds,
            notes=tuple(self.notes),
        )

    def discard(self) -> None:
        """Let go of everything."""
        self._open = False
        self._pass = _Pass()
        self.norms.remove()

    def _measure(self, index: int, alive: Sequence[Chain], tensors: Tensors | None) -> None:
        watched = self._watched[index]
        calls = {
            entry: entry.kept
            for chain in alive
            for entry in chain.entries
            if entry.kept is not None
        }
        if tensors is None:
            parts = self._shapes[index].parts
            flows = {entry: [flow_as_trained(call, parts)] for entry, call in calls.items()}
        else:
            found = replay_calls(watched, list(calls.values()), tensors)
            flows = dict(zip(calls, found, strict=True))
            self._note_weights(index, watched, tensors)
        for number, chain in enumerate(alive):
            self._add(index, number if len(alive) <= MOST_CALLS else 0, chain, flows)
        for entry in calls:
            entry.kept = None

    def _note_weights(self, index: int, watched: WatchedModule, tensors: Tensors) -> None:
        broken = [name for name, each in tensors.items() if not bool(torch.isfinite(each).all())]
        self._broken[index] = broken[0] if broken else None
        own = watched.torchs_own
        if own is not None:
            for cell, weights in enumerate(weights_by_cell(own, tensors)):
                self._biases[index, cell] = forget_bias(watched.kind, weights)

    def _add(
        self, index: int, number: int, chain: Chain, flows: Mapping[Entry, Sequence[CallFlow]]
    ) -> None:
        watched = self._watched[index]
        eps = torch.finfo(getattr(torch, self._shapes[index].dtype)).eps
        for cell in range(len(next(iter(flows.values())))):
            sums = self._sums.setdefault((index, cell), [])
            while len(sums) <= number:
                sums.append(FlowSum())
            sums[number].add_chain(
                chain,
                flows,
                cell,
                reverse=cell % watched.directions == 1,
                entering=entering_of(cell, watched.directions, eps),
            )

    def _layers(self, log10_scale: float) -> Iterator[FlowLayer]:
        for index, shape in sorted(self._shapes.items()):
            if not self._sums.get((index, 0)) and index not in self._silent:
                continue
            places = cell_places(self._watched[index], **vars(shape))
            for cell, place in enumerate(places):
                silent = [FlowSum(steps=self._silent.get(index, 0))]
                sums = self._sums.get((index, cell)) or silent
                for call, found in enumerate(sums):
                    yield flow_layer(
                        place,
                        found,
                        log10_scale=log10_scale,
                        call=call,
                        calls=len(sums),
                        forget_bias=self._biases.get((index, cell)),
                        broken_weight=self._broken.get(index),
                    )

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what is done within as the sample's cost."""
        before = time.perf_counter()
        try:
            with np.errstate(all="ignore"):  # infinities are results here
                yield
        finally:
            self.seconds += time.perf_counter() - before


@contextmanager
def _without_autocast(watched: Sequence[WatchedModule]) -> Iterator[None]:
    """Compute in the twin's own precision, whatever the user's loop is within."""
    kinds = {p.device.type for each in watched for p in each.module.parameters()}
    with ExitStack() as stack:
        for kind in kinds & {"cpu", "cuda", "xpu"}:
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield
