"""The norm of all parameters' gradients, read as each one is accumulated: before any clipping."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle


class ParameterNorms:
    """Hooks on a model's parameters while an update is sampled.

    Each keeps the norm of what its parameter's gradient has come to; gradients that several passes
    accumulate are added up by then.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self._norms: dict[nn.Parameter, Tensor] = {}
        self._handles: list[RemovableHandle] = [
            each.register_post_accumulate_grad_hook(self._read)
            for each in parameters
            if each.requires_grad and each.is_leaf
        ]

    def _read(self, parameter: nn.Parameter) -> None:
        gradient = parameter.grad
        if gradient is None:
            return
        values = gradient.coalesce().values() if gradient.is_sparse else gradient
        wide = torch.float32 if values.device.type == "mps" else torch.float64
        norm = torch.linalg.vector_norm(values.detach(), dtype=wide)
        self._norms[parameter] = norm

    @property
    def any_read(self) -> bool:
        """Whether a gradient was accumulated."""
        return bool(self._norms)

    @property
    def cleared(self) -> bool:
        """Whether gradients that were accumulated are gone: set to None, or to zero."""
        for parameter, norm in self._norms.items():
            if norm != 0.0:
                return parameter.grad is None or not bool(parameter.grad.detach().any())
        return False

    def log10_total(self) -> float | None:
        """Return log10 of the norm over all parameters; None where it is zero, inf or unknown."""
        if not self._norms:
            return None
        total = math.hypot(*(float(norm) for norm in self._norms.values()))
        return math.log10(total) if 0.0 < total < math.inf else None

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._norms.clear()
