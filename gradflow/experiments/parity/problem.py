"""The numbers that both sides are run on: drawn so that no two cells look alike by chance.

A start at h = 0 hides where a GRU's reset gate acts, zero biases hide which biases are added, one
step hides the state's way back, and equal rows hide a batch that is mixed up. So: a random state,
distinct non-zero biases, several steps, rows that differ. What a run still could not tell is found
out and said (`identify.undecided_variants`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradflow.checkpoints.sides import STANDARD_ORDER, Problem
from gradflow.settings.parity import ParitySettings

LEAST_BIAS = 0.1  # no drawn bias is nearer to zero


def draw_weights(kind: str, widths: tuple[int, int], settings: ParitySettings) -> dict[str, Tensor]:
    """Return random weights in torch's layout, in float64.

    Weights are normal with deviation 1 / sqrt(width), so that gates move without saturating;
    biases are at least 0.1 away from zero, all different.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    rows = len(STANDARD_ORDER[kind]) * widths[1]

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    drawn = {
        "weight_ih": normal(rows, widths[0]) / math.sqrt(widths[0]),
        "weight_hh": normal(rows, widths[1]) / math.sqrt(widths[1]),
    }
    for name in ("bias_ih", "bias_hh"):
        bias = normal(rows) / 2
        drawn[name] = bias + LEAST_BIAS * torch.sign(bias)
        if settings.bias == "zero":
            drawn[name] = torch.zeros(rows, dtype=torch.float64)
    return drawn


def draw_like(weights: dict[str, Tensor], settings: ParitySettings) -> dict[str, Tensor]:
    """Return random weights of these shapes, where no layout is known."""
    generator = torch.Generator().manual_seed(settings.seed)
    drawn = {}
    for name, tensor in weights.items():
        width = tensor.shape[-1] if tensor.dim() > 1 else 4
        values = torch.randn(tensor.shape, dtype=torch.float64, generator=generator)
        drawn[name] = values / math.sqrt(max(width, 1))
    return drawn


def draw_problem(
    parts: tuple[str, ...],
    widths: tuple[int, int],
    settings: ParitySettings,
    *,
    xs: Tensor | None = None,
    state: tuple[Tensor, ...] | None = None,
) -> Problem:
    """Return inputs, first state and loss; those that are given (recorded data) are kept.

    h is tanh of a normal (a gated h lies in (-1, 1)), c a normal.
    """
    # not the weights' seed: numbers that repeat each other could hide a difference
    generator = torch.Generator().manual_seed(settings.seed + 1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    inputs = normal(settings.steps, settings.batch, widths[0])
    rows = settings.batch if xs is None else xs.shape[1]
    drawn = {part: normal(rows, widths[1]) for part in ("h", "c")}
    first = tuple(torch.tanh(drawn[p]) if p == "h" else drawn[p] for p in parts)
    if settings.start == "zero":
        first = tuple(torch.zeros_like(part) for part in first)
    inputs = inputs if xs is None else xs
    return Problem(
        xs=inputs,
        state=first if state is None else state,
        read_h=normal(inputs.shape[0], rows, widths[1]),
        read_last=tuple(normal(rows, widths[1]) for _ in parts),
    )
