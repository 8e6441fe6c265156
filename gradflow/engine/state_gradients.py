"""The gradient of a loss with respect to every state of a run: the true dL/dh_t and dL/dc_t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.engine.log_norms import log_norm
from gradflow.engine.unrolled import CellTrace

__all__ = ["StateGradients", "state_gradients"]

LN10 = math.log(10.0)
# A second backward pass, of the loss times this, sees what is subnormal or zero in the first.
_LIFT = 2.0**900
_PLAIN_BELOW = -250.0  # log10: from here on a float64 may have lost digits


@dataclass(frozen=True)
class StateGradients:
    """log10 of the 2-norm of a loss's gradient at each state of one cell, by position.

    `by_sample` has for each part of the state (time, batch), -inf where the gradient is zero and
    nan in the padding; `total` (time,) per part is the norm over the whole batch. `connected` is
    False where the loss does not depend on any of these states by way of the graph.
    """

    by_sample: tuple[Tensor, ...]
    total: tuple[Tensor, ...]
    connected: bool


def state_gradients(loss: Tensor, traces: Sequence[CellTrace]) -> list[StateGradients]:
    """Measure log10 ||dL/ds_t|| for each part of each state of the traces, by autograd.

    The norms are taken in float64 without squaring small numbers. Where float64 itself comes to
    its end (1e-308) the backward pass is done again for 2^900 times the loss, so that a zero is a
    true one down to about 1e-570. The graph is kept.

    Args:
        loss: one number, computed from the traces' layers.
        traces: of one or more cells.

    Returns:
        One entry for each trace.

    >>> from gradflow.cells import RNN
    >>> from gradflow.engine.unrolled import UnrolledLayer
    >>> layer = UnrolledLayer([RNN(1, 2).double()], directions=1)
    >>> output = layer.run(torch.ones(4, 1, 1).double())
    >>> found = state_gradients(output[-1].sum(), layer.calls[0])
    >>> round(found[0].total[0][-1].item(), 6)  # log10 of sqrt(2)
    0.150515
    """
    nodes = [part for trace in traces for state in trace.states for part in state]
    plain, linked = _norms(loss, nodes, 1.0)
    wide = loss.dtype == torch.float64
    if wide and any(bool((norm < _PLAIN_BELOW).any()) for norm in plain):
        lifted, _ = _norms(loss, nodes, _LIFT)
        plain = [_chosen(a, b) for a, b in zip(plain, lifted, strict=True)]
    found, first = [], 0
    for trace in traces:
        count = len(trace.states) * len(trace.start)
        found.append(_of_trace(trace, plain[first : first + count], linked[first : first + count]))
        first += count
    return found


def _norms(loss: Tensor, nodes: Sequence[Tensor], factor: float) -> tuple[list[Tensor], list[bool]]:
    """Return log10 norms (batch,) of each node's gradient, and which the graph leads to."""
    asked = [index for index, node in enumerate(nodes) if node.requires_grad]
    gradients: list[Tensor | None] = [None] * len(nodes)
    if asked and loss.requires_grad:
        answers = torch.autograd.grad(
            loss * factor,  # as grad_outputs torch would load a second of symbolic mathematics
            [nodes[index] for index in asked],
            retain_graph=True,
            allow_unused=True,
        )
        for index, gradient in zip(asked, answers, strict=True):
            gradients[index] = gradient
    nothing = -math.inf
    logs = [
        torch.full((len(node),), nothing, dtype=torch.float64, device="cpu")
        if gradient is None
        else (log_norm(gradient.detach().unsqueeze(-1)).cpu() - math.log(factor)) / LN10
        for node, gradient in zip(nodes, gradients, strict=True)
    ]
    return logs, [gradient is not None for gradient in gradients]


def _chosen(plain: Tensor, lifted: Tensor) -> Tensor:
    """Return the lifted norm where the plain one is tiny and the lifted one is a number."""
    better = (plain < _PLAIN_BELOW) & ~torch.isnan(lifted) & (lifted != math.inf)
    return torch.where(better, lifted, plain)


def _of_trace(trace: CellTrace, norms: Sequence[Tensor], linked: Sequence[bool]) -> StateGradients:
    parts = len(trace.start)
    by_time = [torch.stack(list(norms[part::parts])) for part in range(parts)]
    own = trace.own
    by_sample = tuple(each.masked_fill(~own, math.nan) for each in by_time)
    total = tuple(_over_batch(each.masked_fill(~own, -math.inf)) for each in by_time)
    return StateGradients(by_sample, total, any(linked))


def _over_batch(logs: Tensor) -> Tensor:
    """Return log10 of the root of the sum of squares, (time,)."""
    return 0.5 * torch.logsumexp(2.0 * LN10 * logs, dim=1) / LN10
