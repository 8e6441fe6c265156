"""Findings of the whole model: samples that move each other, and padding that is read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells.masking import length_mask
from gradflow.engine.masks import padding_share
from gradflow.engine.sample_gradients import gradient_by_step, sample_influence
from gradflow.errors import GradflowError
from gradflow.experiments.inspect.batch import Batch, Layout, call_model, first_tensor
from gradflow.experiments.inspect.losses import Loss, loss_of
from gradflow.experiments.inspect.weight_findings import make_finding
from gradflow.records.inspect import Finding

PADDING_SHARE = 0.01
_MOST_OUTPUTS = 3


@dataclass(frozen=True)
class Axes:
    """Which axis of the input is the batch, and whether that is known and not only assumed."""

    batch: int
    known: bool
    why: str

    @property
    def time(self) -> int:
        """The other of the first two axes."""
        return 1 - self.batch


def find_axes(x: Tensor, batch: Batch, answer: Any, layout: Layout | None, usual: int) -> Axes:
    """Return which of the first two axes of the input is the batch.

    Args:
        x: the input.
        batch: its targets and lengths may tell.
        answer: the model's, whose first axis may tell.
        layout: what the user says.
        usual: the axis that the first recurrent layer takes for the batch.
    """
    if layout is not None:
        return Axes(0 if layout == "batch_first" else 1, True, "as said")
    sizes = tuple(x.shape[:2])
    if len(sizes) < 2 or sizes[0] == sizes[1]:
        return Axes(usual, False, "assumed")
    if batch.lengths is not None and len(batch.lengths) in sizes:
        return Axes(sizes.index(len(batch.lengths)), True, "by the number of lengths")
    told = []
    with contextlib.suppress(GradflowError):
        told.append(first_tensor(answer))
    told += [] if batch.targets is None else [batch.targets]
    for each in told:
        same = tuple(each.shape[:2])
        if each.dim() and same != sizes and same != sizes[::-1] and each.shape[0] in sizes:
            return Axes(sizes.index(each.shape[0]), True, "by the number of answers")
    return Axes(usual, False, "assumed")


def axis_findings(
    model: nn.Module, batch: Batch, axes: Axes, loss: Loss | None = None
) -> list[Finding]:
    """Return whether samples move each other, and whether padding is read.

    Args:
        model: the float64 copy, in evaluation mode.
        batch: in float64.
        axes: which axis is the batch.
        loss: what padding is judged by; where None, by the answers at the samples' own steps.
    """
    answer_to, leaf = _from_numbers(model, batch)
    if answer_to is None or leaf is None or leaf.dim() < 2 or isinstance(model, nn.RNNBase):
        return []  # a bare layer runs its batch packed, and mixes nothing

    def function(x: Tensor) -> Tensor:
        return first_tensor(answer_to(x))

    def target(x: Tensor) -> Tensor:
        answer = answer_to(x)
        found = loss_of(answer, batch, loss)
        return _own_answers(first_tensor(answer), batch) if found is None else found

    findings = []
    if axes.known and leaf.shape[axes.batch] > 1:
        findings += _crossed(function, leaf, axes)
    if axes.known and batch.lengths is not None:
        findings += _padding(target, leaf, batch.lengths, axes)
    return findings


def _crossed(function: Callable[[Tensor], Tensor], leaf: Tensor, axes: Axes) -> list[Finding]:
    output = function(leaf)
    if not (output.requires_grad and bool(torch.isfinite(output).all())):
        return []  # cut off, or lost: other findings' matter
    count = leaf.shape[axes.batch]
    places = [axis for axis in range(min(2, output.dim())) if output.shape[axis] == count]
    if not places:
        return []
    place = axes.batch if axes.batch in places else places[0]
    found = sample_influence(
        function,
        leaf,
        batch_axis=axes.batch,
        time_axis=axes.time,
        output_batch_axis=place,
        outputs=_MOST_OUTPUTS,
    )
    if found.largest_pair is None:
        return []
    row, column = found.largest_pair
    own = float(found.own.max())
    return [
        make_finding(
            "GF107",
            "error",
            f"The output of sample {row} depends on the input of sample {column}: a gradient of "
            f"{found.largest_cross:.3g}, beside {own:.3g} of its own, where 0 is right.",
            value=found.largest_cross,
        )
    ]


def _padding(
    target: Callable[[Tensor], Tensor], leaf: Tensor, lengths: Tensor, axes: Axes
) -> list[Finding]:
    steps = leaf.shape[axes.time]
    if len(lengths) != leaf.shape[axes.batch] or int(lengths.min()) >= steps:
        return []
    x = leaf.detach().clone().requires_grad_()
    with torch.enable_grad():
        norms = gradient_by_step(target(x), x, batch_axis=axes.batch, time_axis=axes.time)
    shares = padding_share(norms, lengths)
    worst = int(shares.argmax())
    share = float(shares[worst])
    if share <= PADDING_SHARE:
        return []
    return [
        make_finding(
            "GF106",
            "warning",
            f"{100 * share:.0f} % of the input gradient of sample {worst} lies in its padding "
            f"({int(lengths[worst])} of {steps} steps are its own).",
            value=share,
        )
    ]


def _own_answers(output: Tensor, batch: Batch) -> Tensor:
    """Return a fixed combination of the answers, of a sequence those at the samples' own steps."""
    generator = torch.Generator("cpu").manual_seed(0)
    drawn = torch.randn(output.shape, generator=generator, dtype=torch.float64, device="cpu")
    weights = drawn.to(output)
    axis = batch.axis_of_samples(output.shape) if output.dim() > 2 else None
    if axis is not None and batch.lengths is not None:
        mask = length_mask(batch.lengths, output.shape[1 - axis])
        return (output * weights)[(mask.T if axis == 0 else mask).to(output.device)]
    return output * weights


def _from_numbers(
    model: nn.Module, batch: Batch
) -> tuple[Callable[[Tensor], Any] | None, Tensor | None]:
    """Return the model as a function of floating numbers: its input, or its first embedding."""
    x = batch.inputs
    if not isinstance(x, Tensor):
        return None, None
    if x.dtype.is_floating_point:
        return (lambda leaf: call_model(model, Batch(leaf, None, batch.lengths))), x.detach()
    embedding = next((part for part in model.modules() if isinstance(part, nn.Embedding)), None)
    if embedding is None:
        return None, None
    with torch.no_grad():
        leaf = nn.functional.embedding(x, embedding.weight)

    def run(rows: Tensor) -> Any:
        with _replaced(embedding, rows):
            return call_model(model, batch)

    return run, leaf.detach()


@contextlib.contextmanager
def _replaced(module: nn.Module, rows: Tensor) -> Iterator[None]:
    """Let a module answer with these rows for a while."""
    handle = module.register_forward_hook(lambda *_: rows)
    try:
        yield
    finally:
        handle.remove()
