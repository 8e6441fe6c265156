"""The names of cells as headings write them."""

from __future__ import annotations

from collections.abc import Iterable

CELL_TITLES = {
    "lstm": "LSTM",
    "gru": "GRU",
    "gru-before": "GRU, reset before",
    "rnn": "RNN",
    "rnn-relu": "relu RNN",
}
"""The built-in cells and their variants."""


def cell_title(cell: str) -> str:
    """Return a cell's name as a heading writes it; a user's own cell keeps its name.

    >>> cell_title("gru"), cell_title("cell.py:make")
    ('GRU', 'cell.py:make')
    """
    return CELL_TITLES.get(cell, cell)


def short_names(cells: Iterable[str]) -> dict[str, str]:
    """Return each cell's name without its folders, where that does not make two cells alike.

    >>> short_names(["lstm", "examples/unit.py:make"])
    {'lstm': 'lstm', 'examples/unit.py:make': 'unit.py:make'}
    >>> short_names(["a/unit.py:make", "b/unit.py:make"])["b/unit.py:make"]
    'b/unit.py:make'
    """
    shorts = {cell: cell.replace("\\", "/").rsplit("/", 1)[-1] for cell in cells}
    kept = list(shorts.values())
    return {cell: short if kept.count(short) == 1 else cell for cell, short in shorts.items()}
