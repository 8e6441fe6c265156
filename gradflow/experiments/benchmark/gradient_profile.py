"""How much of the loss is felt by the state at each step: the exact gradient, by unrolling.

torch's fused layers do not let a gradient of h_t be read; the same weights are run step by step in
float64, where it can, and where a float32 would have ended at 1e-45.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.engine.state_gradients import state_gradients
from gradflow.engine.unrolled import UnrolledLayer
from gradflow.experiments.benchmark.networks import Network
from gradflow.experiments.benchmark.tasks import Sequences, SequenceTask


@dataclass(frozen=True)
class GradientProfile:
    """log10 ||dL/ds_t|| for t = 1 ... T, for each part of the state by name; -inf is exact zero.

    L is the mean loss of a batch and the norm is over all its samples and units. `recall_norms` are
    the same of the loss on the answering steps alone: where the loss is on every step, a state also
    feels what is asked of it at once. `loss` is L by the unrolled run, `loss_error` how far,
    relatively, the layer's own run is from it.
    """

    log10_norms: Mapping[str, Tensor]
    recall_norms: Mapping[str, Tensor]
    loss: float
    loss_error: float


def gradient_profile(
    network: Network, task: SequenceTask, batch: Sequences, weights: Mapping[str, Tensor]
) -> GradientProfile:
    """Measure the profile of a network with these weights.

    Args:
        network: of the same form, in float64; its weights are overwritten.
        task: whose loss.
        batch: a few sequences.
        weights: a state dict.
    """
    network.load_state_dict(dict(weights))
    network.eval()
    (cell,) = cells = network.cells()
    layer = UnrolledLayer(cells, directions=1)
    answers = network.answer(layer.run(network.encode(batch.inputs)))
    loss = task.loss(answers, batch.targets)
    (found,) = state_gradients(loss, layer.calls[0])
    (of_recall,) = state_gradients(task.recall_loss(answers, batch.targets), layer.calls[0])
    with torch.no_grad():
        fused = task.loss(network(batch.inputs), batch.targets)
    value = float(loss.detach())
    return GradientProfile(
        log10_norms=dict(zip(cell.parts, found.total, strict=True)),
        recall_norms=dict(zip(cell.parts, of_recall.total, strict=True)),
        loss=value,
        loss_error=abs(float(fused) - value) / max(abs(value), 1e-300),
    )
