"""Whose input moves whose output: gradients between the samples of a batch, by plain autograd.

In a right model a sample's output depends on its own input alone, at all of its steps. Where the
time and the batch axis are mixed up, the recurrence runs across samples, and the gradient says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradflow.errors import DtypeError, SettingError, ShapeError

Model = Callable[[Tensor], Any]


@dataclass(frozen=True)
class SampleInfluence:
    """How much the input of each sample moves the output of each, as 2-norms of gradients.

    `influence` (outputs, samples): row b is the gradient of sample b's output, column j the input
    of sample j; in a right model only b = j is not zero. `own_by_step` (outputs, time) is the
    gradient of an output at each step of its own input. `outputs` are the samples whose outputs
    were differentiated.
    """

    influence: Tensor
    own_by_step: Tensor
    outputs: tuple[int, ...]

    @property
    def own(self) -> Tensor:
        """Return the norm of each output's gradient with respect to its own input, (outputs,)."""
        return self.influence[list(range(len(self.outputs))), list(self.outputs)]

    @property
    def largest_cross(self) -> float:
        """Return the largest norm between two different samples; 0.0 in a right model."""
        return float(self._cross().max()) if self.influence.shape[1] > 1 else 0.0

    @property
    def largest_pair(self) -> tuple[int, int] | None:
        """Return (output, input) of the largest norm between different samples, None for zero."""
        if self.largest_cross == 0.0:
            return None
        row, column = divmod(int(self._cross().argmax()), self.influence.shape[1])
        return self.outputs[row], column

    @property
    def steps_with_gradient(self) -> Tensor:
        """Return how many steps of its own input move each output, (outputs,)."""
        return (self.own_by_step > 0).sum(dim=1)

    def _cross(self) -> Tensor:
        crossed = self.influence.clone()
        crossed[list(range(len(self.outputs))), list(self.outputs)] = 0.0
        return crossed


def sample_influence(
    model: Model,
    x: Tensor,
    *,
    batch_axis: int = 0,
    time_axis: int = 1,
    output_batch_axis: int | None = None,
    outputs: int | None = None,
) -> SampleInfluence:
    """Differentiate each sample's output with respect to the inputs of all samples.

    Of an output of one number the gradient is that number's. Of one with several, a fixed random
    combination (normal, seeded) is differentiated: it is zero only where all of them are, up to
    chance, and its size is that of one direction.

    Args:
        model: called as `model(x)`; returns a tensor, or a tuple whose first entry counts. A model
            that mixes samples on purpose (batch normalization in training mode) shows it.
        x: the input, floating: (batch, time, ...) unless the axes say else.
        batch_axis, time_axis: where they are in x.
        output_batch_axis: where the batch is in the output; as in x where None.
        outputs: how many samples' outputs to differentiate, the first ones, a backward pass each;
            all where None.

    Raises:
        DtypeError: x or the output holds no floating numbers, which alone have a gradient; or the
            output was cut off from every gradient, so that nothing is known of it.
        ShapeError: the output has not as many samples as x, or x not these axes.
        SettingError: fewer than one output.

    >>> def mean_of_all(x):
    ...     return x.sum(dim=1) + x.mean()
    >>> sample_influence(mean_of_all, torch.ones(2, 3)).largest_cross > 0
    True
    """
    batch_axis, time_axis = _require_axes(x, batch_axis, time_axis)
    if outputs is not None and (not isinstance(outputs, int) or outputs < 1):
        raise SettingError(f"outputs= counts samples, at least 1; got {outputs}.")
    if not x.dtype.is_floating_point:
        raise DtypeError(
            f"only floating numbers have a gradient; x is {x.dtype}. Of token numbers, give what "
            "their embedding makes of them, and the model from there on."
        )
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        axis = batch_axis if output_batch_axis is None else output_batch_axis
        answer = model(leaf.clone())  # which a model may overwrite, as no leaf may be
        output = _batch_first(answer, axis, count=x.shape[batch_axis])
        _require_graph(output)
        chosen = range(len(output) if outputs is None else min(outputs, len(output)))
        gradients = [_gradient(output[row], leaf) for row in chosen]
    by_step = torch.stack([_step_norms(g, (batch_axis, time_axis)) for g in gradients])
    return SampleInfluence(
        influence=torch.linalg.vector_norm(by_step, dim=2),
        own_by_step=torch.stack([by_step[row, row] for row in chosen]),
        outputs=tuple(chosen),
    )


def gradient_by_step(
    target: Tensor, x: Tensor, *, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    """Return the 2-norm of d(sum of target)/dx at each step of each sample, (time, batch).

    Args:
        target: computed from x, of any shape; its graph is kept. What does not depend on x at all
            has zeros.
        x: the input, which asks for a gradient: (time, batch, ...) unless the axes say else.
        batch_axis, time_axis: where they are in x.

    >>> x = torch.ones(3, 1, 2, requires_grad=True)
    >>> gradient_by_step(x[-1] * 2.0, x)[:, 0].tolist()
    [0.0, 0.0, 2.8284270763397217]
    """
    return _step_norms(_gradient_of_sum(target.sum(), x), (time_axis, batch_axis))


def _require_axes(x: Tensor, batch_axis: int, time_axis: int) -> tuple[int, int]:
    """Return the two axes counted from the front."""
    if not isinstance(x, Tensor):
        raise ShapeError(
            f"x must be a tensor with a batch and a time axis; got {type(x).__name__}."
        )
    axes = {"batch_axis": batch_axis, "time_axis": time_axis}
    for name, axis in axes.items():
        if not isinstance(axis, int) or not -x.dim() <= axis < x.dim():
            raise ShapeError(f"{name}={axis} is no axis of x, of shape {tuple(x.shape)}.")
    batch, time = batch_axis % x.dim(), time_axis % x.dim()
    if batch == time or x.shape[batch] == 0:
        raise ShapeError(
            "x needs a batch axis with a sample and another axis for time; got batch_axis="
            f"{batch_axis} and time_axis={time_axis} of shape {tuple(x.shape)}."
        )
    return batch, time


def _require_graph(output: Tensor) -> None:
    """Raise where a gradient of 0 would say nothing: the output was cut off."""
    if not output.dtype.is_floating_point:
        raise DtypeError(
            f"only floating numbers have a gradient; the output is {output.dtype}. Return what the "
            "choice was made from."
        )
    if not output.requires_grad:
        raise DtypeError(
            "the output has no gradient at all, so nothing is known of who moves it. Take detach() "
            "and no_grad() out of the model, or give one that depends on x."
        )


def _step_norms(gradient: Tensor, axes: tuple[int, int]) -> Tensor:
    """Return the 2-norms over all axes but two, which come first."""
    moved = gradient.movedim(axes, (0, 1))
    return moved.abs() if moved.dim() == 2 else torch.linalg.vector_norm(moved.flatten(2), dim=2)


def _batch_first(answer: Any, axis: int, *, count: int) -> Tensor:
    output = answer[0] if isinstance(answer, tuple | list) and answer else answer
    if not isinstance(output, Tensor):
        raise ShapeError(
            "a model must return a tensor, or a tuple that begins with one; "
            f"got a {type(output).__name__}."
        )
    if output.dim() <= axis or output.shape[axis] != count:
        raise ShapeError(
            f"the output must have a row for each of the {count} samples, on axis {axis}; got "
            f"shape {tuple(output.shape)}. Say where the batch is: output_batch_axis=."
        )
    return output.movedim(axis, 0)


def _gradient(output: Tensor, leaf: Tensor) -> Tensor:
    """Return the gradient of one sample's output, or of a fixed combination of its numbers."""
    generator = torch.Generator("cpu").manual_seed(0)
    weights = torch.ones(output.numel(), dtype=torch.float64, device="cpu")
    if output.numel() > 1:
        size = (output.numel(),)
        weights = torch.randn(size, generator=generator, dtype=torch.float64, device="cpu")
    return _gradient_of_sum((output.flatten() * weights.to(output)).sum(), leaf)


def _gradient_of_sum(total: Tensor, leaf: Tensor) -> Tensor:
    if not total.requires_grad:
        return torch.zeros_like(leaf)
    (gradient,) = torch.autograd.grad(
        total, leaf, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return gradient.detach()
