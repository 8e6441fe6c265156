"""The cell protocol: a recurrence `s_t = F(s_{t-1}, x_t)` as a white box.

A cell names its gates, steps, and (where it can) gives its own derivative in closed form as a
`Linearization`. Cells without a closed form are differentiated by `gradflow.engine.generic`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from gradflow.cells.gates import Gate
from gradflow.cells.shapes import Block, GateBlock, Part, State, StepJacobian


@dataclass(frozen=True)
class Step:
    """Everything that one step computed: each tensor is (..., batch, hidden).

    `gates` holds every gate by name, `candidate` the proposed content (None where the cell has
    none), `state` the new state in the order of the cell's parts.
    """

    parts: tuple[str, ...]
    state: State
    gates: Mapping[str, Tensor]
    candidate: Tensor | None

    def __getitem__(self, name: str) -> Tensor:
        """Return a part of the new state, a gate or the candidate by its name."""
        if name in self.parts:
            return self.state[self.parts.index(name)]
        if name == "candidate" and self.candidate is not None:
            return self.candidate
        return self.gates[name]


@dataclass(frozen=True)
class DiagonalSteps:
    """Step Jacobians of a cell whose units do not see each other (recurrent weights all zero).

    `keep` is d(kept part)/d(kept part) for each unit; `readout[p]` is d(part p)/d(kept part),
    both of the *new* state. No part but the kept one is felt by the next step.
    """

    keep: Part
    readout: Mapping[str, Part]


@dataclass(frozen=True)
class StepFactors:
    """A few step Jacobians in the form that costs least to multiply by, P' = J_t P.

        P' = matrix_t P[read] + keep_t * P[kept]        (the second term once for every part)

    `matrix` is (time, batch, state, read), dense; `keep` (time, batch, parts, hidden, 1) scales the
    rows of P[kept], or is None where no part is kept. `read` and `kept` are rows of the old state.
    """

    matrix: Tensor
    read: slice
    keep: Tensor | None = None
    kept: slice | None = None


class Linearization(ABC):
    """The step Jacobians J_1 ... J_n of a run of steps, as operators.

    `steps` counts them; `keep` is the keep gate as realised (time, batch, hidden), whose product
    over time is the direct path, or None where the cell has no keep gate (or does not show it).
    """

    steps: int
    keep: Tensor | None = None

    @abstractmethod
    def push(self, t: int, tangent: Block, out: Tensor | None = None) -> Block:
        """Return J_t @ tangent, (batch, state, columns); written into `out` where given."""

    @abstractmethod
    def pull(self, t: int, cotangent: Block) -> Block:
        """Return J_t^T @ cotangent, (batch, state, columns)."""

    def pull_drive(self, t: int, cotangent: Block) -> GateBlock:
        """Return (ds_t/d drive_t)^T @ cotangent, (batch, gates, columns).

        W_ih^T times it is what reaches the input x_t: the way down a stack of layers.
        """
        raise NotImplementedError(f"{type(self).__name__} does not tell how its input enters")

    def factors(
        self,
        first: int,
        last: int,
        room: Tensor | None = None,  # noqa: ARG002 - nothing is made here
    ) -> StepFactors:
        """Return J_first ... J_{last-1} as factors; here the plain matrices.

        Args:
            first, last: the steps, from `first` to before `last`.
            room: flat memory that the matrices may be put into; the next call that is given it
                writes over them.
        """
        dense = torch.stack([self.dense(t) for t in range(first, last)])
        return StepFactors(matrix=dense, read=slice(0, dense.shape[-1]))

    def diagonal(self) -> DiagonalSteps | None:
        """Return the diagonal form where the units do not see each other, else None."""
        return None

    def detour(self) -> Linearization:
        """Return the steps without their direct path, J_t - D_t, by formula and not by subtraction.

        D_t is the keep gate on the kept part's own diagonal and zero elsewhere. Without a keep
        gate there is no direct path, and all is detour. A detour's `keep` is None.
        """
        if self.keep is None:
            return self
        raise NotImplementedError(f"{type(self).__name__} has a keep gate and no detour of its own")

    def rank_bound(self) -> Tensor | None:
        """Return the rank that no J_t exceeds by the way it is built, (time, batch).

        A dense J_t hides it: rounding makes a matrix of rank H look like one of full rank. None
        where nothing is known.
        """
        return None

    @abstractmethod
    def dense(self, t: int) -> StepJacobian:
        """Return J_t itself, (batch, state, state)."""


@runtime_checkable
class Recurrence(Protocol):
    """What running needs: a step from what `drive` made of the input; rows see only themselves."""

    @property
    def hidden_size(self) -> int:
        """Width of the kept part."""

    def drive(self, x: Tensor) -> Tensor:
        """What the input adds to the pre-activations, for any number of steps at once."""

    def advance(self, drive: Tensor, state: State) -> State:
        """The new state."""


@runtime_checkable
class CellLike(Recurrence, Protocol):
    """What the engine needs of a cell; `Cell` and `ForeignCell` have it."""

    @property
    def kind(self) -> str:
        """What messages call the cell."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the state's parts, in order."""

    @property
    def kept_part(self) -> str:
        """The part that the keep gate multiplies; what is measured unless another is asked for."""

    @property
    def input_size(self) -> int:
        """Width of x."""

    @property
    def part_sizes(self) -> tuple[int, ...]:
        """Width of each part of the state, in the order of `parts`; they may differ."""

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates, without the candidate."""

    @property
    def keep_gate(self) -> Gate | None:
        """The gate that multiplies the kept part, where the cell has one."""

    @property
    def candidate_gate(self) -> Gate | None:
        """The rows that make the candidate, where the cell tells them."""

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the cell computes in."""

    @property
    def device(self) -> torch.device:
        """The device that the parameters are on."""

    def initial_state(self, batch: int = 1) -> State:
        """A zero state of `batch` rows."""

    def step(self, x: Tensor, state: State) -> Step:
        """One step."""

    def compute(self, drive: Tensor, state: State) -> Step:
        """One step without checks, from what `drive` made of the input."""

    def linearize(
        self,
        drive: Tensor,
        states: State,
        *,
        open_gates: bool = False,
        cut: Collection[str] = (),
    ) -> Linearization | None:
        """The step Jacobians at the given states, or None without a closed form."""
