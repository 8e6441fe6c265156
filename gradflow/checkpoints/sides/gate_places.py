"""Which gates a matrix holds, in which order: declared, named, or taken as torch's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from gradflow.cells.declared_gates import declared_gates
from gradflow.checkpoints.sides.blocks import LETTERS, STANDARD_ORDER
from gradflow.checkpoints.sides.gate_words import gates_of_names, gates_of_words
from gradflow.checkpoints.sides.protocol import Side
from gradflow.errors import CellLoadError

Orders = dict[str, tuple[str, ...]]
_ROLES = {
    "lstm": {"write": "input", "keep": "forget", "output": "output", "candidate": "candidate"},
    "gru": {"reset": "reset", "keep": "update", "candidate": "candidate"},
    "rnn": {"candidate": "candidate"},
}


def gates_of_matrices(
    outer: Mapping[str, int],
    kind: str,
    order: Sequence[str] | None,
    *,
    known: Mapping[str, tuple[str, ...]],
    guessed: list[str],
) -> Orders:
    """Return which gates each matrix of a set holds, in order.

    Args:
        outer: matrix name to its number of blocks of rows.
        kind: "lstm", "gru" or "rnn".
        order: the order of stacked gates; torch's where None.
        known: what the module itself declares.
        guessed: gets a sentence on what was taken for granted.
    """
    usual = tuple(order or STANDARD_ORDER[kind])
    found = {name: gates for name, gates in known.items() if len(gates) == outer[name]}
    single = [name for name, blocks in outer.items() if blocks == 1 and name not in found]
    named = gates_of_names(single, kind) if len(single) == len(outer) else None
    if named is None:
        named = gates_of_words(single, kind)
    found |= {name: (gate,) for name, gate in named.items()}
    taken = [gate for gates in found.values() for gate in gates]
    left = [gate for gate in usual if gate not in taken]
    for name in (name for name in outer if name not in found):
        if outer[name] == 1 and len(left) > 1 and len(outer) > 1 and len(single) == 1:
            found[name] = ("candidate",)  # r and z stacked, the candidate by itself
            left.remove("candidate")
    unnamed = [name for name in outer if name not in found]
    for name in unnamed:
        found[name], left = tuple(left[: outer[name]]), left[outer[name] :]
    if unnamed and order is None and len(usual) > 1:
        letters = ", ".join(LETTERS[kind][gate] for name in unnamed for gate in found[name])
        guessed.append(f"no name tells the gates in {', '.join(unnamed)}; taken as {letters}")
    return found


def declared_orders(side: Side, kind: str) -> Orders:
    """Return matrix name to its gates in order, as a module's own `gates` attribute has them.

    Empty where it declares none, or none that this kind has.
    """
    module = getattr(side, "module", None)
    if not isinstance(module, nn.Module):
        return {}
    try:
        declared = declared_gates(module)
    except CellLoadError:
        return {}
    places: dict[str, list[tuple[int, str]]] = {}
    for gate in declared:
        name = _ROLES[kind].get(gate.role)
        if name is None:
            return {}
        for rows in gate.weights:
            start = (rows.rows.start or 0) + (rows.columns.start or 0)
            if (start, name) not in places.setdefault(rows.parameter, []):
                places[rows.parameter].append((start, name))
    return {
        parameter: tuple(dict.fromkeys(name for _, name in sorted(found)))
        for parameter, found in places.items()
    }
