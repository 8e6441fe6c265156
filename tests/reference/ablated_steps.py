"""Steps of the cells with some gates taken as constants, by torch.autograd.

Each step is written from its formula; a gate that is cut reads a detached copy of the state, so
autograd finds every path but those through that gate. Independent of the cells under test.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from tests.reference.subject import Subject


def ablated_jacobians(subject: Subject, cut: Collection[str], *, kind: str) -> Tensor:
    """Return ds_t/ds_{t-1} with the gates of `cut` held constant, (time, batch, state, state)."""
    state, found = torch.cat(subject.state, dim=1), []
    for x in subject.inputs:
        rows = []
        for row in range(subject.batch):
            size = subject.state_size
            old = state[row].detach().expand(size, size).clone().requires_grad_()
            new = _step(subject, kind, x[row].expand(size, -1), old, cut)
            # adding nothing times the state keeps a graph where every path is cut
            total = new.diagonal().sum() + 0.0 * old.sum()
            rows.append(torch.autograd.grad(total, old)[0])
        found.append(torch.stack(rows))
        state = subject.advance_joint(x, state).detach()
    return torch.stack(found)


def ablated_products(subject: Subject, cut: Collection[str], *, kind: str) -> Tensor:
    """Return the products of `ablated_jacobians` for every T from 1, unscaled."""
    steps = ablated_jacobians(subject, cut, kind=kind)
    product = torch.eye(subject.state_size, dtype=steps.dtype).expand_as(steps[0])
    found = []
    for step in steps:
        product = step @ product
        found.append(product)
    return torch.stack(found)


def _step(subject: Subject, kind: str, x: Tensor, joint: Tensor, cut: Collection[str]) -> Tensor:
    step = {"lstm": _lstm, "gru": _gru, "gru-before": _gru_before, "rnn": _rnn}[kind]
    return step(subject.weights, x, joint, cut)


def _rows(weights: dict[str, Tensor], index: int, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Return W x + b and U h + d of one gate."""
    size = weights["weight_hh"].shape[1]
    rows = slice(index * size, (index + 1) * size)
    driven = x @ weights["weight_ih"][rows].T + weights["bias_ih"][rows]
    return driven, h @ weights["weight_hh"][rows].T + weights["bias_hh"][rows]


def _seen(name: str, h: Tensor, cut: Collection[str]) -> Tensor:
    return h.detach() if name in cut else h


def _lstm(weights: dict[str, Tensor], x: Tensor, joint: Tensor, cut: Collection[str]) -> Tensor:
    h, c = joint.chunk(2, dim=1)
    names = ("input", "forget", "candidate", "output")
    i, f, g, o = (
        sum(_rows(weights, index, x, _seen(name, h, cut))) for index, name in enumerate(names)
    )
    new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.cat([torch.sigmoid(o) * torch.tanh(new_c), new_c], dim=1)


def _gru(weights: dict[str, Tensor], x: Tensor, h: Tensor, cut: Collection[str]) -> Tensor:
    r = torch.sigmoid(sum(_rows(weights, 0, x, _seen("reset", h, cut))))
    z = torch.sigmoid(sum(_rows(weights, 1, x, _seen("update", h, cut))))
    driven, recurrent = _rows(weights, 2, x, h)
    n = torch.tanh(driven + r * recurrent)
    n = n.detach() if "candidate" in cut else n
    return z * h + (1 - z) * n


def _gru_before(weights: dict[str, Tensor], x: Tensor, h: Tensor, cut: Collection[str]) -> Tensor:
    r = torch.sigmoid(sum(_rows(weights, 0, x, _seen("reset", h, cut))))
    z = torch.sigmoid(sum(_rows(weights, 1, x, _seen("update", h, cut))))
    n = torch.tanh(sum(_rows(weights, 2, x, r * h)))
    n = n.detach() if "candidate" in cut else n
    return z * h + (1 - z) * n


def _rnn(weights: dict[str, Tensor], x: Tensor, h: Tensor, cut: Collection[str]) -> Tensor:
    return torch.tanh(sum(_rows(weights, 0, x, _seen("candidate", h, cut))))
