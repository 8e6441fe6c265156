"""Logarithms of norms, without squaring anything that is too small or too large to be squared."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradflow.engine.blocks import Norm

LN2 = math.log(2.0)


def log_norm(matrix: Tensor, norm: Norm = "frobenius") -> Tensor:
    """Return ln ||matrix|| over the last two axes, in float64; -inf for a zero matrix.

    The largest entry is divided out before anything is squared: a float32 vector of 1e-23 has
    norm 2e-23, and not the 0 that squaring in float32 gives.

    Args:
        matrix: (..., rows, columns), any float dtype.
        norm: "frobenius", or "spectral" (the largest singular value, from the eigenvalues of the
            smaller Gram matrix: its relative error is a few units of round-off, because only the
            small singular values lose digits by squaring).

    >>> round(log_norm(torch.full((1, 4), 2.0**-75)).exp().log2().item(), 9)
    -74.0
    """
    wide = matrix.to(torch.float64)
    largest = wide.abs().amax(dim=(-2, -1))
    safe = torch.where((largest > 0) & torch.isfinite(largest), largest, 1.0)
    unit = wide / safe[..., None, None]
    size = _spectral(unit) if norm == "spectral" else torch.linalg.vector_norm(unit, dim=(-2, -1))
    return torch.log(size) + torch.log(safe)


def _spectral(matrix: Tensor) -> Tensor:
    if not bool(torch.isfinite(matrix).all()):  # LAPACK refuses these; a nan says the same
        finite = torch.isfinite(matrix).all(dim=-1).all(dim=-1)
        clean = torch.where(finite[..., None, None], matrix, 0.0)
        return torch.where(finite, _spectral(clean), torch.nan)
    tall = matrix.shape[-2] >= matrix.shape[-1]
    gram = matrix.mT @ matrix if tall else matrix @ matrix.mT
    largest: Tensor = torch.linalg.eigvalsh(gram)[..., -1]
    return largest.clamp_min(0.0).sqrt()


def log_norm_of_logs(logs: Tensor, norm: Norm) -> Tensor:
    """Return ln ||diag(e^logs)|| over the last axis: the norm of a matrix known by its logs."""
    if norm == "spectral":
        return logs.amax(dim=-1)
    return 0.5 * torch.logsumexp(2.0 * logs, dim=-1)
