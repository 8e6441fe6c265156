"""The names of cells as headings write them."""

from __future__ import annotations

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
