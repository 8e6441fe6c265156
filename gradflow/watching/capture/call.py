"""One call of a watched module: what it read, and what came back to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradflow.watching.capture.ancestry import mark, nearest_calls, next_number
from gradflow.watching.capture.hooks import makers_of
from gradflow.watching.capture.layout import Layout, parts_of

OUTPUT = "output"  # the slot of a layer's output; those of the state's parts are numbers


@dataclass(eq=False)
class Call:
    """One call. All tensors are detached; `arrived` fills while the user's backward pass runs.

    `x` is as it lay (of a packed sequence its data), `start` and `final` the states' parts as they
    lay (`start` empty where none was given), `precision` what it computed in. `generator_state` is
    that of the CPU's generator before the call, where the layer then drew masks of dropout.
    `c_holds_h` is True where the gradient of a new c has what h of the same step hands it: where a
    cell computes h from c in the user's graph, and not in one fused operation. `gates` are the
    values of a cell that has no twin to show them, (rows, width). `number` is its own, and
    `follows` has those of the calls that the first state of a single step was computed from.
    """

    layout: Layout
    x: Tensor
    start: tuple[Tensor, ...]
    final: tuple[Tensor, ...]
    carries_graph: bool
    output_dtype: torch.dtype
    precision: torch.dtype
    generator_state: Tensor | None = None
    c_holds_h: bool = False
    gates: Mapping[str, Tensor] = field(default_factory=dict)
    arrived: dict[str | int, Tensor] = field(default_factory=dict)
    number: int = field(default_factory=next_number)
    follows: frozenset[int] = frozenset()

    @property
    def steps(self) -> int:
        """How many steps it has."""
        if self.layout.batch_sizes is not None:
            return len(self.layout.batch_sizes)
        if self.layout.is_step:
            return 1
        return self.x.shape[1 if self.layout.batch_first else 0]

    def let_go(self) -> None:
        """Give up what was copied: a loss that the user keeps holds the call by its graph."""
        self.arrived.clear()
        self.start, self.final, self.gates, self.generator_state = (), (), {}, None
        self.x = self.x.new_empty(0)

    def arrive(self, slot: str | int, gradient: Tensor) -> None:
        """Add a gradient to what has come; several passes through one graph add up."""
        known = self.arrived.get(slot)
        fresh = gradient.detach()
        self.arrived[slot] = fresh if known is None else known + fresh


Slots = dict[str | int, Tensor]


def layer_call(
    module: nn.RNNBase,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    answer: Any,
    generator_state: Tensor | None,
) -> tuple[Call, Slots]:
    """Return a call of one of torch's layers, and its outputs by slot.

    Raises:
        TypeError, ValueError: a subclass that answers otherwise than torch's layers do.
    """
    x, given = _arguments(args, kwargs, ("input", "hx"))
    output, last = answer
    data = output.data if isinstance(output, PackedSequence) else output
    final = parts_of(last)
    slots: Slots = {OUTPUT: data, **dict(enumerate(final))}
    start = parts_of(given)
    call = Call(
        layout=Layout.of_layer(x, batch_first=module.batch_first),
        x=_copy(x.data if isinstance(x, PackedSequence) else x),
        start=tuple(map(_copy, start)),
        final=tuple(map(_copy, final)),
        carries_graph=_has_graph(start),
        output_dtype=data.dtype,
        precision=_precision(data),
        generator_state=generator_state,
    )
    if call.steps == 1:
        call.follows = nearest_calls(start)
    mark(slots.values(), call.number)
    return call, slots


def cell_call(args: tuple[Any, ...], kwargs: Mapping[str, Any], answer: Any) -> tuple[Call, Slots]:
    """Return one step of a cell, and its new state by slot.

    Raises:
        TypeError, ValueError: the call is not of the form cell(x, state) -> state.
    """
    x, given = _arguments(args, kwargs, ())
    start, final = parts_of(given), parts_of(answer)
    call = Call(
        layout=Layout.of_cell(x),
        x=_copy(x),
        start=tuple(map(_copy, start)),
        final=tuple(map(_copy, final)),
        carries_graph=_has_graph(start),
        output_dtype=final[0].dtype,
        precision=_precision(final[0]),
        c_holds_h=len(makers_of(final)) > 1,
        follows=nearest_calls(start),
    )
    mark(final, call.number)
    return call, dict(enumerate(final))


def _arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], names: tuple[str, ...]
) -> tuple[Any, Any]:
    """Return the input and the state, given by place or by name."""
    if names:
        by_name = [kwargs[name] for name in names[len(args) :] if name in kwargs]
        found = [*args, *by_name, None]
    else:
        found = [*args, *kwargs.values(), None]
    return found[0], found[1]


def _precision(answer: Tensor) -> torch.dtype:
    """Return the least precise of the answer's dtype and of autocast's, where that is on."""
    kind = answer.device.type
    if answer.dtype == torch.float32 and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return answer.dtype


def _has_graph(start: tuple[Tensor, ...]) -> bool:
    """Return whether a graph goes on behind a state; a leaf that asks for gradients has none."""
    return any(part.grad_fn is not None for part in start)


def _copy(values: Tensor) -> Tensor:
    """Return a copy: the training may write over its own before the replay."""
    return values.detach().clone()
