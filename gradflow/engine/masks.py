"""Numbers of padded batches: losses, accuracies and gradients of each sample's own steps alone.

Padded steps are taken out before anything is computed of them: multiplied by 0 instead, a nan
there would stay a nan, and so would its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gradflow.cells.masking import Lengths, length_mask, require_lengths
from gradflow.engine.step_losses import LOSSES, StepLoss
from gradflow.errors import DtypeError, ShapeError, UnknownNameError, nearest_name

Average = Literal["step", "sample"]


def masked_loss(
    predictions: Tensor,
    targets: Tensor,
    lengths: Lengths,
    loss: str | StepLoss = "cross_entropy",
    *,
    average: Average = "step",
) -> Tensor:
    """Return the mean loss over the samples' own steps; padding gets a gradient of exactly 0.

    Args:
        predictions: (time, batch, ...): logits (time, batch, classes) for "cross_entropy", logits
            of any shape for "binary_cross_entropy", numbers for "squared_error".
        targets: (time, batch, ...): class numbers (time, batch), or in the predictions' shape.
        lengths: how many steps are each sample's own.
        loss: one of `LOSSES`, or a function of predictions (steps, ...) and targets (steps, ...)
            that returns one loss per step, (steps,) or (steps, ...), averaged over what follows.
        average: "step" gives every step one vote; "sample" gives every sample one vote.

    Raises:
        ShapeError: predictions, targets and lengths do not fit each other.
        DtypeError: predictions that are no floating numbers.
        UnknownNameError: no such loss or average.

    >>> logits = torch.zeros(2, 2, 4)
    >>> round(masked_loss(logits, torch.zeros(2, 2, dtype=torch.int64), [2, 1]).item(), 6)
    1.386294
    """
    function = LOSSES.get(loss) if isinstance(loss, str) else loss
    if not callable(function):
        known = nearest_name(str(loss), LOSSES)
        raise UnknownNameError(f"there is no loss {loss!r}. {known} Or give a function.")
    _require_average(average)
    mask = _own_steps(predictions, targets, lengths)
    if not predictions.dtype.is_floating_point:
        raise DtypeError(f"a loss needs floating predictions; got {predictions.dtype}.")
    losses = function(predictions[mask], targets[mask])
    _require_step_losses(losses, steps=int(mask.sum()))
    return _mean(losses.flatten(1).mean(dim=1) if losses.dim() > 1 else losses, mask, average)


def masked_accuracy(
    predictions: Tensor, targets: Tensor, lengths: Lengths, *, average: Average = "step"
) -> Tensor:
    """Return the share of the samples' own steps at which the prediction is right.

    Args:
        predictions: logits (time, batch, classes), of which the largest counts; or of two classes
            (time, batch), of which the sign counts.
        targets: class numbers (time, batch); or 0 and 1 in the predictions' shape, of which each
            counts.
        lengths, average: see `masked_loss`.

    Raises:
        ShapeError: predictions, targets and lengths do not fit each other.
        UnknownNameError: no such average.

    >>> logits = torch.tensor([[1.0, -1.0], [1.0, 1.0]])
    >>> masked_accuracy(logits, torch.tensor([[1, 0], [0, 0]]), [2, 1]).item()
    0.6666666865348816
    """
    _require_average(average)
    mask = _own_steps(predictions, targets, lengths)
    by_class = predictions.shape[:-1] == targets.shape and predictions.shape[-1] > 1
    if not by_class and predictions.shape != targets.shape:
        raise ShapeError(
            "an accuracy takes class numbers (time, batch), and logits of them (time, batch, "
            f"classes) or of two classes (time, batch); got {tuple(predictions.shape)} and targets "
            f"{tuple(targets.shape)}. Squeeze an axis of one."
        )
    own = predictions[mask]
    chosen = own.argmax(dim=-1) if by_class else own > 0
    dtype = predictions.dtype if predictions.dtype.is_floating_point else torch.float32
    right = (chosen == targets[mask]).to(dtype)
    return _mean(right.flatten(1).mean(dim=1) if right.dim() > 1 else right, mask, average)


@dataclass(frozen=True)
class ByLag:
    """Values by lag from each sample's own last step.

    `values` (..., lag, batch): lag k stands k steps before the last own step; nan where a sample
    has no such step. `count` (lag,) says how many samples have one.
    """

    values: Tensor
    count: Tensor

    def mean(self) -> Tensor:
        """Return the mean over the samples that have such a step, (..., lag)."""
        return self.values.nanmean(dim=-1)


def align_by_lag(values: Tensor, lengths: Lengths) -> ByLag:
    """Return values (..., time, batch) by lag from each sample's own last step.

    A mean over the batch at a time step mixes the last step of one sample with the first of
    another, and with the padding of a third; at a lag it does not.

    Raises:
        ShapeError: values that are no such tensor, or lengths that do not fit.

    >>> aligned = align_by_lag(torch.tensor([[1.0, 4.0], [2.0, 0.0], [3.0, 0.0]]), [3, 1])
    >>> aligned.mean().tolist(), aligned.count.tolist()
    ([3.5, 2.0, 1.0], [2, 1, 1])
    """
    if not isinstance(values, Tensor) or values.dim() < 2:
        raise ShapeError(f"values must be a tensor (..., time, batch); got {_shown(values)}.")
    values = values if values.dtype.is_floating_point else values.to(torch.float64)
    steps, batch = values.shape[-2:]
    numbers = require_lengths(lengths, steps=steps, batch=batch).to(values.device)
    places = numbers - 1 - torch.arange(steps, device=values.device).unsqueeze(1)
    own = places >= 0
    moved = values.gather(-2, places.clamp(min=0).expand(values.shape))
    return ByLag(moved.masked_fill(~own, torch.nan), own.sum(dim=1))


def padding_share(gradient: Tensor, lengths: Lengths) -> Tensor:
    """Return which share of each sample's gradient its padding carries, (batch,), from 0 to 1.

    Args:
        gradient: (time, batch, ...) with respect to the input, or its norms (time, batch). Of a
            step with several numbers the 2-norm counts.
        lengths: how many steps are each sample's own.

    Returns:
        Sum of the norms at padded steps over the sum of all; 0 where there is no gradient at all,
        nan where it is not finite. Packed runs and masked ones have exactly 0; a short sample
        whose padding is read has nearly 1.

    Raises:
        ShapeError: a gradient that is no such tensor, or lengths that do not fit.

    >>> padding_share(torch.tensor([[1.0, 1.0], [1.0, 3.0]]), [2, 1]).tolist()
    [0.0, 0.75]
    """
    if not isinstance(gradient, Tensor) or gradient.dim() < 2:
        raise ShapeError(f"a gradient is a tensor (time, batch, ...); got {_shown(gradient)}.")
    wide = gradient.detach().to(torch.float64).abs()
    rows = wide.unsqueeze(2) if wide.dim() == 2 else wide.flatten(2)
    steps, batch = rows.shape[:2]
    numbers = require_lengths(lengths, steps=steps, batch=batch)
    padded = ~length_mask(numbers, steps).to(rows.device)
    largest = rows.amax(dim=(0, 2))
    nothing = largest == 0
    norms = torch.linalg.vector_norm(rows / largest.masked_fill(nothing, 1.0)[:, None], dim=2)
    carried = torch.where(padded, norms, 0.0).sum(dim=0)
    share: Tensor = carried / norms.sum(dim=0)
    return share.masked_fill(nothing, 0.0)


def _own_steps(predictions: Tensor, targets: Tensor, lengths: Lengths) -> Tensor:
    """Return which steps are own, (time, batch), after checking that all fit."""
    tensors = isinstance(predictions, Tensor) and isinstance(targets, Tensor)
    if not tensors or predictions.dim() < 2 or predictions.shape[:2] != targets.shape[:2]:
        raise ShapeError(
            "predictions and targets must both be tensors that begin with (time, batch); got "
            f"{_shown(predictions)} and {_shown(targets)}."
        )
    steps, batch = predictions.shape[:2]
    numbers = require_lengths(lengths, steps=steps, batch=batch)
    return length_mask(numbers, steps).to(predictions.device)


def _shown(value: object) -> str:
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _require_step_losses(losses: object, *, steps: int) -> None:
    if not isinstance(losses, Tensor) or losses.dim() == 0 or len(losses) != steps:
        single = isinstance(losses, Tensor) and losses.dim() == 0
        got = "a single number" if single else _shown(losses)
        raise ShapeError(
            f"a loss must give one number per step, because the mean is taken here; of {steps} "
            f"steps this one gave {got}. Use reduction='none'."
        )


def _require_average(name: str) -> None:
    if name not in get_args(Average):
        known = nearest_name(str(name), get_args(Average))
        raise UnknownNameError(f"there is no average {name!r}. {known}")


def _mean(values: Tensor, mask: Tensor, average: Average) -> Tensor:
    """Return the mean of values (own steps,): of all, or of the samples' own means."""
    if average == "step":
        return values.mean()
    counts = mask.sum(dim=0)
    # counts are whole numbers: 1 / counts of them would be float32
    weights = (1.0 / (counts.to(values) * len(counts))).expand(mask.shape)
    return (values * weights[mask]).sum()
