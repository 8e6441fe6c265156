"""What every side of a parity question can do: name its weights, run on given ones, differentiate.

A side never keeps the weights that it is run on: they come with each call, so that two sides are
compared on one and the same set of numbers. All numbers are float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.checkpoints.sides.blocks import Layout

Weights = dict[str, Tensor]
Way = Literal["autograd", "by hand", "finite differences", "none"]


@dataclass(frozen=True)
class Problem:
    """One run of a recurrence, and the loss whose gradient is compared.

        L = sum_t <read_h[t], h_t> + sum over the parts of <read_last[part], part_T>

    `xs` is (time, batch, input), `state` the parts before the first step, (batch, hidden) each,
    `read_h` (time, batch, hidden); `read_last` has one (batch, hidden) tensor per part.
    """

    xs: Tensor
    state: State
    read_h: Tensor
    read_last: State

    def loss(self, states: Mapping[str, Tensor]) -> Tensor:
        """Return L of a run's states, part name to (time, batch, hidden)."""
        total = (self.read_h * states["h"]).sum()
        for weights, part in zip(self.read_last, states.values(), strict=True):
            total = total + (weights * part[-1]).sum()
        return total

    def single_step(self, step: int, state: State) -> Problem:
        """Return the problem of one step alone (counted from 0), from a given state."""
        only = slice(step, step + 1)
        return Problem(self.xs[only], state, self.read_h[only], self.read_last)

    def last_alone(self) -> Problem:
        """Return the problem whose loss reads nothing but the last state."""
        read_h = torch.zeros_like(self.read_h)
        read_h[-1] = self.read_h[-1]
        return Problem(self.xs, self.state, read_h, self.read_last)


@dataclass(frozen=True)
class Run:
    """The state after every step, part name to (time, batch, hidden), and the gates shown."""

    states: dict[str, Tensor]
    gates: dict[str, Tensor] = field(default_factory=dict)

    def before(self, step: int, first: State) -> State:
        """Return the state before a step (counted from 0)."""
        if step == 0:
            return first
        return tuple(part[step - 1] for part in self.states.values())


@dataclass(frozen=True)
class Gradients:
    """dL by the inputs, by each part of the first state, and by every weight.

    None is "no gradient arrives here". `unreached` tells the weights whose gradient is None, so
    that zeros can stand in for it everywhere else.
    """

    xs: Tensor
    state: dict[str, Tensor]
    weights: Weights
    unreached: tuple[str, ...] = ()


class Side(ABC):
    """One side of a parity question.

    Attributes:
        name: as asked for, "torch.GRUCell" or "lstm.py:lstm_step".
        what: what it is in words, "a function of NumPy arrays".
        kind: "lstm", "gru" or "rnn", None where nobody knows.
        parts: names of the state's parts, ("h",) or ("h", "c").
        input_size, hidden_size: its widths.
        way: how its gradient is found.
        layout: where each gate's weights stand, None where that was not found out.
        is_file: whether it was read from a file of tensors, whose own numbers then count.
        notes: sentences on what was noticed while it was read and run.
        faults: sentences on what is wrong with it whatever the numbers say.
    """

    name: str
    what: str
    kind: str | None = None
    parts: tuple[str, ...] = ("h",)
    input_size: int
    hidden_size: int
    way: Way = "autograd"
    layout: Layout | None = None
    is_file: bool = False

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.faults: list[str] = []

    @property
    @abstractmethod
    def weights(self) -> Weights:
        """The side's own weights by name."""

    def clear_twin(self) -> Side:
        """Return the same side at widths that shapes tell apart, where its widths are free."""
        return self

    def why_no_gradient(self, problem: Problem) -> str | None:
        """Return why there is no gradient of this problem, None where there is one."""
        del problem
        return "there is none" if self.way == "none" else None

    @abstractmethod
    def run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Run over all of `xs` (time, batch, input) with these weights, without gradients."""

    @abstractmethod
    def gradients(self, weights: Weights, problem: Problem) -> Gradients:
        """Return dL by everything that the side was run on."""

    @property
    def label(self) -> str:
        """The name without its folder, for sentences."""
        return self.name.rpartition("/")[2]

    def note(self, sentence: str) -> None:
        """Add a note, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


class AutogradSide(Side):
    """A side that torch differentiates: a subclass runs with the graph kept."""

    @abstractmethod
    def tracked_run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Run with the graph kept back to these very tensors."""

    def run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Run without gradients."""
        with torch.no_grad():
            return self.tracked_run(weights, xs, state)

    def gradients(self, weights: Weights, problem: Problem) -> Gradients:
        """Return dL by everything, by torch.autograd."""
        with torch.enable_grad():
            leaves = {name: leaf(tensor) for name, tensor in weights.items()}
            xs, state = leaf(problem.xs), tuple(leaf(part) for part in problem.state)
            loss = problem.loss(self.tracked_run(leaves, xs, state).states)
            asked = [xs, *state, *leaves.values()]
            found: tuple[Tensor | None, ...] = (None,) * len(asked)
            if loss.requires_grad:
                found = torch.autograd.grad(loss, asked, allow_unused=True)
        return sorted_gradients(self.parts, list(leaves), asked, found)


def leaf(tensor: Tensor) -> Tensor:
    """Return a copy that gradients are collected at."""
    return tensor.detach().clone().requires_grad_()


def sorted_gradients(
    parts: tuple[str, ...], names: list[str], asked: list[Tensor], found: tuple[Tensor | None, ...]
) -> Gradients:
    """Return gradients by name, from those of [xs, *state, *weights] in this order."""
    filled = [
        torch.zeros_like(given) if gradient is None else gradient.detach()
        for given, gradient in zip(asked, found, strict=True)
    ]
    state, weights = filled[1 : 1 + len(parts)], filled[1 + len(parts) :]
    arrived = found[1 + len(parts) :]
    return Gradients(
        xs=filled[0],
        state=dict(zip(parts, state, strict=True)),
        weights=dict(zip(names, weights, strict=True)),
        unreached=tuple(_without(names, arrived)),
    )


def _without(names: list[str], arrived: tuple[Tensor | None, ...]) -> Iterator[str]:
    for name, gradient in zip(names, arrived, strict=True):
        if gradient is None or not torch.any(gradient):
            yield name
