"""A user's torch.nn.Module as a cell: any recurrence in torch's call form, measured as it is."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells.arguments import require_state, require_tensor
from gradflow.cells.call_form import CallForm
from gradflow.cells.declared_form import (
    attribute_of,
    call_initial_state,
    declared_kept_part,
    is_lazy,
    require_module,
)
from gradflow.cells.declared_gates import declared_gates, values_when_held
from gradflow.cells.find_form import find_form, float_like
from gradflow.cells.foreign_checks import Probe, require_cell, trial_copy
from gradflow.cells.foreign_gates import call_gate_values, require_gate_widths
from gradflow.cells.foreign_notes import note_keep_gate, note_no_gradient, note_training_mode
from gradflow.cells.gates import Gate
from gradflow.cells.protocol import Linearization, Step
from gradflow.cells.shapes import State
from gradflow.cells.shared_module import SharedModule


class ForeignCell(SharedModule):
    """A user's module, `cell(x, h)` or `cell(x, (h, c, ...))`, behind the protocol of a cell.

    The module is shared, not copied, and put into evaluation mode. Parameters keep the names that
    they have in it. It may tell about itself, by attributes:

    - `input_size`, `hidden_size`, `state_size` (a width per part), `parts` (names of the parts),
      or `initial_state(batch)`; what it does not tell is tried (see `find_form`);
    - `kept_part`: the part that is measured; "c" where there is one, else the first;
    - `gates`: a list of gates (see `declared_gates`), which can then be held;
    - `gate_values(x, state)`: a dict with every gate's value, (batch, width) each. Without it a
      gate's value is known only where its weights are zero, that is, held.

    `notes` tells in sentences what one should know before trusting a number, such as dropout that
    is now off.

    Args:
        module: the user's.
        input_size, hidden_size: its widths, where it does not tell them itself.
        sizes_if_free: (input, hidden) to take where it does not tell and works at any width.
        prints_to_stderr: keep what the module prints out of standard output.

    Raises:
        CellLoadError: it is no cell: what it breaks (see `foreign_checks`), in words.

    >>> class Leaky(nn.Module):
    ...     def forward(self, x, h):
    ...         return 0.9 * h + 0.1 * torch.tanh(x)
    >>> cell = ForeignCell(Leaky(), input_size=2, hidden_size=2)
    >>> cell.parts, cell.step(torch.ones(1, 2), cell.initial_state(1))["h"].shape
    (('h',), torch.Size([1, 2]))
    """

    notes: tuple[str, ...]

    def __init__(
        self,
        module: nn.Module,
        *,
        input_size: int | None = None,
        hidden_size: int | None = None,
        sizes_if_free: tuple[int, int] | None = None,
        prints_to_stderr: bool = False,
    ) -> None:
        super().__init__()
        module = require_module(module)
        was_training = module.training
        self._prints_to_stderr = prints_to_stderr
        with self._printing_aside():
            self._form = find_form(
                trial_copy(module.eval()) or module,
                input_size=input_size,
                hidden_size=hidden_size,
                sizes_if_free=sizes_if_free,
            )
            if is_lazy(module):
                Probe.draw(module, self._form).answer()  # the first call makes the weights
            self._kept_part = declared_kept_part(module, self._form.parts)
            self._declared = declared_gates(module)
            self.notes = self._examine(module, was_training=was_training)
        self.share(module)

    def _examine(self, module: nn.Module, *, was_training: bool) -> tuple[str, ...]:
        """Raise unless the module is a cell; return what one should know of it."""
        probe = Probe.draw(trial_copy(module) or module, self._form)
        require_cell(probe)
        require_gate_widths(probe, self._declared, self.hidden_size)
        notes = note_no_gradient(probe) + note_keep_gate(probe, self._declared, self._kept_part)
        return notes + (note_training_mode(probe) if was_training else ())

    # ---- what the cell is

    @property
    def kind(self) -> str:
        """The name of the module's class."""
        return type(self.module).__name__

    @property
    def form(self) -> CallForm:
        """How the module is called."""
        return self._form

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the state's parts: as declared, else (h), (h, c) or (s0, s1, ...)."""
        return self._form.parts

    @property
    def part_sizes(self) -> tuple[int, ...]:
        """Width of each part of the state."""
        return self._form.sizes

    @property
    def kept_part(self) -> str:
        """The part that is measured: as declared, else "c" where there is one, else the first."""
        return self._kept_part

    @property
    def input_size(self) -> int:
        """Width of x."""
        return self._form.input_size

    @property
    def hidden_size(self) -> int:
        """Width of the kept part."""
        return self._form.sizes[self._form.parts.index(self._kept_part)]

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The declared gates, without the candidate."""
        return tuple(gate for gate in self._declared if gate.role != "candidate")

    @property
    def keep_gate(self) -> Gate | None:
        """The first declared gate of role keep, or None."""
        return next((gate for gate in self._declared if gate.role == "keep"), None)

    @property
    def candidate_gate(self) -> Gate | None:
        """The declared candidate, or None."""
        return next((gate for gate in self._declared if gate.role == "candidate"), None)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first floating parameter (or buffer)."""
        return float_like(self).dtype

    @property
    def device(self) -> torch.device:
        """The device of the first floating parameter (or buffer)."""
        return float_like(self).device

    # ---- what the cell does

    def initial_state(self, batch: int = 1) -> State:
        """Return the module's own first state, or zeros, in the module's dtype."""
        like = float_like(self)
        if callable(attribute_of(self.module, "initial_state")):
            own, _ = call_initial_state(self.module, batch)
            return tuple(part.to(like) for part in own)
        return tuple(like.new_zeros(batch, size) for size in self.part_sizes)

    def step(self, x: Tensor, state: State) -> Step:
        """Run one step for a batch.

        Args:
            x: (batch, input).
            state: one (batch, width) tensor per part, in the order of `parts`.

        Returns:
            The new state; the gates that the module shows or that are held.

        Raises:
            ShapeError, DtypeError: x or the state do not fit.
            CellCallError: the module raised, or answered with something that is no new state.
        """
        self._require_arguments(x, state)
        return self.compute(x, state)

    def forward(self, x: Tensor, state: Tensor | State | None = None) -> Tensor | State:
        """Run one step in torch's call form; zeros stand in for a state that is not given."""
        given = self.initial_state(x.shape[0]) if state is None else state
        packed = (given,) if isinstance(given, Tensor) else tuple(given)
        self._require_arguments(x, packed)
        new = self.advance(x, packed)
        return new[0] if len(self.parts) == 1 else new

    def drive(self, x: Tensor) -> Tensor:
        """Return x: the module alone knows what becomes of it."""
        return x

    def compute(self, drive: Tensor, state: State) -> Step:
        """Return the step from x (batch, input), without checks of the arguments."""
        new = self.advance(drive, state)
        values = dict(self.gate_values(drive, state))
        return Step(
            parts=self.parts, state=new, candidate=values.pop("candidate", None), gates=values
        )

    def advance(self, drive: Tensor, state: State) -> State:
        """Return the new state alone."""
        with self._printing_aside():
            return self._form.call(self.module, drive, state)

    def gate_values(self, x: Tensor, state: State) -> Mapping[str, Tensor]:
        """Return the gates that the module shows, and those that are held, (batch, width) each."""
        rows, width = x.shape[0], self.hidden_size
        values = {
            name: value.expand(rows, width if value.shape[-1] == 1 else -1)
            for name, value in values_when_held(self.module, self.gates).items()
        }
        with self._printing_aside():
            return values | call_gate_values(self.module, self._form, x, state)

    def linearize(
        self,
        drive: Tensor,  # noqa: ARG002  # the protocol's
        states: State,  # noqa: ARG002
        *,
        open_gates: bool = False,  # noqa: ARG002
        cut: Collection[str] = (),  # noqa: ARG002
    ) -> Linearization | None:
        """Return None: a user's module has no closed form; torch.func differentiates it."""
        return None

    def _require_arguments(self, x: Tensor, state: State) -> None:
        require_state(self, state)
        require_tensor("x", x, (state[0].shape[0], self.input_size), self.dtype)

    def _printing_aside(self) -> contextlib.AbstractContextManager[Any]:
        if self._prints_to_stderr:
            return contextlib.redirect_stdout(sys.stderr)
        return contextlib.nullcontext()
