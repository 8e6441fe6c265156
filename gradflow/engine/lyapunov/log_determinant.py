"""The mean of ln |det J_t| along a run: what all Lyapunov exponents add up to."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.lyapunov.subject import make_subject
from gradflow.engine.threads import threads_for
from gradflow.engine.trajectory import run_in_chunks


class LogDeterminant(NamedTuple):
    """The mean of ln |det J_t|, and how far rounding may have moved it; both in nats per step.

    Where a J_t is singular they are -inf and inf.
    """

    mean: float
    rounding: float


def mean_log_determinant(
    cell: CellLike, x: Tensor, state: State, *, warmup: int = 0
) -> LogDeterminant:
    """Return the mean of ln |det J_t| over the steps after the warm-up and over batch rows.

    By an LU decomposition of each dense step Jacobian: another way than QR of pushed tangents. A
    pivot is wrong by about the dtype's resolution times the largest entry, so the logarithm of a
    small one is uncertain by the ratio, and no way of computing it knows better.

    Args:
        cell: a cell or an ensemble.
        x: the input, (time, batch, input), warm-up included.
        state: the state before the first step.
        warmup: how many steps to leave out at the beginning.

    >>> from gradflow.cells import RNN
    >>> cell = RNN(1, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     filled = [parameter.fill_(0.5) for parameter in cell.parameters()]
    >>> x, start = torch.full((1, 1, 1), -2.0).double(), cell.initial_state(1)
    >>> mean = mean_log_determinant(cell, x, start).mean
    >>> round(mean / torch.log(torch.tensor(2.0)).item(), 6)
    -1.0
    """
    subject = make_subject(cell, state, x)
    total = rounding = 0.0
    work = subject.state_size**3 // 8
    with flushed_denormals(), torch.no_grad(), threads_for(work):
        length = subject.chunk_length(x.shape[0])
        for chunk in run_in_chunks(cell, x, state, length):
            drive, states = subject.drive_and_states(chunk)
            steps = subject.linearize(drive, states, columns=subject.state_size)
            for t in range(max(0, warmup - chunk.start), chunk.steps):
                sizes, unsure = _pivots(steps.dense(t).to(torch.float64))
                total += float(sizes.log().sum(dim=-1).mean())
                rounding += float(unsure.sum(dim=-1).mean()) * subject.resolution
    measured = x.shape[0] - warmup
    return LogDeterminant(total / measured, rounding / measured)


def _pivots(jacobian: Tensor) -> tuple[Tensor, Tensor]:
    """Return |U_ii| of the LU decomposition, and each one's error in units of the resolution."""
    size = jacobian.shape[-1]
    pivots = torch.linalg.lu_factor_ex(jacobian)[0].diagonal(dim1=-2, dim2=-1).abs()
    largest = jacobian.abs().amax(dim=(-2, -1)).unsqueeze(-1)
    return pivots, size * largest / pivots
