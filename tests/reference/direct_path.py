"""The direct path: the product of the keep gates as the trajectory realises them."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.reference.subject import Subject


def keep_gates(subject: Subject) -> Tensor:
    """Return the keep gate at every step, (time, batch, hidden).

    In torch's row order (i, f, g, o and r, z, n) the keep gate of an LSTM (forget) and of a
    GRU (update) are both the second block of rows; it reads the state before the step.
    """
    weights = subject.weights
    keep_rows = slice(subject.hidden_size, 2 * subject.hidden_size)
    bias = weights["bias_ih"][keep_rows] + weights["bias_hh"][keep_rows]
    state, found = subject.state, []
    with torch.no_grad():
        for x in subject.inputs:
            driven = x @ weights["weight_ih"][keep_rows].T
            recurrent = state[0] @ weights["weight_hh"][keep_rows].T
            found.append(torch.sigmoid(driven + recurrent + bias))
            state = subject.advance(x, state)
    return torch.stack(found)


def direct_log_norms(subject: Subject, *, norm: str = "spectral") -> Tensor:
    """Return ln of the norm of diag(k_T) ... diag(k_1) for every T from 1, (time, batch).

    A diagonal's spectral norm is its largest entry, its Frobenius norm the root of the sum of
    squares; both are taken on the sums of logarithms, which never underflow.
    """
    logs = keep_gates(subject).log().cumsum(dim=0)
    if norm == "spectral":
        return logs.amax(dim=2)
    return torch.logsumexp(2 * logs, dim=2) / 2
