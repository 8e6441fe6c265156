"""What a user's module says of itself may be broken too: each answer is read with care."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import ForeignCell, hold_
from gradflow.cells.declared_gates import HOLD_ARGUMENTS
from gradflow.errors import CellLoadError
from tests.cells.user_modules import Plain

pytestmark = pytest.mark.usefixtures("unchecked_annotations")

ATTRIBUTES = (
    "input_size",
    "hidden_size",
    "state_size",
    "parts",
    "initial_state",
    "kept_part",
    "gates",
    "gate_values",
)


def fails(self: nn.Module) -> object:
    """Raise, as a property with a fault does."""
    raise RuntimeError("no idea")


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_property_that_fails_is_named(name: str) -> None:
    """A property is the user's code, so what it raises is told as theirs, with the place."""
    kind = type("Mine", (Plain,), {})
    module = kind()
    setattr(kind, name, property(fails))
    with pytest.raises(CellLoadError, match=rf"Mine\.{name} failed: RuntimeError: no idea \("):
        ForeignCell(module)


def test_the_arguments_of_hold_are_no_names_of_gates() -> None:
    """A gate called as an argument of hold_ would set that argument instead of the gate."""
    own = [
        name
        for name, parameter in inspect.signature(hold_).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    assert sorted(own) == sorted(HOLD_ARGUMENTS)
    gate = {"name": "generator", "role": "keep", "bias": "lin.bias", "weights": "lin.weight"}
    module = type("Mine", (Plain,), {"gates": [gate]})()
    with pytest.raises(CellLoadError, match="no gate is called 'generator'"):
        ForeignCell(module)


def test_a_shown_gate_has_a_text_for_its_name() -> None:
    """Gates are known by name everywhere, so a number for a name is refused."""

    def shown(self: nn.Module, x: Tensor, h: Tensor) -> dict[int, Tensor]:
        return {3: torch.sigmoid(h)}

    module = type("Mine", (Plain,), {"gate_values": shown})()
    with pytest.raises(CellLoadError, match=r"names each gate by a text.*got 3"):
        ForeignCell(module)


def test_a_dataclass_that_compares_by_value_is_told_the_cure() -> None:
    """@dataclass takes the hash away, and torch keeps modules in sets."""
    module = type("Mine", (Plain,), {"__hash__": None})()
    with pytest.raises(CellLoadError, match=r"cannot be hashed.*@dataclass\(eq=False\)"):
        ForeignCell(module)


def test_widths_may_be_whole_numbers_of_numpy() -> None:
    """A width that was computed with NumPy is a width."""
    module = Plain()
    module.input_size, module.hidden_size = np.int64(2), np.int64(3)  # type: ignore[assignment]
    cell = ForeignCell(module)
    assert (cell.input_size, cell.hidden_size) == (2, 3)
    assert type(cell.hidden_size) is int
