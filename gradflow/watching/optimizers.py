"""When an update is done, and by what the loss was scaled: read from torch's optimizers."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType

import torch
from torch import nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

_FRAMES = 40


@dataclass(frozen=True)
class _Held:
    """What an optimizer holds: how many parameters, of which modules, and whether of the model."""

    count: int
    modules: frozenset[int]
    of_model: bool


class OptimizerWatch:
    """Tells of each step of an optimizer that holds one of the layers' parameters, and its end.

    Where none does (the layers are frozen), steps of those that hold another of the model's count.

    Args:
        layers: the recurrent modules.
        model: the whole model.
        before: called before a step.
        after: called after it with the optimizer, and which of the layers it holds.
        other: called when an optimizer is met that holds parameters of the model, of no layer.
        guard: calls a function with its arguments, and lets no fault of it reach the training.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        model: nn.Module,
        *,
        before: Callable[[], None],
        after: Callable[[Optimizer, frozenset[int]], None],
        other: Callable[[], None],
        guard: Callable[..., None],
    ) -> None:
        self._layers, self._model, self._guard = layers, model, guard
        self._before, self._after, self._other = before, after, other
        self._any_holds_layers = False
        self._known: weakref.WeakKeyDictionary[Optimizer, _Held] = weakref.WeakKeyDictionary()
        self._handles: list[RemovableHandle] = [
            register_optimizer_step_pre_hook(lambda each, *_: guard(self._before_step, each)),
            register_optimizer_step_post_hook(lambda each, *_: guard(self._after_step, each)),
        ]

    def _before_step(self, optimizer: Optimizer) -> None:
        if self._counts(self._held_by(optimizer)):
            self._before()

    def _after_step(self, optimizer: Optimizer) -> None:
        held = self._held_by(optimizer)
        if self._counts(held):
            self._after(optimizer, held.modules)

    def _counts(self, held: _Held) -> bool:
        return bool(held.modules) or (held.of_model and not self._any_holds_layers)

    def _held_by(self, optimizer: Optimizer) -> _Held:
        """Look through an optimizer when it is new, or has other parameters than before."""
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        known = self._known.get(optimizer)
        if known is not None and known.count == count:
            return known
        own = {id(each) for group in optimizer.param_groups for each in group["params"]}
        modules = frozenset(
            index
            for index, layer in enumerate(self._layers)
            if any(id(each) in own for each in layer.parameters())
        )
        of_model = any(id(each) in own for each in self._model.parameters())
        found = self._known[optimizer] = _Held(count, modules, of_model)
        self._any_holds_layers |= bool(modules)
        if of_model and not modules:
            self._other()
        return found

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()


def calling_scaler() -> torch.amp.GradScaler | None:
    """Return the GradScaler whose `step` called the optimizer that is stepping now, if one did.

    A scaler leaves no trace in the loss or in the gradients; but it is what calls the optimizer.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FRAMES):
        if frame is None:
            return None
        if "grad_scaler" in frame.f_code.co_filename:
            found = frame.f_locals.get("self")
            if isinstance(found, torch.amp.GradScaler):
                return found
        frame = frame.f_back
    return None
