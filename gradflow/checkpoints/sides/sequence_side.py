"""A user's layer as a side: it takes a whole sequence and a first state.

Which axis is time is asked of the layer itself. Its answer up to a step must not move with later
inputs, and a row's not with other rows: that holds for one order of the axes at most, whatever
`batch_first` says.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells.shapes import State
from gradflow.cells.user_code import describe_fault
from gradflow.checkpoints.sides.loose_calls import quietly, widths_of
from gradflow.checkpoints.sides.module_side import printing_aside
from gradflow.checkpoints.sides.protocol import AutogradSide, Run, Weights
from gradflow.checkpoints.sides.swapping import swapped, tensor_at
from gradflow.errors import CellCallError, GradflowError

PROBE_STEPS, PROBE_BATCH = 4, 2


@dataclass(frozen=True)
class SequenceForm:
    """How a layer is called: the axes of its sequence, and the form of its state.

    `layered` says that the state has torch's first axis of layers, (1, batch, hidden).
    """

    parts: int
    batch_first: bool
    layered: bool

    def call(self, module: nn.Module, xs: Tensor, state: State) -> tuple[Tensor, Tensor | None]:
        """Run (time, batch, input); return every h, (time, batch, hidden), and the last c.

        Raises:
            CellCallError: the layer fails, or answers in another form.
        """
        given = xs.transpose(0, 1) if self.batch_first else xs
        first = tuple(part.unsqueeze(0) if self.layered else part for part in state)
        try:
            answer = module(given, first if self.parts > 1 else first[0])
        except GradflowError:
            raise
        except (Exception, SystemExit) as error:
            raise CellCallError(f"layer(x, state) failed: {describe_fault(error)}") from error
        wide = (*xs.shape[:2], state[0].shape[1])
        return self._read(answer, wide)

    def _read(self, answer: Any, wide: tuple[int, ...]) -> tuple[Tensor, Tensor | None]:
        out = answer[0] if isinstance(answer, tuple | list) and answer else answer
        if not isinstance(out, Tensor) or out.dim() != 3:
            raise CellCallError("a layer answers with (outputs, state), outputs of three axes.")
        hs = out.transpose(0, 1) if self.batch_first else out
        if tuple(hs.shape) != wide:
            raise CellCallError(f"the outputs must be {wide}; got {tuple(hs.shape)}.")
        if self.parts == 1:
            return hs, None
        last = [t for t in _tensors(answer[1:]) if t.numel() == wide[1] * wide[2]]
        if len(last) < 2:
            raise CellCallError("a layer of an LSTM answers with (outputs, (h, c)).")
        return hs, last[1].reshape(wide[1:])


class SequenceSide(AutogradSide):
    """A user's layer; c is read by running it on every beginning of the sequence."""

    def __init__(
        self, module: nn.Module, form: SequenceForm, widths: tuple[int, int], *, name: str
    ) -> None:
        super().__init__()
        self.name, self.what = name, "a layer over sequences"
        self.module, self.form = module, form
        self.parts = ("h", "c")[: form.parts]
        self.input_size, self.hidden_size = widths
        said = getattr(module, "batch_first", None)
        if isinstance(said, bool) and said != form.batch_first:
            self.faults.append(
                f"{self.label} says batch_first={said}, but its recurrence runs over axis "
                f"{int(form.batch_first)}: time and batch are mixed up."
            )

    @property
    def weights(self) -> Weights:
        """The layer's parameters."""
        names = [name for name, _ in self.module.named_parameters()]
        return {name: tensor_at(self.module, name).detach() for name in names}

    def tracked_run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Run the layer on xs[:1], xs[:2], ... xs, with these very tensors for its weights."""
        with swapped(self.module, weights), printing_aside(self):
            stops = range(1, len(xs) + 1) if self.form.parts > 1 else [len(xs)]
            runs = [self.form.call(self.module, xs[:stop], _copies(state)) for stop in stops]
        states = {"h": runs[-1][0]}
        if self.form.parts > 1:
            states["c"] = torch.stack([c for _, c in runs if c is not None])
        return Run(states)


def sequence_side(module: nn.Module, widths: tuple[int, int], *, name: str) -> SequenceSide | None:
    """Return a user's layer as a side, None where it is none.

    Args:
        module: in evaluation mode, float64.
        widths: input and hidden width, to be taken where the module does not tell its own.
        name: as asked for.
    """
    own = widths_of(module, widths)
    for parts, layered in itertools.product((2, 1), (False, True)):
        for batch_first in (False, True):
            form = SequenceForm(parts, batch_first, layered)
            with contextlib.suppress(CellCallError), quietly():
                if _is_causal(module, form, own):
                    return SequenceSide(module, form, own, name=name)
    return None


def _is_causal(module: nn.Module, form: SequenceForm, widths: tuple[int, int]) -> bool:
    """Return whether outputs move with earlier inputs of their own row and with nothing else."""
    generator = torch.Generator().manual_seed(5)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    xs = normal(PROBE_STEPS, PROBE_BATCH, widths[0])
    state = tuple(normal(PROBE_BATCH, widths[1]) for _ in range(form.parts))
    usual, _ = form.call(module, xs, _copies(state))
    moved = xs.clone()
    moved[1, 0] += 1.0
    other, _ = form.call(module, moved, _copies(state))
    changed = (other - usual).abs().amax(dim=2) > 0
    return bool(changed[1:, 0].all()) and int(changed.sum()) == PROBE_STEPS - 1


def _copies(state: State) -> State:
    return tuple(part.clone() for part in state)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
