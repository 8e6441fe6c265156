"""The gates that a user's module declares, checked against its parameters.

A module declares its gates by an attribute `gates`: a list of `Gate` or of plain dicts,

    self.gates = [
        {"name": "forget", "role": "keep", "bias": "lin.bias[3:6]", "weights": "lin.weight[3:6]"},
        {"name": "candidate", "role": "candidate", "bias": "lin.bias[6:9]",
         "weights": "lin.weight[6:9]", "recurrent": "lin.weight[6:9, 2:5]"},
    ]

A module without that attribute, or with a layer of that name, declares none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gradflow.cells.declared_form import attribute_of
from gradflow.cells.gates import Gate, Rows, parameter_of
from gradflow.errors import CellLoadError, UnknownNameError

HOLD_ARGUMENTS = ("candidate_gain", "gate_weights", "generator")  # hold_'s own, beside the gates


def declared_gates(module: nn.Module) -> tuple[Gate, ...]:
    """Return the gates that a module declares, the candidate among them, or none.

    Raises:
        CellLoadError: a declaration that cannot be read or does not fit the parameters: a name
            that comes twice, a parameter that does not exist, rows out of range, rows that two
            gates share, a recurrent block that is not square.
    """
    declared = attribute_of(module, "gates", ())
    if isinstance(declared, nn.Module | nn.Parameter | Tensor):
        return ()  # a layer that happens to be called `gates`
    if callable(declared) or not isinstance(declared, Sequence) or isinstance(declared, str):
        raise CellLoadError(
            f"the attribute 'gates' of {type(module).__name__} must be a list of gates (dicts or "
            f"gradflow.cells.Gate); got a {type(declared).__name__}."
        )
    gates = tuple(Gate.declare(declaration) for declaration in declared)
    _require_distinct(gates)
    for gate in gates:
        try:
            _require_places(module, gate)
        except UnknownNameError as error:
            raise CellLoadError(f"gate {gate.name!r}: {error}") from error
    _require_apart(module, gates)
    return gates


def _require_distinct(gates: Sequence[Gate]) -> None:
    names = Counter(gate.name for gate in gates)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise CellLoadError(f"every gate has a name of its own; {repeated[0]!r} comes twice.")
    if taken := [name for name in names if name in HOLD_ARGUMENTS]:
        raise CellLoadError(
            f"no gate is called {taken[0]!r}: hold_ takes gates by name, and that is an argument "
            f"of its own. Call it {taken[0]}_gate."
        )
    candidates = [gate.name for gate in gates if gate.role == "candidate"]
    if len(candidates) > 1:
        raise CellLoadError(
            f"a cell has one gate of role 'candidate'; got {len(candidates)}: "
            f"{', '.join(candidates)}. Give the others one dict with all their rows."
        )


def _require_places(module: nn.Module, gate: Gate) -> None:
    """Raise unless every place lies inside a parameter of the right rank."""
    for rows in gate.bias:
        _require_inside(module, gate, rows, axes=(1,))
    for rows in (*gate.weights, *((gate.recurrent,) if gate.recurrent else ())):
        _require_inside(module, gate, rows, axes=(2, 3))
    widths = [rows.bias_of(module).shape[-1] for rows in gate.bias]
    if len(set(widths)) > 1:
        places = ", ".join(f"{rows} ({n})" for rows, n in zip(gate.bias, widths, strict=True))
        raise CellLoadError(
            f"gate {gate.name!r}: its bias vectors add up, so they are equally long; got {places}."
        )
    if gate.recurrent is not None:
        shape = tuple(gate.recurrent.weight_of(module).shape[-2:])
        if shape[0] != shape[1]:
            raise CellLoadError(
                f"gate {gate.name!r}: the recurrent block reads the old state, so it is square; "
                f"{gate.recurrent} is {shape}. Give rows and columns, as in 'weight[6:9, 2:5]'."
            )


def _require_inside(module: nn.Module, gate: Gate, rows: Rows, *, axes: tuple[int, ...]) -> None:
    parameter = parameter_of(module, rows.parameter)
    if parameter.dim() not in axes:
        kind = "bias" if axes == (1,) else "weight"
        raise CellLoadError(
            f"gate {gate.name!r}: a {kind} has {axes[0]} {'axis' if axes[0] == 1 else 'axes'}; "
            f"{rows.parameter!r} has shape {tuple(parameter.shape)}."
        )
    sizes = parameter.shape[-axes[0] :]
    for part, size in zip((rows.rows, rows.columns), sizes, strict=False):
        bounds = [bound for bound in (part.start, part.stop) if bound is not None]
        if any(not -size <= bound <= size for bound in bounds) or not range(*part.indices(size)):
            raise CellLoadError(
                f"gate {gate.name!r}: {str(rows)!r} is outside of {rows.parameter!r}, which has "
                f"shape {tuple(parameter.shape)}."
            )


def _require_apart(module: nn.Module, gates: Sequence[Gate]) -> None:
    """Raise where two gates own one row of a bias: no two values can be held there."""
    owners: dict[str, list[tuple[str, set[int]]]] = {}
    for gate in gates:
        for rows in gate.bias:
            size = parameter_of(module, rows.parameter).shape[-1]
            own = set(range(*rows.rows.indices(size)))
            for other, taken in owners.get(rows.parameter, []):
                if own & taken:
                    raise CellLoadError(
                        f"gates {other!r} and {gate.name!r} both own row {min(own & taken)} of "
                        f"{rows.parameter!r}, so they cannot be held apart. Give each its own rows."
                    )
            owners.setdefault(rows.parameter, []).append((gate.name, own))


def values_when_held(module: nn.Module, gates: Sequence[Gate]) -> dict[str, Tensor]:
    """Return each gate's value, (width,), where its weights are zero and the bias alone sets it."""
    with torch.no_grad():
        values = {gate.name: gate.held_value(module) for gate in gates if gate.role != "candidate"}
    return {name: value for name, value in values.items() if value is not None}
