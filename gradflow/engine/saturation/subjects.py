"""What is put on trial: our cells, torch's own modules beside them, and users' modules.

A `Subject` steps, and shows the gates of each step where they can be seen: in our cells they are
part of a step, in other modules they are read off the autograd graph, where every torch.sigmoid
keeps its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from gradflow.cells import Cell, CellLike, Gate, Rows, State
from gradflow.engine.saturation.graph import StepGraph, squashed

CANDIDATE = "candidate"
Values = dict[str, Tensor]
"""Values of the gates of a step by name; a sigmoid that belongs to no known gate is "?1", "?2"."""


@dataclass(frozen=True)
class Subject:
    """A module on trial.

    Attributes:
        name: what the user calls it.
        implementation: "gradflow", "torch" or "user".
        cell: the protocol's view of it: parts, sizes, gates by name and rows.
        module: the module whose parameters are set and differentiated.
        step: (x, state) to (new state, values of the gates that the module itself shows).
        found: gates that were found in a module that declares none.
    """

    name: str
    implementation: str
    cell: CellLike
    module: nn.Module
    step: Callable[[Tensor, State], tuple[State, Values]]
    found: tuple[Gate, ...] = ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Every gate that the cell tells, and the candidate; those found where it tells none."""
        candidate = self.cell.candidate_gate
        told = self.cell.gates if candidate is None else (*self.cell.gates, candidate)
        return told or self.found

    @property
    def candidate_name(self) -> str:
        """The name under which the candidate's values go."""
        named = [gate.name for gate in self.gates if gate.role == "candidate"]
        return named[0] if named else CANDIDATE

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The parameters that are trained, by name."""
        named = self.module.named_parameters()
        return {name: parameter for name, parameter in named if parameter.requires_grad}


def own_subject(name: str, cell: Cell) -> Subject:
    """Return one of our cells as a subject."""
    squashes = getattr(cell, "nonlinearity", "tanh") == "tanh"

    def step(x: Tensor, state: State) -> tuple[State, Values]:
        taken = cell.step(x, state)
        candidate = {CANDIDATE: taken.candidate} if squashes and taken.candidate is not None else {}
        return taken.state, {**taken.gates, **candidate}

    return Subject(name, "gradflow", cell, cell, step)


def torch_subject(name: str, cell: Cell, module: nn.RNNCellBase) -> Subject:
    """Return the torch module that matches one of our cells; its parameters have the same names."""
    single = len(cell.parts) == 1

    def step(x: Tensor, state: State) -> tuple[State, Values]:
        new = module(x, state[0] if single else state)
        return ((new,) if single else tuple(new)), {}

    return Subject(name, "torch", cell, module, step)


def user_subject(name: str, cell: CellLike, module: nn.Module) -> Subject:
    """Return a user's cell as a subject; its gates are shown where it has `gate_values`.

    Args:
        name: what the user calls it.
        cell: the protocol's view of it.
        module: the same, as a module.
    """
    shown = getattr(cell, "gate_values", None)
    candidate = cell.candidate_gate
    own_name = {} if candidate is None else {CANDIDATE: candidate.name}

    def step(x: Tensor, state: State) -> tuple[State, Values]:
        new = cell.advance(cell.drive(x), state)
        if not callable(shown):
            return new, {}
        with torch.no_grad():
            values: Mapping[str, Tensor] = shown(x, tuple(part.detach() for part in state))
        return new, {own_name.get(gate, gate): value for gate, value in values.items()}

    return Subject(name, "user", cell, module, step)


def gate_of_row(subject: Subject, parameter: str, row: int) -> tuple[str, int] | None:
    """Return the gate that owns a row of a parameter, and the row's number within the gate.

    Args:
        subject: whose gates.
        parameter: the parameter's name.
        row: its row; its column where the module computes x @ weight and not x @ weight.T.
    """
    for gate in subject.gates:
        for rows in (*gate.bias, *gate.weights):
            if rows.parameter == parameter:
                owned = _owned(rows, subject.module.get_parameter(parameter))
                if row in owned:
                    return gate.name, owned.index(row)
    return None


def gates_in_graph(subject: Subject, graph: StepGraph, nodes: Iterable[Node]) -> Values:
    """Return what every torch.sigmoid of a step gave, and torch.tanh where it is the candidate."""
    values: Values = {}
    for node, value in squashed(nodes, "Sigmoid"):
        owner = _owner(subject, graph, node)
        values[owner if owner is not None else f"?{len(values) + 1}"] = value
    for node, value in squashed(nodes, "Tanh"):
        if _owner(subject, graph, node) == subject.candidate_name:
            values[subject.candidate_name] = value
    return values


def _owner(subject: Subject, graph: StepGraph, node: Node) -> str | None:
    """Return the gate whose rows, and no other gate's, make what the node squashes."""
    found = [gate_of_row(subject, rows.parameter, rows.first) for rows in graph.own_rows(node)]
    owners = {owner[0] for owner in found if owner is not None}
    return owners.pop() if len(owners) == 1 else None


def _owned(rows: Rows, parameter: Tensor) -> range:
    """Return the rows that a gate owns, or its columns where it owns some of every row."""
    if rows.rows == slice(None) and rows.columns != slice(None):
        return range(*rows.columns.indices(parameter.shape[-1]))
    return range(*rows.rows.indices(parameter.shape[0]))
