"""Modules as sides: ours, torch's cells and layers, and a user's module in call form."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells import Cell
from gradflow.cells.call_form import CallForm
from gradflow.cells.shapes import State
from gradflow.checkpoints.sides.protocol import AutogradSide, Run, Side, Weights
from gradflow.checkpoints.sides.swapping import float64_copy, stray_tensors, swapped, tensor_at
from gradflow.errors import CellLoadError


class ModuleSide(AutogradSide):
    """A torch module that is called once per step, `cell(x, h)` or `cell(x, (h, c))`.

    Args:
        module: it is copied, put into evaluation mode and made float64.
        form: how it is called.
        name, what: see `Side`.
    """

    def __init__(self, module: nn.Module, form: CallForm, *, name: str, what: str) -> None:
        super().__init__()
        self.name, self.what = name, what
        self.form, self.parts = form, form.parts
        self.input_size, self.hidden_size = form.input_size, form.sizes[0]
        self.module = float64_copy(module)
        self.strays = tuple(stray_tensors(self.module))
        for place in self.strays:
            self.note(
                f"{place} of {self.label} is a plain tensor and no nn.Parameter: no optimizer "
                "would train it, and no state_dict stores it."
            )

    @property
    def weights(self) -> Weights:
        """The module's parameters, then the tensors that it ought to have registered."""
        names = [name for name, _ in self.module.named_parameters()]
        return {name: tensor_at(self.module, name).detach() for name in (*names, *self.strays)}

    def tracked_run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Call the module once per step, with these very tensors for its weights."""
        states: list[State] = []
        gates: list[dict[str, Tensor]] = []
        with swapped(self.module, weights), printing_aside(self):
            for x in xs:
                new, shown = self._step(x, states[-1] if states else state)
                states.append(new)
                gates.append(shown)
        return stacked_run(self.parts, states, gates)

    def _step(self, x: Tensor, state: State) -> tuple[State, dict[str, Tensor]]:
        if isinstance(self.module, Cell):
            step = self.module.step(x, state)
            shown = dict(step.gates)
            if step.candidate is not None and shown:
                shown["candidate"] = step.candidate
            return step.state, shown
        # a clone each, because a module may write on what it is given
        given, old = x.clone(), tuple(part.clone() for part in state)
        new = self.form.call(self.module, given, old)
        note_writing(self, ("x", *self.parts), (x, *state), (given, *old))
        return tuple(part.clone() for part in new), {}


class LayerSide(AutogradSide):
    """A fused layer of torch (nn.RNN, nn.GRU, nn.LSTM) of one level and one direction.

    A layer shows c after the last step only, so it is run on every beginning of the sequence.
    """

    def __init__(self, module: nn.RNNBase, *, name: str, what: str) -> None:
        super().__init__()
        if module.num_layers > 1 or module.bidirectional or module.proj_size:
            raise CellLoadError(
                f"{name} must be one recurrence: one level, one direction, no projection; got "
                f"num_layers={module.num_layers}, bidirectional={module.bidirectional}, proj_size="
                f"{module.proj_size}. Compare its cells one by one: gradflow.from_torch(layer)."
            )
        self.name, self.what = name, what
        self.kind = {"LSTM": "lstm", "GRU": "gru"}.get(module.mode, "rnn")
        self.parts = ("h", "c") if self.kind == "lstm" else ("h",)
        self.input_size, self.hidden_size = module.input_size, module.hidden_size
        self.module = float64_copy(module)
        self.batch_first = module.batch_first

    @property
    def weights(self) -> Weights:
        """The layer's parameters, `weight_ih_l0` and so on."""
        return {name: tensor.detach() for name, tensor in self.module.named_parameters()}

    def tracked_run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Run the layer on xs[:1], xs[:2], ... xs, with these very tensors for its weights."""
        with swapped(self.module, weights):
            runs = [self._run(xs[: stop + 1], state) for stop in range(len(xs))]
        parts = [runs[-1][0], *(torch.stack([run[1][1] for run in runs]) for _ in self.parts[1:])]
        return Run(dict(zip(self.parts, parts, strict=True)))

    def _run(self, xs: Tensor, state: State) -> tuple[Tensor, State]:
        first = tuple(part.unsqueeze(0) for part in state)
        given = xs.transpose(0, 1) if self.batch_first else xs
        out, last = self.module(given, first if len(first) > 1 else first[0])
        ends = last if isinstance(last, tuple) else (last,)
        return out.transpose(0, 1) if self.batch_first else out, tuple(part[0] for part in ends)


def stacked_run(
    parts: Sequence[str], states: Sequence[State], gates: Sequence[dict[str, Tensor]]
) -> Run:
    """Return a run from its steps; a gate that not every step shows is left out."""
    return Run(
        {part: torch.stack([state[i] for state in states]) for i, part in enumerate(parts)},
        {
            name: torch.stack([step[name] for step in gates])
            for name in gates[0]
            if all(name in step for step in gates)
        },
    )


def note_writing(
    side: Side, names: Sequence[str], before: Sequence[Any], after: Sequence[Any]
) -> None:
    """Note where user code changed one of its arguments (tensors or NumPy arrays)."""
    for name, old, new in zip(names, before, after, strict=True):
        if not ((old == new) | (old != old)).all():  # NaN is not equal to itself
            side.note(
                f"{side.label} changes its argument {name} in place, so the {name} of whoever "
                f"calls it is lost; parity was measured on copies. Work on a copy of {name}."
            )


@contextlib.contextmanager
def printing_aside(side: Side) -> Iterator[None]:
    """Keep what user code prints out of the answer, and note that it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        yield
    if said.getvalue():
        side.note(f"{side.label} prints in its step; that is left out here.")
