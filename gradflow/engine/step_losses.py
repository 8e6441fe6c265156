"""Losses by name that give a number for each step, with what they need of their arguments."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from gradflow.errors import ShapeError

StepLoss = Callable[[Tensor, Tensor], Tensor]


def _squared_error(predictions: Tensor, targets: Tensor) -> Tensor:
    _require_alike("squared_error", predictions, targets)
    return (predictions - targets) ** 2


def _cross_entropy(predictions: Tensor, targets: Tensor) -> Tensor:
    if (
        predictions.dim() == 2
        and targets.shape == predictions.shape
        and targets.dtype.is_floating_point
    ):
        return functional.cross_entropy(predictions, targets.to(predictions), reduction="none")
    numbers = _class_numbers(predictions, targets)
    return functional.cross_entropy(predictions, numbers, reduction="none")


def _binary_cross_entropy(predictions: Tensor, targets: Tensor) -> Tensor:
    _require_alike("binary_cross_entropy", predictions, targets)
    wanted = targets.to(predictions)
    return functional.binary_cross_entropy_with_logits(predictions, wanted, reduction="none")


LOSSES: dict[str, StepLoss] = {
    "cross_entropy": _cross_entropy,
    "binary_cross_entropy": _binary_cross_entropy,
    "squared_error": _squared_error,
}
"""Losses by name; each gives a number (or a row of them) per step."""


def _class_numbers(predictions: Tensor, targets: Tensor) -> Tensor:
    whole = not (targets.dtype.is_floating_point or targets.dtype.is_complex)
    if predictions.dim() != 2 or targets.dim() != 1 or not whole:
        raise ShapeError(
            "cross_entropy takes logits (time, batch, classes) and whole class numbers "
            "(time, batch), or probabilities in the logits' shape; at the own steps got "
            f"{tuple(predictions.shape)} and {tuple(targets.shape)} of {targets.dtype}."
        )
    numbers, classes = targets.long(), predictions.shape[1]
    outside = numbers[(numbers < 0) | (numbers >= classes)]
    if len(outside):  # torch would count its "ignored" -100 as a loss of 0 in the mean
        raise ShapeError(
            f"class numbers lie from 0 to {classes - 1}, as there are {classes} logits; an own "
            f"step has {int(outside[0])}. Steps without a class are left out by lengths alone."
        )
    return numbers


def _require_alike(loss: str, predictions: Tensor, targets: Tensor) -> None:
    """Raise unless shapes are equal: torch would pair every prediction with every target."""
    if predictions.shape != targets.shape:
        raise ShapeError(
            f"{loss} needs targets in the predictions' shape; at the own steps got "
            f"{tuple(predictions.shape)} and {tuple(targets.shape)}. Squeeze an axis of one."
        )
