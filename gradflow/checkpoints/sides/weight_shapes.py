"""The shapes that a step function's weights can have, told by how many there are.

A shape is written in widths: "H" hidden, "I" input, "J" both joined, "4H" four gates stacked,
"1" an axis of one, "Y" an output layer's width.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gradflow.checkpoints.sides.gate_words import plain_word

Shape = tuple[str, ...]
OUTPUT_WIDTH = 2
MOST_SPLITS = 80  # ways to say which weights read x; C(8, 4) = 70
# Names of an output layer, which many tutorials keep beside the cell.
_HEADS = frozenset({"wy", "by", "why", "bhy", "wya", "wq", "bq", "whq", "wyh", "wout", "bout"})


def sizes_of(shape: Shape, input_size: int, hidden_size: int) -> tuple[int, ...]:
    """Return a shape in numbers.

    >>> sizes_of(("4H", "J"), 3, 5)
    (20, 8)
    """
    plain = {"I": input_size, "J": input_size + hidden_size, "1": 1, "Y": OUTPUT_WIDTH}
    return tuple(
        plain[axis] if axis in plain else int(axis[:-1] or 1) * hidden_size for axis in shape
    )


def shape_guesses(names: Sequence[str], parts: int) -> Iterator[dict[str, Shape]]:
    """Yield the shapes that weights of these names can have together, the likely ones first.

    Args:
        names: the weights', in the order of the signature.
        parts: how many parts the state has: 2 means four gates, 1 three or none.
    """
    heads = [name for name in names if is_head(name)]
    inner = [name for name in names if name not in heads]
    called = [name for name in inner if _is_bias(name)]
    for biases in (called, []) if called else ([],):  # a matrix may be called B
        matrices = [name for name in inner if name not in biases]
        for gates in (4,) if parts == 2 else (3, 1):
            for from_left in (True, False):
                for wide in _matrix_shapes(matrices, gates, from_left=from_left):
                    for narrow in _bias_shapes(biases, gates):
                        yield wide | narrow | _head_shapes(heads, narrow, from_left=from_left)


def is_head(name: str) -> bool:
    """Return whether this is what tutorials call an output layer's weight or bias.

    >>> is_head("Wy"), is_head("W_hq"), is_head("W_f")
    (True, True, False)
    """
    return plain_word(name) in _HEADS


def _is_bias(name: str) -> bool:
    return plain_word(name).startswith("b")


def _matrix_shapes(
    names: Sequence[str], gates: int, *, from_left: bool
) -> Iterator[dict[str, Shape]]:
    count = len(names)
    each = {gates: "H"} if gates == 1 else {gates: "H", 1: f"{gates}H"}
    if count in each:  # on x and h joined
        yield {name: _turned(each[count], "J", from_left=from_left) for name in names}
    if count % 2 == 0 and count // 2 in each:  # on x and on h apart
        out = each[count // 2]
        for on_x in itertools.islice(_splits(names), MOST_SPLITS):
            yield {
                name: _turned(out, "I" if name in on_x else "H", from_left=from_left)
                for name in names
            }


def _splits(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield which half of the names may be those that read x; the shapes decide by running."""
    yield from itertools.combinations(names, len(names) // 2)


def _turned(out: str, into: str, *, from_left: bool) -> Shape:
    return (out, into) if from_left else (into, out)


def _bias_shapes(names: Sequence[str], gates: int) -> Iterator[dict[str, Shape]]:
    if not names:
        yield {}
        return
    stacked = len(names) in (1, 2) and gates > 1
    width = f"{gates}H" if stacked else "H"
    for shape in ((width,), (width, "1"), ("1", width)):
        yield dict.fromkeys(names, shape)


def _head_shapes(
    names: Sequence[str], biases: dict[str, Shape], *, from_left: bool
) -> dict[str, Shape]:
    form = next(iter(biases.values()), ("H",))
    bias: Shape = ("Y",) if len(form) == 1 else ("Y", "1") if form[1] == "1" else ("1", "Y")
    return {
        name: bias if _is_bias(name) else _turned("Y", "H", from_left=from_left) for name in names
    }
