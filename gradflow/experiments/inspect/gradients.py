"""A model's run with the loss's gradient at every state, in float64 and as it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.checkpoints.layers import Checkpoint
from gradflow.engine.state_gradients import StateGradients, state_gradients
from gradflow.errors import CellLoadError
from gradflow.experiments.inspect.batch import Batch
from gradflow.experiments.inspect.layers import Gradients
from gradflow.experiments.inspect.losses import Loss, loss_of
from gradflow.experiments.inspect.report import reads_last_only
from gradflow.experiments.inspect.twin_run import TwinRun, Watched, run_twin
from gradflow.settings.inspect import InspectSettings


@dataclass(frozen=True)
class Subject:
    """What is inspected: the layers found, and the model and batch where there are any."""

    found: Checkpoint
    model: nn.Module | None = None
    batch: Batch | None = None
    loss: Loss | None = None
    source: str = "the model"


@dataclass(frozen=True)
class RanModule:
    """One watched module, with the gradients of its cells.

    `own_gap` is how far the fused layer in the model's own dtype is from the float64 twin,
    `rounding` how far the twin itself is when it is run in that dtype.
    """

    watched: Watched
    gradients: tuple[Gradients | None, ...]
    own_gap: float | None
    reads_last: bool
    rounding: float | None = None


def with_gradients(
    subject: Subject, settings: InspectSettings, twin: TwinRun, loss: Tensor | None
) -> list[RanModule]:
    """Return each module with the loss's gradients at its cells' states, also as trained."""
    own = _own_precision(subject, settings)
    gradients = None if loss is None else _gradients(twin.watched, loss)
    narrow = None
    if own is not None and loss is not None and subject.batch is not None:
        batch = subject.batch.cast(_own_dtype(subject.model), settings.device)
        own_loss = loss_of(own.answer, batch, subject.loss or settings.loss)
        narrow = None if own_loss is None else _gradients(own.watched, own_loss)
    ran = []
    for index, each in enumerate(twin.watched):
        count = len(each.layers)
        mine: tuple[Gradients | None, ...] = (None,) * count
        if gradients is not None:
            mine = tuple(
                Gradients(gradients[index][k], None if narrow is None else narrow[index][k])
                for k in range(count)
            )
        gap = None if own is None else own.watched[index].fused_gap
        rounding = None if own is None else own.watched[index].rounding
        last = loss is not None and reads_last_only(loss, each)
        ran.append(RanModule(each, mine, gap, last, rounding))
    return ran


def _gradients(watched: Sequence[Watched], loss: Tensor) -> list[list[tuple[StateGradients, ...]]]:
    """Return for each module and cell the gradients at its states, call by call; one pass."""
    traces = [t for each in watched for k in range(len(each.layers)) for t in each.traces_of(k)]
    answers = iter(state_gradients(loss, traces))
    return [
        [tuple(next(answers) for _ in each.traces_of(k)) for k in range(len(each.layers))]
        for each in watched
    ]


def _own_dtype(model: nn.Module | None) -> torch.dtype:
    """Return the narrowest floating dtype of a model's parameters."""
    parameters = [] if model is None else list(model.parameters())
    floating = {p.dtype for p in parameters if p.dtype.is_floating_point}
    return min(floating, key=lambda d: -torch.finfo(d).eps, default=torch.float64)


def _own_precision(subject: Subject, settings: InspectSettings) -> TwinRun | None:
    """Return the same run in the model's own dtype; None where that is float64, or fails there."""
    dtype = _own_dtype(subject.model)
    if dtype == torch.float64 or subject.model is None or subject.batch is None:
        return None
    try:
        return run_twin(
            subject.model,
            subject.found,
            subject.batch,
            dtype=dtype,
            device=settings.device,
            layout=settings.layout,
        )
    except CellLoadError:  # an operation that the processor lacks in this dtype
        return None
