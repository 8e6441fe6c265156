"""Cells that return (output, state), as many of a user's own do, seen as cells that return a state.

y, (h, c) = cell(x, (h, c))        y, h = cell(x, h)
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from gradflow.cells import ForeignCell
from gradflow.errors import CellLoadError


class StateAlone(nn.Module):
    """A cell whose answer is (output, state), called for the state alone.

    What else one asks of it (widths, gates) the cell itself answers.

    >>> class Cell(nn.GRUCell):
    ...     def forward(self, x, h):
    ...         new = super().forward(x, h)
    ...         return new, new
    >>> ForeignCell(StateAlone(Cell(3, 5))).part_sizes
    (5,)
    """

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def __getattr__(self, name: str) -> Any:
        """Return what the cell has of this name."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("cell"), name)

    def forward(self, x: Tensor, state: Any) -> Any:
        """Return the new state."""
        return state_of(self.cell(x, state), state)


def state_of(answer: Any, given: Any) -> Any:
    """Return the state in a cell's answer: all of it, or what follows an output.

    Args:
        answer: of the cell.
        given: the state that it was called with, whose form the new one has; None where unknown.

    >>> state_of(("h", "c"), ("h", "c")), state_of(("y", ("h", "c")), None)
    (('h', 'c'), ('h', 'c'))
    """
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        return answer
    nested = isinstance(answer[1], tuple | list)
    return answer[1] if nested or isinstance(given, Tensor) else answer


def foreign_cell(module: nn.Module) -> ForeignCell:
    """Return a user's module as a cell, whether it returns its state alone or after an output.

    Raises:
        CellLoadError: it works in neither way; the message is of the first.
    """
    try:
        return ForeignCell(module)
    except CellLoadError as problem:
        try:
            return ForeignCell(StateAlone(module))
        except CellLoadError:
            raise problem from None
