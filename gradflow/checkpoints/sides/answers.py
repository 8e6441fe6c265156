"""What a step function answers: the new state, and the gates that it shows, in whatever form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from gradflow.checkpoints.sides.gate_words import gate_of_word, plain_word

H_KEYS = ("h", "ht", "hnext", "nexth", "hnew", "newh", "hidden", "hy", "hx", "anext", "hout")
C_KEYS = ("c", "ct", "cnext", "nextc", "cnew", "newc", "cell", "cy", "cx", "cellstate", "cout")
Array = Any  # a NumPy array or a torch tensor: both have a shape


@dataclasses.dataclass(frozen=True)
class Answer:
    """The new state, a part each, and the gates shown by name."""

    state: tuple[Array, ...]
    gates: dict[str, Array]


def read_answer(
    answer: object, parts: int, shape: tuple[int, ...], kind: str | None = None
) -> Answer | str:
    """Return the new state out of what a step function returned, or what is wrong with it.

    A dict is read by its keys (h, c; i, f, o, g ...), a tuple by its order: h, then c. Things of
    another shape (a cache, an output layer's result) are passed over.

    Args:
        answer: what came.
        parts: how many parts the state has.
        shape: that of each part.
        kind: "lstm", "gru" or "rnn", to know the gates by their letters.
    """
    named = _as_mapping(answer)
    if named is not None:
        return _from_mapping(named, parts, shape, kind)
    fitting = list(_arrays_in(answer, shape))
    nested = _nested_state(answer, parts, shape)
    if nested is not None:
        return Answer(nested, {})
    if len(fitting) < parts:
        return f"it must return the new state, {parts} of shape {shape}; got {describe(answer)}"
    return Answer(tuple(fitting[:parts]), {})


def describe(answer: object) -> str:
    """Return what an answer is, in words.

    >>> describe((1, None))
    'a tuple (int, NoneType)'
    """
    if answer is None:
        return "None. Is a return missing?"
    if isinstance(answer, Mapping):
        return f"a dict with {', '.join(map(repr, answer))}"
    if isinstance(answer, tuple | list):
        return f"a {type(answer).__name__} ({', '.join(_item(item) for item in answer)})"
    return f"a {_item(answer)}"


def _item(item: object) -> str:
    shape = getattr(item, "shape", None)
    return type(item).__name__ if shape is None else f"{type(item).__name__} {tuple(shape)}"


def _as_mapping(answer: object) -> Mapping[str, Array] | None:
    if isinstance(answer, Mapping):
        return {str(key): value for key, value in answer.items()}
    if hasattr(answer, "_asdict"):
        return dict(answer._asdict())
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        return {f.name: getattr(answer, f.name) for f in dataclasses.fields(answer)}
    return None


def _from_mapping(
    named: Mapping[str, Array], parts: int, shape: tuple[int, ...], kind: str | None
) -> Answer | str:
    plain = {plain_word(key): key for key in named}
    found = []
    for keys in (H_KEYS, C_KEYS)[:parts]:
        key = next((plain[key] for key in keys if key in plain), None)
        if key is None or not _fits(named[key], shape):
            wanted = "h" if keys is H_KEYS else "c"
            return (
                f"the dict that it returns must hold the new {wanted} of shape {shape} under the "
                f"key {wanted!r}; got {describe(named)}"
            )
        found.append(key)
    gates = {}
    for key, value in named.items():
        gate = None if key in found or kind is None else gate_of_word(key, kind)
        if gate is not None and gate not in gates and _fits(value, shape):
            gates[gate] = value
    return Answer(tuple(named[key] for key in found), gates)


def _nested_state(answer: object, parts: int, shape: tuple[int, ...]) -> tuple[Array, ...] | None:
    """Return the state of (output, (h, c)): the inner tuple that is one."""
    if not isinstance(answer, tuple | list) or parts < 2:
        return None
    for item in answer:
        inner = isinstance(item, tuple | list) and len(item) == parts
        if inner and all(_fits(part, shape) for part in item):
            return tuple(item)
    return None


def _arrays_in(answer: object, shape: tuple[int, ...]) -> Iterator[Array]:
    if isinstance(answer, tuple | list):
        for item in answer:
            if not isinstance(item, Mapping):
                yield from _arrays_in(item, shape)
    elif _fits(answer, shape):
        yield answer


def _fits(value: object, shape: tuple[int, ...]) -> bool:
    return tuple(getattr(value, "shape", ())) == shape
