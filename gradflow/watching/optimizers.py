"""When an update is done, and by what the loss was scaled: read from torch's optimizers."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
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


class OptimizerWatch:
    """Tells of each step of an optimizer that holds one of the layers' parameters, and its end.

    Where none does (the layers are frozen), steps of those that hold another of the model's count.
    """

    def __init__(
        self,
        layers: Iterable[nn.Parameter],
        model: Iterable[nn.Parameter],
        *,
        before: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        self._layers, self._model = {id(each) for each in layers}, {id(each) for each in model}
        self._before, self._after, self._holds_layers = before, after, False
        self._known: weakref.WeakKeyDictionary[Optimizer, tuple[bool, bool]] = (
            weakref.WeakKeyDictionary()
        )
        self._handles: list[RemovableHandle] = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def _before_step(self, optimizer: Optimizer, *_: object) -> None:
        if self._is_ours(optimizer):
            self._before()

    def _after_step(self, optimizer: Optimizer, *_: object) -> None:
        if self._is_ours(optimizer):
            self._after()

    def _is_ours(self, optimizer: Optimizer) -> bool:
        if optimizer not in self._known:
            held = {id(each) for group in optimizer.param_groups for each in group["params"]}
            self._known[optimizer] = bool(held & self._layers), bool(held & self._model)
        layers, model = self._known[optimizer]
        self._holds_layers |= layers
        return layers or (model and not self._holds_layers)

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
