"""Who made the first inf or nan: a run with a log of the backward pass and a shadow of the truth.

Every node of the autograd graph reports what came in and what went out, in the order in which the
backward pass runs. What a reader can make sense of among it is a gradient of a state, of a
pre-activation (what a product with weights, or a bias, made) or of a parameter: the first of these
that is not finite is named, with the operation that first made something not finite of finite
numbers, and with its true value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import Node

from gradflow.cells import State
from gradflow.engine.saturation.graph import ParameterEdge, StepGraph, operation_name
from gradflow.engine.saturation.subjects import Subject, gate_of_row

ADDING = "sum of gradients"


@dataclass(frozen=True)
class Broken:
    """A tensor that is not finite: what it is, and its first entry that is not.

    The fields are those of `gradflow.records.FirstNonfinite`.
    """

    tensor: Tensor
    name: str
    step: int | None
    operation: str | None
    unit: int | None = None
    parameter: str | None = None
    row: int | None = None
    gate: str | None = None

    @property
    def mask(self) -> np.ndarray:
        """Where it is not finite."""
        return np.asarray((~torch.isfinite(self.tensor)).cpu().numpy())

    @property
    def value(self) -> str:
        """Its first entry that is not finite: "nan", "inf" or "-inf"."""
        return str(self.tensor[~torch.isfinite(self.tensor)][0].item())


@dataclass(frozen=True)
class _Entry:
    """A node that ran in the backward pass, with the gradients it was given and those it gave."""

    step: int
    node: Node
    given: tuple[Tensor | None, ...]
    gave: tuple[Tensor | None, ...]


class BackwardLog:
    """What every node of an unrolled run does in the backward pass.

    Use `watch` after each step of the forward pass, run the backward pass, then ask `first`.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._graph = StepGraph(subject.parameters)
        self._makers: dict[Node, list[tuple[str, int, int]]] = {}
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._entries: list[_Entry] = []

    def watch(self, step: int, state: State) -> None:
        """Watch the nodes that this step (counted from 1) added to the graph."""
        for node in self._graph.added(state):
            self._handles.append(self._report(step, node))
        for name, part in zip(self._subject.cell.parts, state, strict=True):
            if part.grad_fn is not None:
                place = (name, step, part.output_nr)
                self._makers.setdefault(part.grad_fn, []).append(place)

    def close(self) -> None:
        """Let go of the graph."""
        for handle in self._handles:
            handle.remove()

    def first(self) -> Broken | None:
        """Return the first gradient of a state, pre-activation or parameter that is not finite."""
        operation: str | None = None
        for entry in self._entries:
            if operation is None and not _finite(entry.given):
                operation = ADDING  # the nodes before gave finite numbers
            for broken in self._of_states(entry, operation):
                return broken
            for broken in self._of_preactivations(entry, operation):
                return broken
            if operation is None and not _finite(entry.gave):
                operation = operation_name(entry.node)
            for broken in self._of_parameters(entry, operation):
                return broken
        return None

    def _report(self, step: int, node: Node) -> torch.utils.hooks.RemovableHandle:
        def hook(gave: tuple[Tensor | None, ...], given: tuple[Tensor | None, ...]) -> None:
            self._entries.append(_Entry(step, node, given, gave))

        return node.register_hook(hook)

    def _of_states(self, entry: _Entry, operation: str | None) -> Iterator[Broken]:
        for part, step, index in self._makers.get(entry.node, ()):
            gradient = entry.given[index]
            if gradient is not None and not _finite((gradient,)):
                unit = _first_place(gradient, axis=-1)
                yield Broken(gradient, f"gradient of {part}", step, operation, unit=unit)

    def _of_preactivations(self, entry: _Entry, operation: str | None) -> Iterator[Broken]:
        gradient = entry.given[0]
        edges = self._graph.parameter_edges(entry.node)
        if edges and gradient is not None and not _finite((gradient,)):
            column = _first_place(gradient, axis=-1)
            broken = Broken(gradient, "gradient of the pre-activation", entry.step, operation)
            yield self._owned(broken, edges[0], column)

    def _of_parameters(self, entry: _Entry, operation: str | None) -> Iterator[Broken]:
        for edge in self._graph.parameter_edges(entry.node):
            gradient = entry.gave[edge.index]
            if gradient is not None and not _finite((gradient,)):
                row = _first_place(gradient, axis=-1 if edge.turned else 0)
                broken = Broken(gradient, f"gradient of {edge.parameter}", entry.step, operation)
                yield self._owned(broken, edge, row)

    def _owned(self, broken: Broken, edge: ParameterEdge, column: int) -> Broken:
        """Return the same with its parameter, the row of it, and the gate that owns the row."""
        if not edge.by_rows:
            return replace(broken, unit=column, parameter=edge.parameter)
        return owned(self._subject, broken, edge.parameter, edge.first + column)


def owned(subject: Subject, broken: Broken, parameter: str, row: int) -> Broken:
    """Return a broken tensor with the row of the parameter, and the gate that owns the row."""
    gate, unit = gate_of_row(subject, parameter, row) or (None, row)
    return replace(broken, unit=unit, parameter=parameter, row=row, gate=gate)


def first_broken_states(subject: Subject, states: list[State]) -> list[Broken]:
    """Return the parts of the first state of a forward pass that are not finite."""
    for step, state in enumerate(states):
        broken = [
            Broken(tensor, part, step, None, unit=_first_place(tensor, axis=-1))
            for part, tensor in zip(subject.cell.parts, state, strict=True)
            if not _finite((tensor,))
        ]
        if broken:
            return broken
    return []


def first_broken_total(
    by_state: list[Tensor], by_parameter: dict[str, Tensor], subject: Subject
) -> Broken | None:
    """Return the first sum of gradients that is not finite although all that it adds up are."""
    for tensor in by_state:
        if not _finite((tensor,)):
            return Broken(
                tensor, "gradient of a state", None, ADDING, _first_place(tensor, axis=-1)
            )
    for name, tensor in by_parameter.items():
        if not _finite((tensor,)):
            broken = Broken(tensor, f"gradient of {name}", None, ADDING)
            return owned(subject, broken, name, _first_place(tensor, axis=0))
    return None


def _finite(tensors: tuple[Tensor | None, ...]) -> bool:
    return all(t is None or bool(torch.isfinite(t).all()) for t in tensors)


def _first_place(tensor: Tensor, *, axis: int) -> int:
    """Return the lowest index along an axis at which something is not finite."""
    if tensor.dim() == 0:
        return 0
    bad = ~torch.isfinite(tensor)
    others = [other for other in range(tensor.dim()) if other != axis % tensor.dim()]
    return int(torch.nonzero(bad.any(dim=others) if others else bad)[0])
