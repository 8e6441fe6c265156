"""The numbers of a run by their names: of a result, of its rows, of a sweep's tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradflow.records.runs import RunFolder
from gradflow.records.sweeps import StoredRow

SECONDS = "seconds"
Numbers = dict[tuple[str, str], float | None]  # by dotted name, and of what


def is_named(name: str, metric: str) -> bool:
    """Return whether a dotted name is the metric, or ends with it.

    >>> is_named("costs.training_seconds", "training_seconds"), is_named("loss", "oss")
    (True, False)
    """
    return name == metric or name.endswith(f".{metric}")


def result_numbers(results: Mapping[str, Any], metric: str) -> Numbers:
    """Return every number of a result that the metric names, by where it stands.

    An entry of a list is called by the words in it (cell lstm, path full), and by its place among
    those with the same words.
    """
    found: Numbers = {}
    for name, what, value in _leaves(results, "", ""):
        if is_named(name, metric):
            found[name, what] = value
    return found


def task_numbers(rows: Sequence[StoredRow], metric: str, identity: Sequence[str]) -> Numbers:
    """Return the metric of each done task, by what `identity` names of its settings."""
    found: Numbers = {}
    for row in rows:
        if row.is_done:
            for name, value in row.single_values().items():
                if is_named(name, metric) and _is_number(value):
                    found[name, task_words(row, identity)] = value
    return found


def task_words(row: StoredRow, identity: Iterable[str]) -> str:
    """Return a task in words: `cell gru, delay 10`."""
    return ", ".join(f"{name} {_word(row.settings.get(name))}" for name in identity)


def varied_names(rows: Sequence[StoredRow]) -> list[str]:
    """Return the settings in which tasks differ, in their order."""
    names = dict.fromkeys(name for row in rows for name in row.settings)
    return [name for name in names if len({_word(row.settings.get(name)) for row in rows}) > 1]


def identity_of(a: RunFolder, b: RunFolder) -> list[str]:
    """Return the settings that tell the tasks of two sweeps apart, and so which are the same task.

    Not among them are those that each sweep has one value of, and another one than the other: in
    these the two sweeps differ as a whole.
    """
    varied = varied_names((*a.rows, *b.rows))
    return [name for name in varied if not _separates(name, a.rows, b.rows)]


def _separates(name: str, a: Sequence[StoredRow], b: Sequence[StoredRow]) -> bool:
    values = [{_word(row.settings.get(name)) for row in rows} for rows in (a, b)]
    return all(len(found) == 1 for found in values) and values[0] != values[1]


def _leaves(value: Any, path: str, what: str) -> Iterator[tuple[str, str, float | None]]:
    """Yield the dotted name of each number, where it stands in words, and the number."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), what)
    elif isinstance(value, list):
        for name, entry in zip(_entry_names(value), value, strict=True):
            yield from _leaves(entry, path, f"{what}, {name}" if what else name)
    elif value is None or _is_number(value):
        yield path, what, value


def _entry_names(entries: Sequence[Any]) -> list[str]:
    """Return a name for each entry of a list: its words, numbered where they come again."""
    words = [
        ", ".join(str(v) for v in entry.values() if isinstance(v, str))
        if isinstance(entry, Mapping)
        else ""
        for entry in entries
    ]
    often, seen = Counter(words), Counter[str]()
    names = []
    for word in words:
        seen[word] += 1
        number = f"#{seen[word]}"
        names.append(word if word and often[word] == 1 else f"{word} {number}".strip())
    return names


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
