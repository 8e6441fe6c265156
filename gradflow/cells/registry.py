"""Cells by name: the built-in ones, those of installed plug-ins, and those registered at run time.

A plug-in package announces a cell by an entry point of the group `gradflow.cells`, whose name is
the cell's and whose object is a factory `make(input_size, hidden_size, **options)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from torch import nn

from gradflow.cells.foreign import ForeignCell
from gradflow.cells.gru import GRU
from gradflow.cells.lstm import LSTM
from gradflow.cells.protocol import CellLike
from gradflow.cells.rnn import RNN
from gradflow.errors import CellLoadError, UnknownNameError, nearest_name

Factory = Callable[..., CellLike | nn.Module]

BUILT_IN: dict[str, Factory] = {
    "lstm": LSTM,
    "gru": GRU,
    "rnn": RNN,
}
_registered: dict[str, Factory] = {}


def register_cell(name: str, factory: Factory) -> None:
    """Make a cell known by name to every command and function of this process.

    Args:
        name: what `--cell` will take; letters, digits, `_` and `-`.
        factory: called as `factory(input_size, hidden_size)`, with those options that it names.
            It returns a cell, or a module that `ForeignCell` can take for one.

    Raises:
        CellLoadError: the name is a built-in cell's or not a plain word; the factory is no
            function.
    """
    if not callable(factory):
        raise CellLoadError(
            f"the factory of cell {name!r} is called as factory(input_size, hidden_size); "
            f"got a {type(factory).__name__}."
        )
    if name in BUILT_IN:
        raise CellLoadError(f"{name!r} is a built-in cell; register yours under another name.")
    if not (isinstance(name, str) and name.replace("_", "a").replace("-", "a").isalnum()):
        raise CellLoadError(
            f"a cell's name has letters, digits, '_' and '-' only; got {name!r}. "
            "Names with ':' or '.' stand for files and modules."
        )
    _registered[name] = factory


def cell_names() -> tuple[str, ...]:
    """Return every name that `make_cell` takes, built-in ones first."""
    plugged = {point.name for point in entry_points(group="gradflow.cells")}
    return (*BUILT_IN, *sorted((plugged | set(_registered)) - set(BUILT_IN)))


def find_factory(name: str) -> Factory:
    """Return the factory of a named cell.

    Raises:
        UnknownNameError: no cell has this name.
        CellLoadError: a plug-in announces the name but fails to load.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name in _registered:
        return _registered[name]
    for point in entry_points(group="gradflow.cells", name=name):
        try:
            factory: Factory = point.load()
        except Exception as error:
            raise CellLoadError(
                f"the plug-in {point.value!r} for cell {name!r} failed to load: {error}"
            ) from error
        return factory
    raise UnknownNameError(
        f"there is no cell {name!r}. {nearest_name(name, cell_names())} "
        "A cell of your own is written file.py:make_cell."
    )


def make_cell(name: str, input_size: int, hidden_size: int, **options: Any) -> CellLike:
    """Return a new cell by name; options that its factory does not take are left out.

    Args:
        name: one of `cell_names`.
        input_size, hidden_size: the widths.
        **options: `reset` for the GRU, `nonlinearity` for the RNN, `dtype`, `device`, ...

    Raises:
        UnknownNameError, CellLoadError: as in `find_factory`.
    """
    factory = find_factory(name)
    taken = inspect.signature(factory).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    fitting = {key: value for key, value in options.items() if anything or key in taken}
    made = factory(input_size, hidden_size, **fitting)
    if isinstance(made, CellLike):
        return made
    return ForeignCell(made, input_size=input_size, hidden_size=hidden_size)
