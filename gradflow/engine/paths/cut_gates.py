"""The step Jacobians of a user's cell with some gates taken as constants.

A gate that is declared with all its rows, and shows its values, can be held at the value that it
has: its weights become zero, and its bias what its squashing function takes to that value. The
step stays what it was and no longer feels the state through that gate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import cast

import torch
from torch import Tensor, nn

from gradflow.cells.gates import Gate, parameter_of
from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.autograd_check import rows_by_copies
from gradflow.errors import CellLoadError

Parameters = dict[str, Tensor]
HeldStep = Callable[[Tensor, Tensor, Parameters], Tensor]


def cut_step_jacobians(
    cell: CellLike, drive: Tensor, states: State, cut: Collection[str]
) -> Tensor:
    """Return the step Jacobians with the named gates held, (time, batch, state, state).

    Args:
        cell: a user's cell, which is a torch module.
        drive, states: as in `Cell.linearize`.
        cut: names of its gates, or "candidate".

    Raises:
        CellLoadError: the cell does not tell enough about a gate, or is no longer itself with it
            held; the message says which.
    """
    module = cast(nn.Module, cell)
    inputs, parts = drive.flatten(0, 1), tuple(part.flatten(0, 1) for part in states)
    widths = [part.shape[-1] for part in parts]
    joint = torch.cat(parts, dim=-1)
    weights, biases = _held_parameters(cell, inputs, parts, cut)

    def new_state(old: Tensor, x: Tensor, own_biases: Parameters) -> Tensor:
        packed = torch.split(old, widths, dim=-1)
        arguments = (x, packed[0] if len(packed) == 1 else packed)
        new = torch.func.functional_call(module, {**weights, **own_biases}, arguments)
        return torch.cat((new,) if isinstance(new, Tensor) else tuple(new), dim=-1)

    rows = [{name: bias[row] for name, bias in biases.items()} for row in range(len(inputs))]
    jacobians = [
        _by_copies(new_state, old, x, own) for old, x, own in zip(joint, inputs, rows, strict=True)
    ]
    held = torch.stack([new for new, _ in jacobians])
    _require_same(cell, cut, held, inputs, parts)
    found: Tensor = torch.stack([jacobian for _, jacobian in jacobians])
    return found.reshape(*states[0].shape[:2], *found.shape[1:])


def _by_copies(
    new_state: HeldStep, old: Tensor, x: Tensor, biases: Parameters
) -> tuple[Tensor, Tensor]:
    """Return the new state of one row, and its Jacobian: a row of it per copy of the state.

    Every row has biases of its own, and not every module can be batched over its parameters.
    """
    size = len(old)
    with torch.enable_grad():
        copies = old.expand(size, size).clone().requires_grad_()
        new = new_state(copies, x.expand(size, *x.shape), biases)
        return new[0].detach(), rows_by_copies(new, copies).detach()


def _held_parameters(
    cell: CellLike, x: Tensor, parts: State, cut: Collection[str]
) -> tuple[Parameters, Parameters]:
    """Return the changed weights, and the changed biases with a leading axis of (time * batch)."""
    module = cast(nn.Module, cell)
    weights: Parameters = {}
    biases: Parameters = {}
    for gate, at in _rest_points(cell, x, parts, cut):
        for rows in gate.weights:
            weight = parameter_of(module, rows.parameter).detach()
            changed = weights.setdefault(rows.parameter, weight.clone())
            changed[..., rows.rows, rows.columns] = 0.0
        for index, rows in enumerate(gate.bias):
            bias = parameter_of(module, rows.parameter).detach()
            changed = biases.setdefault(rows.parameter, bias.repeat(len(x), 1))
            changed[:, rows.rows] = 0.0 if index else at
    return weights, biases


def _rest_points(
    cell: CellLike, x: Tensor, parts: State, cut: Collection[str]
) -> list[tuple[Gate, Tensor]]:
    """Return each gate with the pre-activation of its value, (time * batch, width)."""
    step = cell.compute(x, parts)
    known = {gate.name: gate for gate in cell.gates}
    candidate = cell.candidate_gate
    points = []
    for name in cut:
        gate = candidate if name == "candidate" or name not in known else known[name]
        value = step.candidate if gate is candidate else step.gates.get(name)
        if gate is None or not gate.bias or not gate.weights or value is None:
            raise CellLoadError(
                f"the {cell.kind} cannot be measured without {name!r}: that needs the gate's bias "
                "and weights declared in 'gates', and its value from gate_values(x, state)."
            )
        at = torch.atanh(value) if gate is candidate else torch.logit(value)
        if not bool(torch.isfinite(at).all()):
            raise CellLoadError(
                f"the {cell.kind} cannot be measured without {name!r}: it reaches an end of its "
                f"range in {value.dtype}, where no bias holds it."
            )
        points.append((gate, at))
    return points


def _require_same(
    cell: CellLike, cut: Collection[str], held: Tensor, inputs: Tensor, parts: State
) -> None:
    """Raise unless the step with held gates is the step: else the gate is not what it declares."""
    new = torch.cat(cell.advance(inputs, parts), dim=-1)
    tolerance = torch.finfo(new.dtype).eps ** 0.5
    if not torch.allclose(held, new, rtol=tolerance, atol=tolerance):
        names = ", ".join(map(repr, cut))
        raise CellLoadError(
            f"the {cell.kind} cannot be measured without {names}: with its bias at the value that "
            "it shows, and its weights zero, the step is another one. A gate is a sigmoid of "
            "what its rows add up to, the candidate a tanh."
        )
