"""What people call gates: letters and words, alone and inside the names of weights.

    W_f, Wf, W_xf, W_hf, U_f, b_f            f, with what it reads before it (x, i or h)
    forget_gate.weight, lin_f.bias, f_gate   the word, or the letter, among other words
    W_xz, W_xr, W_xh                         one set: here h is the candidate

Names are read as a set, one gate each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

_LSTM = {
    "input": ("i", "in", "input", "inp", "write", "u", "add", "ig", "it"),
    "forget": ("f", "forget", "fgt", "forg", "keep", "fg", "ft"),
    "candidate": (
        *("g", "c", "cand", "candidate", "cell", "new", "j", "z", "a", "n", "cc", "update", "gt"),
        *("ctilde", "cbar", "chat", "ctil", "modulation", "block", "content", "memory", "cg", "h"),
        *("ccap", "cct", "cdash", "gg"),
    ),
    "output": ("o", "out", "output", "expose", "og", "ot"),
}
_GRU = {
    "reset": ("r", "reset", "rst", "rg", "rt"),
    "update": ("z", "u", "update", "upd", "keep", "zg", "zt"),
    "candidate": (
        *("n", "h", "c", "g", "cand", "candidate", "new", "hh", "htilde", "hbar", "hhat", "cell"),
        *("hcand", "content", "out", "memory", "hidden", "ng", "nt", "hcap", "hdash", "ctilde"),
    ),
}
_RNN: dict[str, tuple[str, ...]] = {"candidate": ("n", "h", "candidate", "")}
VOCABULARY: dict[str, dict[str, tuple[str, ...]]] = {"lstm": _LSTM, "gru": _GRU, "rnn": _RNN}
# Words that name the kind of a thing and no gate.
_NOISE = frozenset(
    {"gate", "weight", "weights", "bias", "kernel", "lin", "linear", "layer", "fc", "dense", "net"}
    | {"proj", "projection", "mat", "matrix", "w", "u", "v", "b", "param", "raw", "t", "to", "s"}
)
_LEADS = ("weight", "bias", "kernel", "lin", "fc", "w", "u", "v", "b")
_SOURCES = ("x2", "h2", "i2", "x", "h", "i", "a", "r")
_TAILS = ("x", "h", "i", "r")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def plain_word(name: str) -> str:
    """Return a name as one lower-case word.

    >>> plain_word("H_next")
    'hnext'
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


def gate_of_word(word: str, kind: str) -> str | None:
    """Return the gate that a key such as "i", "i_t" or "forget_gate" means.

    >>> gate_of_word("f_t", "lstm"), gate_of_word("update_gate", "gru"), gate_of_word("y", "gru")
    ('forget', 'update', None)
    """
    words = [part for part in _words(word) if part not in ("gate", "t")] or [word.lower()]
    for gate, known in VOCABULARY[kind].items():
        if "".join(words) in known:
            return gate
    return None


def gates_of_names(names: Sequence[str], kind: str) -> dict[str, str] | None:
    """Return the gate of each of these names, one each, or None where the names do not tell.

    The names are read together: "h" is the candidate in W_xz, W_xr, W_xh and nothing else in W_h.

    >>> gates_of_names(["W_xz", "W_xr", "W_xh"], "gru")
    {'W_xz': 'update', 'W_xr': 'reset', 'W_xh': 'candidate'}
    >>> gates_of_names(["Wf", "Wi", "Wc", "Wo"], "lstm")["Wc"]
    'candidate'
    >>> gates_of_names(["W_1", "W_2", "W_3", "W_4"], "lstm") is None
    True
    """
    wanted = set(VOCABULARY[kind])
    if len(names) != len(wanted):
        return None
    schemes = (_by_word, _by_letter, _by_sourced_letter, _by_rest(names))
    readings = [{name: _unique(read(name), kind) for name in names} for read in schemes]
    for found in readings:
        if set(found.values()) == wanted:
            return {name: gate for name, gate in found.items() if gate is not None}
    for found in readings:  # W_z, W_r and plain W: the one without a word is the candidate
        if set(found.values()) == (wanted - {"candidate"}) | {None}:
            return {name: gate or "candidate" for name, gate in found.items()}
    return None


def _unique(tokens: Iterator[str], kind: str) -> str | None:
    for token in tokens:
        for gate, known in VOCABULARY[kind].items():
            if token in known:
                return gate
    return None


def _words(name: str) -> list[str]:
    spaced = _CAMEL.sub("_", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def _by_word(name: str) -> Iterator[str]:
    """Yield the words that may name a gate, the telling (long) ones first."""
    words = [word for word in _words(name) if word not in _NOISE]
    yield from sorted((word for word in words if len(word) > 1), key=len, reverse=True)
    yield from (word for word in words if len(word) == 1)


def _by_letter(name: str) -> Iterator[str]:
    """Yield what is left of each word without its leading w, u, b: "wf" gives "f"."""
    for word in _words(name):
        for lead in _LEADS:
            if word.startswith(lead) and word != lead:
                yield word.removeprefix(lead)


def _by_sourced_letter(name: str) -> Iterator[str]:
    """Yield what is left without what the weight reads ("wxf", "xf", "fx" give "f"), then all."""
    for word in [*_by_letter(name), *_words(name)]:
        for source in _SOURCES:
            if word.startswith(source) and word != source:
                yield word.removeprefix(source)
        for tail in _TAILS:
            if word.endswith(tail) and word != tail:
                yield word.removesuffix(tail)
    yield from _by_letter(name)
    yield from _by_word(name)


def _by_rest(names: Sequence[str]) -> Callable[[str], Iterator[str]]:
    """Return a reader of what these names do not share."""
    plain = ["_".join(_words(name)) for name in names]
    start = _shared(plain)
    end = _shared([word[::-1] for word in plain])

    def rest(name: str) -> Iterator[str]:
        word = "_".join(_words(name))
        yield word[start : len(word) - end].strip("_")

    return rest


def _shared(words: Sequence[str]) -> int:
    """Return how many letters all of the words begin with."""
    count = 0
    while all(len(word) > count for word in words) and len({word[count] for word in words}) == 1:
        count += 1
    return count


def gates_of_words(names: Sequence[str], kind: str) -> dict[str, str]:
    """Return the gates of those names that hold a whole word for one ("candidate.weight")."""
    found = {name: _unique((w for w in _by_word(name) if len(w) > 2), kind) for name in names}
    known = {name: gate for name, gate in found.items() if gate is not None}
    return known if len(set(known.values())) == len(known) else {}
