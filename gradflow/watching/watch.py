"""The watch below `gradflow.watch`: gradient flow through time, measured while a model trains.

How it works. Every N updates the calls of each recurrent layer are captured: copies of what they
read, and, by hooks on the graph's nodes, the gradients that arrive at their outputs and last
states. When the optimizer has stepped (torch calls hooks on every optimizer), the layers are run
again in float64 by their closed forms from what they read, with the weights that they had, and the
gradients are pulled back through time. Nothing of the training is changed, and between samples the
hooks do nothing.

The end of a backward pass need not be known: all that a replay needs is copied by the time the
last gradient has come, so it may be done at any time after, and the optimizer's step is when an
update is complete, whatever came before it (accumulated gradients, clipping, a closure). Without
torch's optimizers it is the next forward pass that finds the gradients cleared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from gradflow.errors import SettingError
from gradflow.records.watch import FlowSample
from gradflow.watching.capture.call import Call, Slots, cell_call, layer_call
from gradflow.watching.capture.hooks import Hook, LayerHook, in_backward, is_recorded, is_traced
from gradflow.watching.capture.layout import parts_of
from gradflow.watching.capture.modules import WatchedModule, watched_modules
from gradflow.watching.dropout import draws_masks
from gradflow.watching.faults import warn
from gradflow.watching.updates import Updates

Subscriber = Callable[[FlowSample], None]


class Watch:
    """A watch over a model's recurrent layers; `gradflow.watch` makes one that reports, too.

    Use it as a context manager, or call `close()` when the training is over. `samples` holds what
    was measured so far; `subscribe` calls a function with each sample as it comes.

    Args:
        model: any module; wrappers of torch.compile and parallel training are looked through.
        every: an update in so many is sampled, the first one among them.
        scaler: the GradScaler of mixed precision. It is found by itself when it steps the
            optimizer; given, its very first updates are unscaled too if they overflow.

    Raises:
        CellLoadError: the model has no recurrent layer, or is no module.
        SettingError: `every` is less than 1, or `scaler` is none.
    """

    def __init__(
        self, model: nn.Module, *, every: int = 100, scaler: torch.amp.GradScaler | None = None
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise SettingError(
                f"every counts updates from one sample to the next, so it is a whole number and "
                f"at least 1; got {every!r}."
            )
        if scaler is not None and not isinstance(scaler, torch.amp.GradScaler):
            raise SettingError(
                f"scaler is the torch.amp.GradScaler that scales the loss; got a "
                f"{type(scaler).__name__}. Leave it out: it is found when it steps the optimizer."
            )
        self.samples: list[FlowSample] = []
        self.modules, self.left_out = watched_modules(model)
        self._subscribers: list[Subscriber] = []
        self._model, self._lock = model, threading.RLock()
        self._states: dict[int, Tensor] = {}
        self._closed = False
        self._updates = Updates(
            model,
            self.modules,
            every=every,
            scaler=scaler,
            guard=self._guarded,
            emit=self._emit,
            notes=self.left_out,
        )
        self._handles: list[RemovableHandle] = []
        for index, watched in enumerate(self.modules):
            self._hang_on(index, watched)

    # ---- for the user

    def subscribe(self, callback: Subscriber) -> None:
        """Call `callback(sample)` with each sample from now on.

        One that fails is left out from then on, with a warning; the training goes on.
        """
        self._subscribers.append(callback)

    @property
    def updates(self) -> int:
        """How many updates were counted."""
        return self._updates.count

    @property
    def closed(self) -> bool:
        """Whether the watch is over."""
        return self._closed

    def close(self) -> None:
        """End the watch: what has come of an update that was sampled is measured; hooks go."""
        if not self._closed:
            self._guarded(self._updates.finish)
            self._detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:  # the update that failed is not complete
            self._detach()

    # ---- hooks

    def _hang_on(self, index: int, watched: WatchedModule) -> None:
        def before(module: nn.Module, *_: Any) -> None:
            if self._updates.is_sampling and draws_masks(module) and not is_traced():
                self._guarded(self._note_generator, index, module)

        def after(module: nn.Module, args: Any, kwargs: Mapping[str, Any], answer: Any) -> None:
            updates = self._updates
            updates.has_run = True
            if is_traced():  # a copy made here would be traced with the rest
                return
            if updates.is_sampling or updates.are_by_hand:
                self._guarded(self._capture, index, module, args, kwargs, answer)
            elif updates.remembers and torch.is_grad_enabled() and self._model.training:
                self._guarded(self._remember, index, answer)

        module = watched.module
        hook = LayerHook if watched.sort == "layer" else Hook
        self._handles += [
            module.register_forward_pre_hook(hook(before)),
            # the first of all hooks: it sees what the layer itself answers
            module.register_forward_hook(hook(after), prepend=True, with_kwargs=True),
        ]

    def _note_generator(self, index: int, module: nn.Module) -> None:
        self._states.pop(index, None)
        if all(parameter.device.type == "cpu" for parameter in module.parameters()):
            self._states[index] = torch.get_rng_state()

    def _capture(
        self, index: int, module: nn.Module, args: Any, kwargs: Mapping[str, Any], answer: Any
    ) -> None:
        state = self._states.pop(index, None)
        if not torch.is_grad_enabled() or in_backward():
            if self._model.training:  # else it is a validation
                self._updates.note_skipped("recomputed" if in_backward() else "no_grad")
            return
        if not self._model.training:
            self._updates.note_skipped("eval")
            return
        call: Call
        slots: Slots
        try:
            if isinstance(module, nn.RNNBase):
                call, slots = layer_call(module, args, kwargs, answer, state)
            else:
                call, slots = cell_call(args, kwargs, answer)
        except (TypeError, ValueError) as other:
            self._leave_out(index, other)
            return
        if any(map(is_recorded, slots.values())):
            self._updates.on_call(index, call, slots)

    def _leave_out(self, index: int, why: Exception) -> None:
        """Watch a module no longer whose calls are of another form; the others are."""
        pre, after = self._handles[2 * index : 2 * index + 2]
        pre.remove()
        after.remove()
        watched = self.modules[index]
        warn(
            f"gradflow.watch leaves out {watched.name}, whose calls are not of the form of a "
            f"{'layer' if watched.sort == 'layer' else 'cell'} of torch: {why}"
        )

    def _remember(self, index: int, answer: Any) -> None:
        is_layer = isinstance(self.modules[index].module, nn.RNNBase)
        self._updates.remember(index, parts_of(answer[1] if is_layer else answer))

    # ---- samples and faults

    def _emit(self, sample: FlowSample) -> None:
        self.samples.append(sample)
        for callback in tuple(self._subscribers):
            try:
                callback(sample)
            except Exception as fault:
                self._subscribers.remove(callback)
                warn(
                    f"what was to receive gradflow.watch's samples failed, and receives none from "
                    f"now on: {type(fault).__name__}: {fault}"
                )

    def _guarded(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do what a hook is for; whatever goes wrong ends the watch, and not the training."""
        try:
            with self._lock:
                action(*arguments)
        except Exception as fault:
            self._detach()
            warn(
                f"gradflow.watch ended by a fault of its own, and the training goes on: "
                f"{type(fault).__name__}: {fault}"
            )

    def _detach(self) -> None:
        self._closed = True
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._states.clear()
        self._updates.remove()


def watch(
    model: nn.Module, every: int = 100, *, scaler: torch.amp.GradScaler | None = None
) -> Watch:
    """Return the bare watch: it measures, and neither judges, writes nor shows anything.

    Args:
        model, every, scaler: see `Watch`.

    >>> model, x = nn.LSTM(2, 3), torch.randn(5, 4, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with watch(model, every=10) as flow:
    ...     for _ in range(20):
    ...         optimizer.zero_grad()
    ...         model(x)[0][-1].sum().backward()
    ...         _ = optimizer.step()
    >>> [sample.update for sample in flow.samples], flow.samples[0].layers[0].arrives
    ([0, 10], (0, 0))
    """
    return Watch(model, every=every, scaler=scaler)
