"""The slow twin of a backward by hand: torch's cell unrolled, every state kept, autograd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.reference.subject import Subject

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Loss:
    """L = sum_t <own_t, h_t> + <final, s_T>: linear, so `own` and `final` are its derivatives."""

    own: Array
    final: tuple[Array, ...]


@dataclass(frozen=True)
class AutogradGradients:
    """Autograd's answers in the layout of the cell under test, and the value of the loss."""

    loss: float
    hidden: Array
    parameters: dict[str, Array]
    inputs: Array
    initial_state: tuple[Array, ...]
    states: dict[str, Array]


def random_loss(subject: Subject, *, seed: int = 5) -> Loss:
    """Return a loss that reads every h_t and every part of the last state."""
    generator = np.random.default_rng(seed)
    shape = (subject.batch, subject.hidden_size)
    final = tuple(generator.normal(size=shape) for _ in subject.parts)
    return Loss(generator.normal(size=(subject.steps, *shape)), final)


def autograd_gradients(subject: Subject, loss: Loss) -> AutogradGradients:
    """Differentiate the loss by everything that the subject is computed from."""
    inputs = subject.inputs.clone().requires_grad_()
    start = tuple(part.clone().requires_grad_() for part in subject.state)
    states = [start]
    for x in inputs:
        states.append(subject.advance(x, states[-1]))
        for part in states[-1]:
            part.retain_grad()
    hidden = torch.stack([state[0] for state in states[1:]])
    value = (torch.tensor(loss.own) * hidden).sum()
    for part, weight in zip(states[-1], loss.final, strict=True):
        value = value + (torch.tensor(weight) * part).sum()
    subject.module.zero_grad()
    value.backward()
    return AutogradGradients(
        loss=float(value.detach()),
        hidden=hidden.detach().numpy(),
        parameters={name: _grad(p) for name, p in subject.module.named_parameters()},
        inputs=_grad(inputs),
        initial_state=tuple(_grad(part) for part in start),
        states={
            part: np.stack([_grad(state[index]) for state in states[1:]])
            for index, part in enumerate(subject.parts)
        },
    )


def _grad(tensor: Tensor) -> Array:
    """Return a tensor's gradient; None means that nothing depends on it."""
    gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
    return np.asarray(gradient)
