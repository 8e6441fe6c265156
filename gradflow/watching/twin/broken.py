"""The first number that is not finite: states as they are read, gradients on the way back."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.records.watch import BrokenTensor
from gradflow.watching.twin.pulled import Parts


def first_broken(
    x: Tensor | None, parts: Sequence[str], states: Parts, logs: Parts
) -> BrokenTensor | None:
    """Return the first tensor and step, in reading order, that is NaN or inf; None where none is.

    Args:
        x: what was read (time, rows, width), where it comes from outside the layer.
        parts: names of the state's parts.
        states: (time, rows, width) per part.
        logs: log10 of the gradient's norm at each state, (time, rows) per part.
    """
    named = [] if x is None else [("input", x)]
    for name, values in [*named, *zip(parts, states, strict=True)]:
        steps = (~torch.isfinite(values)).flatten(1).any(dim=1).nonzero().flatten()
        if len(steps):
            return BrokenTensor(name, int(steps[0]))
    found = [
        (int(steps[-1]), f"dL/d{name}")
        for name, values in zip(parts, logs, strict=True)
        if len(steps := (torch.isnan(values) | torch.isposinf(values)).any(dim=1).nonzero())
    ]
    if not found:
        return None
    step, name = max(found, key=lambda each: each[0])
    return BrokenTensor(name, step)


def is_sound(final: Parts, logs: Parts) -> bool:
    """Return whether neither the last states nor the gradients show a number that is not finite.

    A state that is not finite stays so to the end, and a gradient to the beginning.
    """
    told = all(bool(torch.isfinite(part).all()) for part in final)
    return told and not any(bool((torch.isnan(x) | torch.isposinf(x)).any()) for x in logs)
