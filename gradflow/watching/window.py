"""A sampled update: from its first forward pass to the optimizer's step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from gradflow.records.watch import FlowSample
from gradflow.watching.capture.call import Call, Slots
from gradflow.watching.capture.chains import Chains, Entry
from gradflow.watching.capture.hooks import is_recorded, on_arrival
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.measured import Measured
from gradflow.watching.own_cells import told_gates
from gradflow.watching.parameter_norms import ParameterNorms
from gradflow.watching.replay_calls import is_too_long
from gradflow.watching.twin.weights import Tensors, snapshot


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
        self._measured = Measured(watched)
        self._open = True
        self._judged = frozenset(range(len(watched)))
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
        if is_too_long(watched, call):
            self.notes[f"{watched.name} is left out: {call.steps} steps need too much memory."] = (
                None
            )
            return
        with self.timed():
            self._hang_on(index, call, slots, earlier)

    def _hang_on(self, index: int, call: Call, slots: Slots, earlier: Sequence[Tensor]) -> None:
        watched = self._watched[index]
        if watched.torchs_own is None:
            call.gates = told_gates(watched, call)
        chains = self._pass.chains.setdefault(index, Chains())
        joins = call.layout.lengths is None and watched.directions == 1
        entry = chains.add(call, earlier, may_join=joins)
        self._measured.note_call(index, call)
        for slot, values in slots.items():
            if is_recorded(values):
                place = _Arrive(self, self._pass, index, call, entry, slot)
                on_arrival(values, place, of_torch=watched.torchs_own is not None)

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
        if done.has_arrivals:
            with self.timed():
                self._measured.add_pass(chains, weights)
        for runs in chains.values():
            runs.let_go()

    def judge_only(self, modules: frozenset[int]) -> None:
        """Tell of no other module that no gradient came to it; of all where there are none.

        Networks that play against each other take turns: the step of one is none of the other's.
        """
        if modules:
            self._judged = modules

    def finish(
        self, update: int, log10_scale: float, loss_scale: float | None
    ) -> FlowSample | None:
        """Return the sample; None where no gradient came to any layer."""
        self.end_pass()
        with self.timed():
            layers = tuple(self._measured.layers(log10_scale, self._judged))
        norm = self.norms.log10_total()
        self.discard()
        if not self._measured.any_gradient:
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
        for runs in self._pass.end().values():
            runs.let_go()
        self._pass = _Pass()
        self.norms.remove()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what is done within as the sample's cost."""
        before = time.perf_counter()
        try:
            with np.errstate(all="ignore"):  # infinities are results here
                yield
        finally:
            self.seconds += time.perf_counter() - before
