"""log10 of norms along a run, and where float64 may have come to its end."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradflow.engine.log_norms import log_norm

LN10 = math.log(10.0)
_SQUARES_SAFELY = 1e140
# A second pass, of the gradient times this, sees what is subnormal or zero in the first.
LIFT = 2.0**900
_PLAIN_BELOW = -250.0  # log10: from here on a float64 may have lost digits


def log10_norms(values: Tensor) -> Tensor:
    """Return log10 of the 2-norm over the last axis, on the CPU; -inf for zeros.

    >>> log10_norms(torch.tensor([[3.0, 4.0], [6e-200, 8e-200]], dtype=torch.float64)).tolist()[1]
    -199.0
    """
    norm = torch.linalg.vector_norm(values, dim=-1, dtype=torch.float64)
    logs = torch.log10(norm)
    unsafe = ~((norm > 1.0 / _SQUARES_SAFELY) & (norm < _SQUARES_SAFELY))
    if bool(unsafe.any()):  # squares that may have left the range
        logs[unsafe] = log_norm(values[unsafe].unsqueeze(-1)) / LN10
    return logs.cpu()


def has_faded(logs: Tensor) -> bool:
    """Return whether a row (time, rows) is tiny or zero before a step that has a gradient.

    Zeros after the last such step are true ones: the loss reads no later step.
    """
    alive = torch.isfinite(logs).flip(0).int().cummax(dim=0).values.flip(0).bool()
    return bool(((logs < _PLAIN_BELOW) & alive).any())


def lifted_where_faded(plain: Tensor, lifted: Tensor) -> Tensor:
    """Return the logs of a lifted pass where the plain one is tiny and the lifted one a number."""
    better = (plain < _PLAIN_BELOW) & ~torch.isnan(lifted) & (lifted != math.inf)
    return torch.where(better, lifted - math.log10(LIFT), plain)
