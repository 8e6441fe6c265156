"""What the functions of `gf.plot` share: the figure of given axes, and which panel is meant."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.errors import UnknownNameError


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes stand in.

    Raises:
        UnknownNameError: they stand in none.
    """
    figure = ax.get_figure(root=True)
    if figure is None:
        raise UnknownNameError("ax belongs to no figure (it was removed). Pass one that does.")
    return figure


def place_of(names: Sequence[str], chosen: int | None, keyword: str, noun: str = "panel") -> int:
    """Return which of several panels goes into one `ax`, counted from 0.

    Args:
        names: what the panels are called.
        chosen: the number asked for, None where none was.
        keyword: the argument that chooses.
        noun: what a panel is called.

    Raises:
        UnknownNameError: none was asked for and there are several, or there is no such one.

    >>> place_of(["layer 0"], None, "panel")
    0
    """
    place = 0 if chosen is None and len(names) == 1 else chosen
    if place is None or not 0 <= place < len(names):
        known = "; ".join(f"{number}: {name}" for number, name in enumerate(names)) or "none"
        raise UnknownNameError(
            f"one ax takes one {noun}. Name it with {keyword}=; there are: {known}."
        )
    return place
