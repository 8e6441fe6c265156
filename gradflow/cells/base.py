"""The base of the built-in cells: torch's parameter names, checked steps, torch's call form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from numbers import Integral
from typing import ClassVar

import torch
from torch import Tensor, nn

from gradflow.cells.arguments import require_state, require_tensor
from gradflow.cells.gates import Gate, Role, Rows
from gradflow.cells.protocol import CellLike, DiagonalSteps, Linearization, Step
from gradflow.cells.recurrence import run_by_steps
from gradflow.cells.shapes import Drive, Inputs, State
from gradflow.errors import DtypeError, ShapeError

__all__ = [
    "Cell",
    "CellLike",
    "DiagonalSteps",
    "Linearization",
    "Step",
    "affine",
    "require_state",
    "require_tensor",
]


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

    def __init_subclass__(cls) -> None:
        """Let a subclass that steps in its own way run in that way too."""
        super().__init_subclass__()
        own = vars(cls)
        if ("compute" in own or "advance" in own) and "run" not in own:
            cls.run = Cell.run  # type: ignore[method-assign]

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
        sizes: dict[str, object] = {"input_size": input_size, "hidden_size": hidden_size}
        for name, size in sizes.items():
            if not isinstance(size, Integral) or int(size) < 1:
                raise ShapeError(
                    f"{name} counts units, so it is a whole number and at least 1; got {size!r}."
                )
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise DtypeError(
                f"a cell computes in real numbers, such as torch.float64; got {dtype!r}."
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = len(self.row_order) * hidden_size

        def empty(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape, dtype=dtype, device=device))

        self.weight_ih = empty(rows, input_size)
        self.weight_hh = empty(rows, hidden_size)
        self.bias_ih = empty(rows) if bias else None
        self.bias_hh = empty(rows) if bias else None
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

    @property
    def part_sizes(self) -> tuple[int, ...]:
        """Width of each part of the state: hidden_size, for all of them."""
        return (self.hidden_size,) * len(self.parts)

    def rows(self, name: str) -> slice:
        """Return the rows that the gate (or the candidate) owns in every parameter."""
        index = [gate for gate, _ in self.row_order].index(name)
        return slice(index * self.hidden_size, (index + 1) * self.hidden_size)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates in torch's row order, without the candidate."""
        return tuple(self._gate(n, role) for n, role in self.row_order if role != "candidate")

    @property
    def keep_gate(self) -> Gate | None:
        """The gate that multiplies the kept part: forget (LSTM), update (GRU), none (RNN)."""
        return next((gate for gate in self.gates if gate.role == "keep"), None)

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

    def step(self, x: Tensor, state: State) -> Step:
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
        require_state(self, state)
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

    def run(self, drive: Drive, state: State) -> State:
        """Return every state of a run: (time + 1, batch, hidden) per part, `state` the first.

        Without checks and without a graph; here step by step. A built-in cell has a faster loop.

        Args:
            drive: (time, batch, gates), from `drive`.
            state: the state before the first step.
        """
        return run_by_steps(self, drive, state)

    @abstractmethod
    def compute(self, drive: Drive, state: State) -> Step:
        """Return the step from the input's share of the pre-activations, without checks."""

    @abstractmethod
    def linearize(
        self,
        drive: Drive,
        states: State,
        *,
        open_gates: bool = False,
        cut: Collection[str] = (),
    ) -> Linearization:
        """Return the step Jacobians at `states`, in closed form.

        Args:
            drive: (time, batch, gates), from `drive`.
            states: the states *before* each step, one (time, batch, hidden) tensor per part.
            open_gates: put 1 for every gate and slope that a finite pre-activation can never
                make zero. A product that is zero even then is zero for the structure's sake, and
                not by underflow.
            cut: gates (or "candidate") that are taken as constants: their values stay, their
                dependence on the old state is left out of the derivative.
        """


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ weight^T + bias; a weight with a leading axis serves each batch row its own."""
    if weight.dim() == 2:
        return torch.nn.functional.linear(x, weight, bias)
    product = torch.einsum("...bi,bgi->...bg", x, weight)
    return product if bias is None else product + bias
