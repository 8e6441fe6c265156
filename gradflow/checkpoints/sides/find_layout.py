"""Finding where each gate's weights stand: by torch's own names, else by probing and by words.

Probing tells what each matrix multiplies (`probing`), its name tells the gate (`gate_words`), and
what neither tells, the order of gates in a stacked matrix, is taken as torch's and said so: whether
that guess is right is for the comparison to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from gradflow.checkpoints.sides.bias_blocks import bias_blocks
from gradflow.checkpoints.sides.blocks import (
    STANDARD_ORDER,
    STANDARD_TENSORS,
    Block,
    Layout,
    standard_layout,
)
from gradflow.checkpoints.sides.gate_places import declared_orders, gates_of_matrices
from gradflow.checkpoints.sides.probing import (
    Reading,
    probe_matrices,
    readings_by_shape,
    split_tensors,
)
from gradflow.checkpoints.sides.protocol import Side
from gradflow.errors import CellLoadError

MAP = "Tell where they go by a weight map (--weight-map)."


@dataclass(frozen=True)
class Stack:
    """A matrix, what it multiplies, and the gates whose rows it holds, in order."""

    name: str
    reading: Reading
    gates: tuple[str, ...]


def find_layout(side: Side, order: Sequence[str] | None = None) -> Layout:
    """Return where each gate's weights stand in a side.

    Args:
        side: whose weights, and whose recurrence to ask.
        order: the gates in the order of a stacked matrix's rows; torch's where None.

    Raises:
        CellLoadError: a weight that no gate of this kind has, or whose place nothing tells.
    """
    tensors = side.weights
    if not tensors:
        raise CellLoadError(f"{side.name} has no weights to compare with: no parameter, no tensor.")
    if order is None and (standard := _by_standard_names(side, tensors)) is not None:
        return standard
    matrices, biases = _parted(side, tensors)
    guessed: list[str] = []
    readings = _readings(side, matrices, guessed)
    kind = side.kind or _kind(side, matrices, readings)
    declared = declared_orders(side, kind)
    whole = (gates for gates in declared.values() if len(gates) == len(STANDARD_ORDER[kind]))
    order = order or next(whole, None)
    stacks: list[Stack] = []
    for reads in ("xh", "x", "h"):
        names = [name for name, reading in readings.items() if reading.reads == reads]
        outer = {n: readings[n].outer(matrices[n].shape) // side.hidden_size for n in names}
        known = {name: declared[name] for name in names if name in declared}
        gates = gates_of_matrices(outer, kind, order, known=known, guessed=guessed)
        stacks += [Stack(name, readings[name], gates[name]) for name in names]
    blocks = [block for stack in stacks for block in _blocks(stack, side.hidden_size)]
    _require_complete(side, kind, blocks)
    owners = {stack.name: (stack.reading.reads, stack.gates) for stack in stacks}
    blocks += bias_blocks(biases, owners, kind, side.hidden_size, order, guessed)
    return Layout(kind, side.input_size, side.hidden_size, tuple(blocks), tuple(guessed))


def _parted(
    side: Side, tensors: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return a side's matrices and biases, told at widths that shapes tell apart."""
    clear = side.clear_twin()
    matrices, biases = split_tensors(clear.weights, clear.input_size)
    return {name: tensors[name] for name in matrices}, {name: tensors[name] for name in biases}


def _by_standard_names(side: Side, tensors: Mapping[str, Tensor]) -> Layout | None:
    """Return the layout of torch's own names and shapes, under any one prefix or suffix."""
    matrices, _ = split_tensors(tensors, side.input_size)
    rows = {shape[0] for shape in (tensor.shape for tensor in matrices.values())}
    if len(matrices) != 2 or len(rows) != 1:
        return None
    kinds = {1: "rnn", 3: "gru", 4: "lstm"}
    kind = side.kind or kinds.get(rows.pop() // side.hidden_size)
    if kind is None or (kind == "lstm") != (len(side.parts) == 2):
        return None
    count = len(STANDARD_ORDER[kind]) * side.hidden_size
    shapes = {
        "weight_ih": (count, side.input_size),
        "weight_hh": (count, side.hidden_size),
        "bias_ih": (count,),
        "bias_hh": (count,),
    }
    for name in matrices:
        called = name.replace("weight_ih", "{}") if name.count("weight_ih") == 1 else "{}"
        known = {called.format(plain): plain for plain in STANDARD_TENSORS}
        if set(tensors) <= set(known) and {called.format("weight_hh"), name} <= set(tensors):
            plain = [known[own] for own in known if own in tensors]
            if all(tuple(tensors[called.format(own)].shape) == shapes[own] for own in plain):
                return standard_layout(
                    kind, side.input_size, side.hidden_size, names=plain, called=called
                )
    return None


def _readings(side: Side, matrices: Mapping[str, Tensor], guessed: list[str]) -> dict[str, Reading]:
    """Return what each matrix multiplies: probed, else as its shape and its siblings have it."""
    probed = probe_matrices(side, list(matrices))
    found = {name: fits[0] for name, fits in probed.items() if len(fits) == 1}
    whole = _is_whole(side, matrices, found)
    for name in (name for name, fits in probed.items() if len(fits) != 1):
        if whole and not probed[name]:
            continue  # an output layer: nothing of the state depends on it
        shape = matrices[name].shape
        possible = probed[name] or readings_by_shape(shape, side.input_size, side.hidden_size)
        turns = {reading.transposed for reading in found.values()}
        alike = [one for one in possible if one.transposed in turns] or possible
        counts = {one.reads: _count(found, one.reads) for one in alike}
        # a matrix without a gradient stands where its set is one short
        alike.sort(key=lambda one: (counts[one.reads] == 0, counts[one.reads]))
        if alike:
            found[name] = alike[0]
        if len(possible) > 1:
            way = "v @ W" if found[name].transposed else "W @ v"
            guessed.append(
                f"nothing tells what {name} multiplies, and which way round; taken as {way} on "
                f"{' and '.join(found[name].reads)}, like its siblings"
            )
    return {name: found[name] for name in matrices if name in found}


def _is_whole(side: Side, matrices: Mapping[str, Tensor], found: Mapping[str, Reading]) -> bool:
    """Return whether these matrices already make all the gates of a cell, on x and on h."""
    blocks = [
        sum(one.outer(matrices[n].shape) for n, one in found.items() if source in one.reads)
        for source in "xh"
    ]
    known = (4,) if len(side.parts) == 2 else (1, 3)
    return blocks[0] == blocks[1] and blocks[0] / side.hidden_size in known


def _count(found: Mapping[str, Reading], reads: str) -> int:
    return sum(reading.reads == reads for reading in found.values())


def _kind(side: Side, matrices: Mapping[str, Tensor], readings: Mapping[str, Reading]) -> str:
    """Return the kind that the state's parts and the rows on h say."""
    if len(side.parts) > 2:
        raise CellLoadError(
            f"{side.name} has a state of {len(side.parts)} parts, which is no LSTM's (h, c) and no "
            f"GRU's or RNN's (h). {MAP}"
        )
    rows = sum(r.outer(matrices[n].shape) for n, r in readings.items() if r.h is not None)
    gates = rows // side.hidden_size
    known = {(2, 4): "lstm", (1, 3): "gru", (1, 1): "rnn"}
    if (len(side.parts), gates) not in known:
        raise CellLoadError(
            f"{side.name} must be an LSTM (four blocks of weights on h), a GRU (three) or an RNN "
            f"(one), so that its gates can be matched; its weights on h make {gates}, for a state "
            f"({', '.join(side.parts)}). {MAP}"
        )
    return known[len(side.parts), gates]


def _blocks(stack: Stack, hidden: int) -> list[Block]:
    blocks = []
    for index, gate in enumerate(stack.gates):
        whole = len(stack.gates) == 1
        out = slice(None) if whole else slice(index * hidden, (index + 1) * hidden)
        parts = (("x", stack.reading.x), ("h", stack.reading.h))
        for reads, inner in parts:
            if inner is not None:
                into = inner if stack.reading.reads == "xh" else slice(None)
                place = (into, out) if stack.reading.transposed else (out, into)
                blocks.append(Block(gate, reads, stack.name, place, stack.reading.transposed))
    return blocks


def _require_complete(side: Side, kind: str, blocks: Sequence[Block]) -> None:
    have = [(block.gate, block.reads) for block in blocks]
    need = [(gate, reads) for gate in STANDARD_ORDER[kind] for reads in ("x", "h")]
    missing = [f"{gate} on {reads}" for gate, reads in need if have.count((gate, reads)) != 1]
    if missing:
        names = ", ".join(f"{n} {tuple(t.shape)}" for n, t in side.weights.items())
        raise CellLoadError(
            f"the weights of {side.name} cannot be matched with those of torch's {kind.upper()}: "
            f"nothing (or more than one) fits {', '.join(missing[:4])}; it has {names}. {MAP}"
        )


__all__ = ["find_layout"]
