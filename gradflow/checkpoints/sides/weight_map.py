"""A user's own word on how B's weights come from A's: a file of places, or a function.

    gate_order = "i,f,o,g"                          # of B's stacked weights; all else is found

    [map]                                           # or place by place: B's = A's
    "W_f[:, 0:3]" = "weight_ih[5:10]"
    "U_f" = "weight_hh[5:10].T"
    "b_f" = ["bias_ih[5:10]", "bias_hh[5:10]"]            # a list is added up
    "b_z" = "-bias_ih[5:10]"

The same in JSON. A function takes A's weights, a dict of tensors by name, and returns B's.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradflow.cells.user_code import describe_fault
from gradflow.checkpoints.sides.affine_map import AffineMap, MapFunction, MapLine, fill_lines
from gradflow.checkpoints.sides.blocks import LETTERS, STANDARD_ORDER
from gradflow.checkpoints.sides.gate_words import gate_of_word
from gradflow.checkpoints.sides.protocol import Weights
from gradflow.checkpoints.user_files import is_place, load_object
from gradflow.errors import CellCallError, CellLoadError, SettingError, nearest_name

MapEntries = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class WeightMap:
    """What was given: a function, or entries B's place -> A's places; and the gates' order."""

    name: str
    function: MapFunction | None = None
    entries: MapEntries | None = None
    gate_order: str | None = None

    @property
    def is_full(self) -> bool:
        """True where it says of itself how weights are filled."""
        return self.function is not None or self.entries is not None

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """B's places and what goes there, as written."""
        lists = (
            (place, [s] if isinstance(s, str) else s) for place, s in (self.entries or {}).items()
        )
        return tuple((place, " + ".join(sources)) for place, sources in lists)

    def ordered(self, gate_order: str) -> WeightMap:
        """Return the same with another gate order."""
        return replace(self, gate_order=gate_order)

    def between(self, a: Weights, b: Weights) -> AffineMap:
        """Return the map between two sides with these weights.

        Raises:
            CellLoadError, CellCallError: a name, a place or an answer that does not fit.
        """
        if self.function is not None:
            return AffineMap(_checked(self.function, b, self.name), a)
        lines = [MapLine.read(place, sources) for place, sources in (self.entries or {}).items()]
        for line in lines:
            line.require_fit(a, b, self.name)
        return AffineMap(lambda weights: fill_lines(lines, weights, b), a)


def read_weight_map(given: object) -> WeightMap:
    """Return a weight map from what a user gives.

    Args:
        given: a TOML or JSON file, `file.py:function`, a function, or a mapping of places.

    Raises:
        CellLoadError, SettingError: it cannot be read, or is none of these.
    """
    if isinstance(given, WeightMap):
        return given
    if isinstance(given, dict):
        return _from_document(dict(given), "given")
    if callable(given):
        return WeightMap(getattr(given, "__name__", "function"), function=given)
    if not isinstance(given, str):
        raise SettingError(
            "a weight map is a file, file.py:function, a function or a mapping of places; got a "
            f"{type(given).__name__}."
        )
    path = Path(given).expanduser()
    if path.suffix.lower() not in (".toml", ".json") and is_place(given):
        found = load_object(given)
        if not callable(found):
            raise CellLoadError(f"weight map {given}: it must be a function of A's weights.")
        return WeightMap(given, function=found)
    return _from_document(_read_document(path), given)


def read_gate_order(text: str, kind: str) -> tuple[str, ...]:
    """Return the gates of an order such as "i,f,o,g" or "ifog".

    >>> read_gate_order("iofc", "lstm")
    ('input', 'output', 'forget', 'candidate')

    Raises:
        SettingError: it does not name every gate once.
    """
    words = [word for word in text.replace(",", " ").replace(">", " ").split() if word]
    if len(words) == 1 and len(words[0]) == len(STANDARD_ORDER[kind]):
        words = list(words[0])
    gates = tuple(gate_of_word(word, kind) or word for word in words)
    if sorted(gates) != sorted(STANDARD_ORDER[kind]):
        usual = ",".join(LETTERS[kind].values())
        raise SettingError(
            f"the gate order of a {kind.upper()} names each of its gates once, as in {usual}; got "
            f"{text!r}."
        )
    return gates


def _read_document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise SettingError(f"--weight-map cannot read {str(path)!r}: {why}.") from None
    try:
        document = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise SettingError(f"--weight-map cannot read {str(path)!r}: {error}.") from None
    if not isinstance(document, dict):
        raise SettingError(f"--weight-map {str(path)!r} must hold places, B's to A's.")
    return document


def _from_document(document: dict[str, Any], name: str) -> WeightMap:
    order = document.pop("gate_order", None)
    inner = document.pop("map", None)
    entries = document if inner is None else {**document, **inner}
    for place, sources in entries.items():
        listed: object = [sources] if isinstance(sources, str) else sources
        if not isinstance(listed, list | tuple) or not all(isinstance(s, str) for s in listed):
            raise SettingError(
                f"weight map {name}: {place!r} must be one place of A's or a list of them, as "
                f"'weight_ih[0:5]'; got {sources!r}."
            )
    return WeightMap(name, entries=entries or None, gate_order=order)


def _checked(function: MapFunction, b: Weights, name: str) -> MapFunction:
    """Return the function with its answers held against B's weights."""

    def call(weights: Weights) -> Any:
        try:
            answer = function(weights)
        except (Exception, SystemExit) as error:
            raise CellCallError(f"weight map {name} failed: {describe_fault(error)}") from error
        if not isinstance(answer, Mapping) or not answer:
            raise CellLoadError(
                f"weight map {name} must return a dict of B's weights by name; got "
                f"{type(answer).__name__}."
            )
        for key, value in answer.items():
            if key not in b:
                raise CellLoadError(
                    f"weight map {name}: B has no weight {key!r}. {nearest_name(str(key), b)}"
                )
            if tuple(value.shape) != tuple(b[key].shape):
                raise CellLoadError(
                    f"weight map {name}: B's {key} is {tuple(b[key].shape)}; got "
                    f"{tuple(value.shape)}."
                )
        return answer

    return call
