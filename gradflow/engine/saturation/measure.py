"""Saturation: run a cell forward and backward on huge numbers, and see what stays finite.

The loss is the mean of h over steps, batch and units, L = (1/N) sum h. Its gradient, 1/N at every
h, is handed to autograd as it is: the sum, which may overflow where no h does, is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import State
from gradflow.engine.saturation.graph import StepGraph
from gradflow.engine.saturation.subjects import Subject, Values, gates_in_graph


@dataclass(frozen=True)
class Feed:
    """What one trial feeds to a cell whose weights are set: x (time, batch, input), first state."""

    xs: Tensor
    start: State


@dataclass(frozen=True)
class Measured:
    """What one trial found; None stands for what does not exist: no gradient, no gate to be seen.

    `zero_slopes` maps each gate that is seen to (derivatives that are exactly zero, derivatives),
    the candidate under its name too; `has_gates` says that the cell has more than a candidate.
    """

    candidate: str
    has_gates: bool
    outputs_finite: bool
    state_gradients_finite: bool | None
    parameter_gradients_finite: bool | None
    gates_in_range: bool | None
    zero_slopes: Mapping[str, tuple[int, int]]

    @property
    def all_finite(self) -> bool:
        """True where nothing at all is inf or nan."""
        gradients = (self.state_gradients_finite, self.parameter_gradients_finite)
        return self.outputs_finite and False not in gradients

    def zero_slope_fraction(self, gate: str | None) -> float | None:
        """Return the share of gate derivatives that are exactly zero, None where none is seen.

        Args:
            gate: a gate, for its own; None for all gates but the candidate, which stands in where
                the cell has no gate.
        """
        chosen = [
            counts
            for name, counts in self.zero_slopes.items()
            if (name == gate if gate is not None else self.is_gate(name))
        ]
        derivatives = sum(count for _, count in chosen)
        return sum(zero for zero, _ in chosen) / derivatives if derivatives else None

    def is_gate(self, name: str) -> bool:
        """Return whether a squashed value is a gate's; the candidate is where there is no other."""
        return name != self.candidate or not self.has_gates


def measure(subject: Subject, feed: Feed) -> Measured:
    """Run a subject forward and backward and report what is finite.

    The gates of a module that does not show them are read off the graph, torch.sigmoid by
    torch.sigmoid.
    """
    graph = StepGraph(subject.parameters)
    states, gates = [leaf_state(feed.start)], []
    for x in feed.xs:
        state, shown = subject.step(x, states[-1])
        if not shown:
            shown = gates_in_graph(subject, graph, graph.added(state))
        states.append(state)
        gates.append(shown)
    by_state, by_parameter = mean_gradients(states, subject.parameters)
    return Measured(
        candidate=subject.candidate_name,
        has_gates=bool(subject.cell.gates) or subject.implementation == "user",
        outputs_finite=_all_finite([part for state in states[1:] for part in state]),
        state_gradients_finite=_all_finite(by_state) if by_state else None,
        parameter_gradients_finite=_all_finite(list(by_parameter.values()))
        if by_parameter
        else None,
        gates_in_range=_in_range(gates, subject.candidate_name),
        zero_slopes=_count_zero_slopes(gates, subject.candidate_name),
    )


def leaf_state(start: State) -> State:
    """Return a first state whose gradient can be asked for."""
    return tuple(part.detach().clone().requires_grad_() for part in start)


def mean_gradients(
    states: Sequence[State], parameters: Mapping[str, Tensor]
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Return the gradients of the mean of h by every state and by every parameter.

    Args:
        states: the state before the first step and after each; part 0 is h.
        parameters: by name.

    Returns:
        The gradients by (state, part), those that exist, in order; and by parameter.
    """
    outputs = [state[0] for state in states[1:] if state[0].requires_grad]
    if not outputs:
        return [], {}
    share = _share(sum(state[0].numel() for state in states[1:]), outputs[0].dtype)
    parts = [part for state in states for part in state if part.requires_grad]
    gradients = torch.autograd.grad(
        outputs,
        [*parts, *parameters.values()],
        [torch.full_like(output, share) for output in outputs],
        allow_unused=True,
    )
    found: list[Tensor | None] = list(gradients)
    by_state = [gradient for gradient in found[: len(parts)] if gradient is not None]
    pairs = zip(parameters, found[len(parts) :], strict=True)
    return by_state, {name: gradient for name, gradient in pairs if gradient is not None}


def _share(count: int, dtype: torch.dtype) -> float:
    """Return 1/count, but no less than the least normal number: 1/N of a long run is no zero."""
    return max(1.0 / count, torch.finfo(dtype).tiny)


def _all_finite(tensors: Sequence[Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def _in_range(steps: Sequence[Values], candidate: str) -> bool | None:
    """Return whether every gate lies in [0, 1]; a gate that is nan does not."""
    gates = [v for values in steps for name, v in values.items() if name != candidate]
    if not gates:
        return None
    return all(bool(((value >= 0) & (value <= 1)).all()) for value in gates)


def _count_zero_slopes(steps: Sequence[Values], candidate: str) -> dict[str, tuple[int, int]]:
    """Count the slopes that are zero: s(1 - s) at s = 0 or 1, and 1 - t^2 at t = -1 or 1.

    Both are computed by autograd from the value itself, so they are zero there and nowhere else.
    """
    counts: dict[str, tuple[int, int]] = {}
    for values in steps:
        for name, value in values.items():
            ends = (value.abs() == 1) if name == candidate else (value == 0) | (value == 1)
            zero, count = counts.get(name, (0, 0))
            counts[name] = (zero + int(ends.sum()), count + value.numel())
    return counts


def largest(dtype: torch.dtype) -> float:
    """Return the largest finite number of a dtype.

    >>> largest(torch.float16)
    65504.0
    """
    return torch.finfo(dtype).max


def root_of_largest(dtype: torch.dtype) -> float:
    """Return the largest number of a dtype whose square is finite in it.

    >>> root_of_largest(torch.float16)
    255.875
    """
    root = torch.tensor(math.sqrt(largest(dtype)), dtype=dtype)
    while not torch.isfinite(root * root):
        root = torch.nextafter(root, torch.zeros_like(root))
    return root.item()


def rounded(value: float, dtype: torch.dtype) -> float | None:
    """Return the dtype's number next to `value`, None where that is infinite.

    >>> rounded(1e4, torch.bfloat16), rounded(1e8, torch.float16)
    (9984.0, None)
    """
    nearest = torch.tensor(value, dtype=torch.float64).to(dtype).item()
    return nearest if math.isfinite(nearest) else None
