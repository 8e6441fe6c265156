"""Where no gradient comes to any layer: that is told once, with what may be the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torch import nn

from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.faults import warn

_PATIENCE = 2  # updates without a gradient in any layer, until that is told


class Unseen:
    """Counts updates in which nothing was seen, and warns once.

    Args:
        model: the whole model.
        watched: its recurrent modules.
    """

    def __init__(self, model: nn.Module, watched: Sequence[WatchedModule]) -> None:
        self._model, self._watched = model, watched
        self._skipped: Counter[str] = Counter()
        self._empty = 0
        self._was_told = False

    def note_skipped(self, why: str) -> None:
        """Count a call that is not of the training: "recomputed", "eval" or "no_grad"."""
        self._skipped[why] += 1

    def note_sample(self) -> None:
        """Begin to count again: something was seen."""
        self._empty = 0

    def note_empty(self) -> None:
        """Count an update in which nothing was."""
        self._empty += 1
        if self._empty >= _PATIENCE:
            self._tell([each.name for each in self._watched], self._why())

    def look_for_replaced(self) -> None:
        """Tell of layers that are no longer part of the model."""
        replaced = self._replaced()
        if replaced:
            self._tell(replaced, _REPLACED)

    def _tell(self, names: Sequence[str], why: str) -> None:
        if not self._was_told:
            self._was_told = True
            warn(f"gradflow.watch sees no gradient in {', '.join(names)}: {why}")

    def _replaced(self) -> list[str]:
        present = {id(module) for module in self._model.modules()}
        return [each.name for each in self._watched if id(each.module) not in present]

    def _why(self) -> str:
        if self._replaced():
            return _REPLACED
        if self._skipped["recomputed"]:
            return (
                "the layers run within the backward pass. Use "
                "torch.utils.checkpoint.checkpoint(..., use_reentrant=False)."
            )
        if self._skipped["eval"]:
            return (
                "the model is in evaluation mode, whose passes are not counted as training. Call "
                "model.train(); single parts may stay in evaluation mode."
            )
        if self._skipped["no_grad"]:
            return "they run where gradients are switched off (torch.no_grad)."
        parameters = (p for each in self._watched for p in each.module.parameters())
        if not any(parameter.requires_grad for parameter in parameters):
            return (
                "their parameters are frozen, and nothing that they read asks for a gradient. "
                "Watch again when they are trained."
            )
        return (
            "they are not called as modules, or only in code that torch.compile traces, where a "
            "cell in a loop cannot be seen (a whole layer, such as nn.LSTM, can). Train without "
            "torch.compile to watch such a loop, or call the modules: self.cell(x, h)."
        )


_REPLACED = (
    "the model has other layers in their place since the watch began. Close it, and call "
    "gradflow.watch(model) again."
)
