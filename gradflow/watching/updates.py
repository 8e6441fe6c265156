"""Which update is sampled, when it is complete, and what the loss was scaled by."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from gradflow.records.watch import FlowSample
from gradflow.watching.capture.call import Call, Slots
from gradflow.watching.capture.hooks import in_backward, is_recorded, on_arrival
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.optimizers import OptimizerWatch, calling_scaler
from gradflow.watching.unseen import Unseen
from gradflow.watching.window import Window

_LEFT_OUT = "The gradients were cleared without a step of the optimizer."
_OVERFLOWED = "Updates before this one were skipped by the GradScaler: their gradients overflowed."


class Updates:
    """Counts updates, and opens and ends a window for those that are sampled.

    An update is done when one of torch's optimizers that holds a recurrent parameter has stepped;
    others that step after it, before any layer has run again, belong to it. A loop without one is
    seen by its cleared gradients; there each backward pass is an update.

    Args:
        model: the whole model.
        watched: its recurrent modules.
        every: an update in so many is sampled.
        scaler: a GradScaler, where it is known.
        guard: see `Window`.
        emit: takes a sample.
        notes: what the first sample has to tell.
    """

    def __init__(
        self,
        model: nn.Module,
        watched: Sequence[WatchedModule],
        *,
        every: int,
        scaler: torch.amp.GradScaler | None,
        guard: Callable[..., None],
        emit: Callable[[FlowSample], None],
        notes: Sequence[str] = (),
    ) -> None:
        self.count = 0
        self.are_by_hand = False
        self.has_run = False  # any layer, since the last step of an optimizer
        self._model, self._watched, self._every = model, watched, every
        self._note_scaler(scaler)
        self._guard, self._emit = guard, emit
        self._notes = tuple(notes)
        self._gradient_came = self._overflowed = False
        self._has_stepped = self._is_stepping = False
        self._last: dict[int, tuple[Tensor, ...]] = {}
        self._stepped: weakref.ref[Optimizer] | None = None
        self._unseen = Unseen(model, watched)
        self.note_skipped = self._unseen.note_skipped
        self._optimizers = OptimizerWatch(
            [each.module for each in watched],
            model,
            before=self._before_step,
            after=self._after_step,
            other=self._unseen.look_for_replaced,
            guard=guard,
        )
        self._window: Window | None = None
        self._open_if_due()

    @property
    def is_sampling(self) -> bool:
        """Whether the present update is sampled."""
        return self._window is not None

    @property
    def remembers(self) -> bool:
        """Whether last states are kept: the next update, which is sampled, may begin with them."""
        return (self.count + 1) % self._every == 0

    def remember(self, index: int, last: tuple[Tensor, ...]) -> None:
        """Keep the last state of a call in an update that is not sampled."""
        self._last[index] = tuple(part.detach() for part in last)

    def on_call(self, index: int, call: Call, slots: Slots) -> None:
        """Take a call of a module in a forward pass that is recorded."""
        if self._window is not None and self._window.has_arrivals:
            self._after_pass(self._window)
        elif self._window is None and self.are_by_hand and self._gradient_came:
            self._next()
        if self._window is not None:
            self._window.capture(index, call, slots, self._last.get(index, ()))
            self._last[index] = call.final
        elif self.are_by_hand:
            for values in slots.values():
                if is_recorded(values):
                    on_arrival(values, self._see_gradient)

    def finish(self) -> None:
        """End the present update, as at the end of the training."""
        window = self._window
        if window is not None and window.has_arrivals:
            self._finish(window)

    def remove(self) -> None:
        """Take all hooks off."""
        self._optimizers.remove()
        self._last.clear()
        if self._window is not None:
            self._window.discard()
            self._window = None

    # ---- how an update ends

    def _note_scaler(self, scaler: torch.amp.GradScaler | None) -> None:
        """Keep the scaler; one that is switched off scales nothing and skips nothing."""
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None

    def _before_step(self) -> None:
        self._is_stepping = not in_backward()

    def _after_step(self, optimizer: Optimizer, held: frozenset[int]) -> None:
        """After the step of an optimizer that holds parameters of some modules.

        An optimizer of one parameter that steps while the backward pass runs ends no update; there
        the cleared gradients tell.
        """
        if in_backward():
            return
        self.are_by_hand = self._is_stepping = False
        self._has_stepped = True
        window, is_another = self._window, self._is_another(optimizer)
        self._stepped, self.has_run = weakref.ref(optimizer), False
        if is_another and not (window and window.has_arrivals):
            return
        if window is not None:
            self._note_scaler(calling_scaler() or self._scaler)
            if window.has_arrivals:
                window.judge_only(held)
                self._finish(window)
            else:
                self._unseen.note_empty()
        self._next()

    def _is_another(self, optimizer: Optimizer) -> bool:
        """Return whether it steps after another one of the same update."""
        last = None if self._stepped is None else self._stepped()
        return last is not None and last is not optimizer and not self.has_run

    def _after_pass(self, window: Window) -> None:
        """At a forward pass after gradients have come, without a step between."""
        if not window.norms.cleared and window.norms.any_read:
            return  # they are accumulated; the window ends the pass itself
        if self._is_stepping:  # a closure runs again: of its runs the first is the update's
            self._finish(window)
        elif self._scaler is not None or self._has_overflowed(window):
            window.discard()
            self._overflowed = True
            self._window = self._new_window()
        elif self._has_stepped:  # a loop that left a step out, as after a NaN
            window.notes[_LEFT_OUT] = None
            self._finish(window)
        else:
            self._finish(window)
            self.are_by_hand = True
            self._next()

    def _has_overflowed(self, window: Window) -> bool:
        """Return whether a scaler that was not seen yet skipped the update: float16 overflowed."""
        kinds = {p.device.type for p in self._model.parameters()}
        half = any(
            torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16
            for kind in kinds
        )
        return half and window.norms.any_read and window.norms.log10_total() is None

    def _finish(self, window: Window) -> None:
        self._window = None
        scale = float(self._scaler.get_scale()) if self._scaler is not None else None
        window.notes |= dict.fromkeys(self._notes)
        if self._overflowed:
            window.notes[_OVERFLOWED] = None
        self._overflowed = False
        self._unseen.note_sample()
        sample = window.finish(self.count, math.log10(scale) if scale else 0.0, scale)
        if sample is not None:
            self._notes = ()
            self._emit(sample)

    def _next(self) -> None:
        self.count += 1
        self._gradient_came = False
        self._open_if_due()
        if not (self.is_sampling or self.remembers):
            self._last.clear()

    def _open_if_due(self) -> None:
        if self._window is None and self.count % self._every == 0:
            self._window = self._new_window()

    def _new_window(self) -> Window:
        return Window(self._watched, list(self._model.parameters()), self._guard)

    def _see_gradient(self, _: Tensor) -> None:
        self._gradient_came = True
