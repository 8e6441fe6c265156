"""The mean of ln |det J_t| along a run: what all Lyapunov exponents add up to."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.lyapunov.subject import make_subject
from gradflow.engine.threads import threads_for
from gradflow.engine.trajectory import run_in_chunks


def mean_log_determinant(cell: CellLike, x: Tensor, state: State, *, warmup: int = 0) -> float:
    """Return the mean of ln |det J_t| over the steps after the warm-up and over batch rows.

    By an LU decomposition of each dense step Jacobian: another way than QR of pushed tangents.

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
    >>> round(mean_log_determinant(cell, x, start) / torch.log(torch.tensor(2.0)).item(), 6)
    -1.0
    """
    subject = make_subject(cell, state, x)
    total = 0.0
    work = subject.state_size**3 // 8
    with flushed_denormals(), torch.no_grad(), threads_for(work):
        length = subject.chunk_length(x.shape[0])
        for chunk in run_in_chunks(cell, x, state, length):
            drive, states = subject.drive_and_states(chunk)
            steps = subject.linearize(drive, states, columns=subject.state_size)
            for t in range(max(0, warmup - chunk.start), chunk.steps):
                logs = torch.linalg.slogdet(steps.dense(t).to(torch.float64)).logabsdet
                total += float(logs.mean())
    return total / (x.shape[0] - warmup)
