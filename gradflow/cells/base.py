"""The cell protocol: a recurrence `s_t = F(s_{t-1}, x_t)` as a white box.

A cell names its gates, steps, and (where it can) gives its own derivative in closed form as a
`Linearization`. Cells without a closed form are differentiated by `gradflow.engine.generic`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from gradflow.cells.gates import Gate, Role, Rows
from gradflow.cells.shapes import Block, Drive, Inputs, Part, State, StepJacobian
from gradflow.errors import DtypeError, ShapeError


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

    def diagonal(self) -> DiagonalSteps | None:
        """Return the diagonal form where the units do not see each other, else None."""
        return None

    @abstractmethod
    def dense(self, t: int) -> StepJacobian:
        """Return J_t itself, (batch, state, state)."""


@runtime_checkable
class CellLike(Protocol):
    """What the engine needs of a cell; `Cell` and `ForeignCell` have it."""

    kind: str
    parts: tuple[str, ...]
    kept_part: str
    input_size: int
    hidden_size: int

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates, without the candidate."""

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

    def advance(self, drive: Tensor, state: State) -> State:
        """The new state of `compute` alone."""

    def drive(self, x: Tensor) -> Tensor:
        """What the input adds to the pre-activations, for any number of steps at once."""

    def linearize(
        self, drive: Tensor, states: State, *, open_gates: bool = False
    ) -> Linearization | None:
        """The step Jacobians at the given states, or None without a closed form."""


class Cell(nn.Module, ABC):
    """Base of the built-in cells: torch's parameter names, shapes and row order.

    Parameters are `weight_ih` (gates, input), `weight_hh` (gates, hidden) and, with bias,
    `bias_ih` and `bias_hh` (gates,), so a state_dict goes both ways. An ensemble (see
    `stack_cells`) has one more axis in front: row b of the batch uses the weights [b].

    Args:
        input_size: width of x.
        hidden_size: width of h.
        bias: False leaves both bias vectors out.
        dtype, device: as in torch; torch's defaults where None.
    """

    kind: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ("h",)
    kept_part: ClassVar[str] = "h"
    # (name, role) in torch's row order
    row_order: ClassVar[tuple[tuple[str, Role], ...]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if size < 1:
                raise ShapeError(f"{name} counts units, so it is at least 1; got {size}.")
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = len(self.row_order) * hidden_size
        options = {"dtype": dtype, "device": device}
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size, **options))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size, **options))
        self.bias_ih = nn.Parameter(torch.empty(rows, **options)) if bias else None
        self.bias_hh = nn.Parameter(torch.empty(rows, **options)) if bias else None
        bound = hidden_size**-0.5  # torch's own default: uniform within 1/sqrt(hidden)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    # ---- what the cell is

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return self.weight_hh.dtype

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.weight_hh.device

    def rows(self, name: str) -> slice:
        """Return the rows that the gate (or the candidate) owns in every parameter."""
        index = [gate for gate, _ in self.row_order].index(name)
        return slice(index * self.hidden_size, (index + 1) * self.hidden_size)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates in torch's row order, without the candidate."""
        return tuple(self._gate(n, role) for n, role in self.row_order if role != "candidate")

    @property
    def candidate_gate(self) -> Gate:
        """The rows that make the candidate."""
        return next(self._gate(n, role) for n, role in self.row_order if role == "candidate")

    def _gate(self, name: str, role: Role) -> Gate:
        rows = self.rows(name)
        biases = ("bias_ih", "bias_hh") if self.bias_ih is not None else ()
        return Gate(
            name=name,
            role=role,
            bias=tuple(Rows(parameter, rows) for parameter in biases),
            weights=(Rows("weight_ih", rows), Rows("weight_hh", rows)),
            recurrent=Rows("weight_hh", rows),
        )

    # ---- what the cell does

    def initial_state(self, batch: int = 1) -> State:
        """Return the zero state: one (batch, hidden) tensor per part."""
        shape = (batch, self.hidden_size)
        return tuple(self.weight_hh.new_zeros(shape) for _ in self.parts)

    def step(self, x: Inputs, state: State) -> Step:
        """Run one step for a batch.

        Args:
            x: (batch, input).
            state: one (batch, hidden) tensor per part, in the order of `parts`.

        Returns:
            Every gate by name, the candidate and the new state.

        Raises:
            ShapeError: wrong rank, width or batch of an argument, or wrong number of parts.
            DtypeError: an argument's dtype is not the cell's.
        """
        require_state(self, state, batch=x.shape[0] if x.dim() == 2 else None)
        require_tensor("x", x, (state[0].shape[0], self.input_size), self.dtype)
        return self.compute(self.drive(x), state)

    def forward(self, x: Tensor, state: Tensor | State | None = None) -> Tensor | State:
        """Run one step in torch's call form: `cell(x, h)`, or `cell(x, (h, c))` for the LSTM.

        Returns:
            The new h, or (h, c); zeros stand in for a state that is not given.
        """
        given = self.initial_state(x.shape[0]) if state is None else state
        new = self.step(x, (given,) if isinstance(given, Tensor) else given).state
        return new[0] if len(self.parts) == 1 else new

    def drive(self, x: Inputs) -> Drive:
        """Return W_ih x + b_ih (..., batch, gates): all of a step that the state does not enter."""
        return affine(x, self.weight_ih, self.bias_ih)

    def advance(self, drive: Drive, state: State) -> State:
        """Return the new state only, without checks: for loops that checked once."""
        return self.compute(drive, state).state

    @abstractmethod
    def compute(self, drive: Drive, state: State) -> Step:
        """Return the step from the input's share of the pre-activations, without checks."""

    @abstractmethod
    def linearize(self, drive: Drive, states: State, *, open_gates: bool = False) -> Linearization:
        """Return the step Jacobians at `states`, in closed form.

        Args:
            drive: (time, batch, gates), from `drive`.
            states: the states *before* each step, one (time, batch, hidden) tensor per part.
            open_gates: put 1 for every gate and slope that a finite pre-activation can never
                make zero. A product that is zero even then is zero for the structure's sake, and
                not by underflow.
        """


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ weight^T + bias; a weight with a leading axis serves each batch row its own."""
    if weight.dim() == 2:
        return torch.nn.functional.linear(x, weight, bias)
    product = torch.einsum("...bi,bgi->...bg", x, weight)
    return product if bias is None else product + bias


def require_tensor(name: str, tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise unless the tensor has this shape and dtype; the message names both sides."""
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a torch.Tensor; got {type(tensor).__name__}.")
    if tensor.dim() != len(shape):
        raise ShapeError(
            f"{name} must have {len(shape)} axes, (batch, {'input' if name == 'x' else 'hidden'}); "
            f"got {tensor.dim()}: shape {tuple(tensor.shape)}."
        )
    if tensor.shape[-1] != shape[-1]:
        raise ShapeError(
            f"{name} must be {shape[-1]} wide, as the cell is; got {tensor.shape[-1]}: "
            f"shape {tuple(tensor.shape)}."
        )
    if tensor.shape[0] != shape[0]:
        raise ShapeError(
            f"{name} must have as many batch rows as the rest: {shape[0]}; "
            f"got {tensor.shape[0]}: shape {tuple(tensor.shape)}."
        )
    if tensor.dtype != dtype:
        raise DtypeError(
            f"{name} must have the cell's dtype {dtype}; got {tensor.dtype}. "
            f"Convert one of them: {name}.to({dtype}), or cell.to({tensor.dtype})."
        )


def require_state(cell: CellLike | Cell, state: State, *, batch: int | None = None) -> None:
    """Raise unless `state` has one (batch, hidden) tensor of the cell's dtype per part."""
    if isinstance(state, Tensor) or len(state) != len(cell.parts):
        got = "one tensor" if isinstance(state, Tensor) else f"{len(state)}"
        raise ShapeError(
            f"the state of a {cell.kind} is a tuple of {len(cell.parts)} tensors "
            f"({', '.join(cell.parts)}); got {got}."
        )
    rows = state[0].shape[0] if batch is None and state[0].dim() == 2 else batch
    for part, tensor in zip(cell.parts, state, strict=True):
        require_tensor(part, tensor, (rows or 1, cell.hidden_size), cell.dtype)
