"""What stands after --cell: a user's file or module, read from wherever it lies."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import torch

from gradflow.cells import GRU, LSTM, CellLike, ForeignCell, hold_, register_cell
from gradflow.checkpoints import load_cell
from gradflow.engine import jacobian_norms
from gradflow.errors import CellLoadError
from tests import cases
from tests.cells.user_modules import EXAMPLE
from tests.checkpoints.user_files import CELLS, Write

DATA = Path(__file__).parents[1] / "data"


def sizes(cell: CellLike) -> tuple[int, int]:
    """Return (input, hidden)."""
    return cell.input_size, cell.hidden_size


# what is loaded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("make_cell", (1, 8)),
        ("Cell", (1, 8)),
        ("by_place", (1, 8)),
        ("keywords", (1, 8)),
        ("only_hidden", (7, 8)),
        ("fixed", (2, 5)),
        ("optional", (2, 5)),
        ("anything", (2, 5)),
        ("typed", (1, 8)),
        ("made", (3, 4)),
        ("Makers.cell", (2, 5)),
        ("torch_cell", (2, 5)),
        ("layer", (2, 5)),
    ],
)
def test_widths_go_to_those_who_take_them(
    write: Write, name: str, expected: tuple[int, int]
) -> None:
    """A function, a class or a module; with the widths by name or place, or with its own."""
    write("cells.py", CELLS)
    cell = load_cell(f"cells.py:{name}", 1, 8, dtype=torch.float64)
    assert sizes(cell) == expected
    assert cell.dtype == torch.float64
    assert getattr(cell, "notes", ()) == ()


def test_torchs_own_cells_become_ours(write: Write) -> None:
    """nn.LSTMCell and a layer of one cell come as white boxes, with gates and closed form."""
    write("cells.py", CELLS)
    assert isinstance(load_cell("cells.py:torch_cell", 1, 8), LSTM)
    assert isinstance(load_cell("cells.py:layer", 1, 8), GRU)
    assert isinstance(load_cell("torch.nn:LSTMCell", 1, 8), LSTM)


def test_the_example_of_the_documentation_decays_as_it_should() -> None:
    """examples/minimal_gated_unit.py: held at 0.5, half of the state is left per step."""
    cell = load_cell(f"{EXAMPLE}:make_cell", 1, 8, dtype=torch.float64)
    assert [(gate.name, gate.role) for gate in cell.gates] == [("update", "keep")]
    hold_(cell, update=0.5)
    norms = jacobian_norms(cell, torch.zeros(20, 1, 1).double(), cell.initial_state(1))
    cases.assert_same_log_norm(norms.log_norm[:, 0], np.log(0.5) * np.arange(1, 21))


def test_a_cell_that_says_nothing_is_found_out() -> None:
    """The field's hand-written LSTM tells no widths; they are found from its weights."""
    cell = load_cell(f"{DATA / 'naive_sigmoid_cell.py'}:make_cell", 1, 64)
    assert (sizes(cell), cell.parts) == ((2, 3), ("h", "c"))


def test_modules_are_found_from_the_working_folder(write: Write) -> None:
    """package.module:name needs no installation; a package is not mistaken for a folder."""
    write("pack/__init__.py", "from pack.cells import Cell")
    write("pack/cells.py", CELLS)
    assert sizes(load_cell("pack.cells:make_cell", 1, 8)) == (1, 8)
    assert sizes(load_cell("pack:Cell", 1, 8)) == (1, 8)


def test_paths_are_relative_to_the_working_folder(write: Write, folder: Path) -> None:
    """A path below it, an absolute path and one from another folder mean the same file."""
    write("deep/down/cells.py", CELLS)
    for place in (
        "deep/down/cells.py",
        "./deep/../deep/down/cells.py",
        folder / "deep/down/cells.py",
    ):
        assert sizes(load_cell(f"{place}:fixed", 1, 8)) == (2, 5)


def test_siblings_can_be_imported_early_and_late(write: Write) -> None:
    """What lies beside the file is found at import, when the cell is made, and while it runs."""
    write("mine/early.py", "HIDDEN = 3")
    write("mine/middle.py", "INPUT = 2")
    write("mine/late.py", "SCALE = 0.5")
    write(
        "mine/cells.py",
        CELLS
        + """
from early import HIDDEN

class Late(Cell):
    def forward(self, x, h):
        import late
        return late.SCALE * super().forward(x, h)

def build():
    from middle import INPUT
    return Late(INPUT, HIDDEN)
""",
    )
    cell = load_cell("mine/cells.py:build", 1, 8)
    assert sizes(cell) == (2, 3)
    cell.step(torch.ones(1, 2), cell.initial_state(1))


def test_two_folders_may_use_one_name_for_two_siblings(write: Write) -> None:
    """Each file gets the sibling from its own folder."""
    for folder, width in (("one", 3), ("two", 4)):
        write(f"{folder}/settings_of_cell.py", f"HIDDEN = {width}")
        write(
            f"{folder}/cell.py",
            CELLS + "\nfrom settings_of_cell import HIDDEN\ndef build(): return Cell(2, HIDDEN)\n",
        )
    assert sizes(load_cell("one/cell.py:build", 1, 8)) == (2, 3)
    assert sizes(load_cell("two/cell.py:build", 1, 8)) == (2, 4)


def test_a_file_of_a_famous_name_hides_nobody(write: Write) -> None:
    """A user's torch.py is a file like any other."""
    write("random.py", CELLS)
    assert sizes(load_cell("random.py:fixed", 1, 8)) == (2, 5)
    import random  # noqa: PLC0415

    assert hasattr(random, "gauss")


def test_a_changed_file_is_read_again(write: Write) -> None:
    """A file runs once for each version of it: no stale cell after an edit, no reload without."""
    counting = (
        "\nimport builtins\nbuiltins.loads_of_cell = getattr(builtins, 'loads_of_cell', 0) + 1\n"
    )
    write("cells.py", CELLS.replace("made = Cell(3, 4)", "") + counting)
    load_cell("cells.py:fixed", 1, 8)
    load_cell("cells.py:make_cell", 1, 8)
    import builtins  # noqa: PLC0415

    assert builtins.loads_of_cell == 1
    del builtins.loads_of_cell
    write("cells.py", CELLS.replace("Cell(2, 5)", "Cell(2, 6)"))
    assert sizes(load_cell("cells.py:fixed", 1, 8)) == (2, 6)


def test_every_load_is_a_cell_of_its_own(write: Write) -> None:
    """A file that always returns one object does not make one held gate overwrite another."""
    write("cells.py", CELLS + "\ndef same(): return made\n")
    first, second = (load_cell("cells.py:same", 1, 8) for _ in range(2))
    with torch.no_grad():
        for parameter in first.parameters():
            parameter.zero_()
    assert any(torch.any(parameter) for parameter in second.parameters())
    assert any(torch.any(parameter) for parameter in load_cell("cells.py:made", 1, 8).parameters())


def test_prints_go_to_standard_error(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """At import, in the factory and at every step: standard output carries results only."""
    write(
        "cells.py",
        CELLS
        + """
print("at import")
class Loud(Cell):
    def forward(self, x, h):
        print("at a step")
        return super().forward(x, h)
def loud():
    print("in the factory")
    return Loud(2, 5)
""",
    )
    cell = load_cell("cells.py:loud", 1, 8)
    cell.step(torch.ones(1, 2), cell.initial_state(1))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert {"at import", "in the factory", "at a step"} <= set(captured.err.splitlines())


def test_a_file_that_changes_folder_is_taken_back(write: Write, folder: Path) -> None:
    """Results are written relative to where the program was started."""
    write("deep/cells.py", "import os\nos.chdir('/')\n" + CELLS)
    load_cell("deep/cells.py:fixed", 1, 8)
    assert Path.cwd() == folder


def test_the_users_random_numbers_are_the_users(write: Write) -> None:
    """A seed before the load decides the weights, as it does in the user's own script."""
    write("cells.py", CELLS)
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        weights.append(load_cell("cells.py:fixed", 1, 8).get_parameter("lin.weight"))
    assert torch.equal(*weights)


def test_registered_names_are_cells_too(folder: Path) -> None:
    """Built-in names, and what register_cell was given: a factory of cells or of modules."""
    assert folder.exists()
    assert load_cell("gru", 1, 8, reset="before", dtype=torch.float64).reset == "before"
    register_cell("mine", torch.nn.GRUCell)
    assert isinstance(load_cell("mine", 1, 8), GRU)

    register_cell("partial", functools.partial(torch.nn.LSTMCell, bias=False))
    assert isinstance(load_cell("partial", 1, 8), LSTM)

    def broken(input_size: int, hidden_size: int) -> CellLike:
        raise ZeroDivisionError(f"{input_size} {hidden_size}")

    register_cell("broken", broken)
    with pytest.raises(CellLoadError, match=r"--cell broken: .*ZeroDivisionError"):
        load_cell("broken", 1, 8)


def test_another_width_than_asked_for_is_noted(write: Write) -> None:
    """A factory that was told a width and made another is measured, with a word."""
    write("cells.py", CELLS)
    cell = load_cell("cells.py:other_width", 1, 8)
    assert isinstance(cell, ForeignCell)
    assert cell.notes == ("asked for hidden_size 8, the cell is 9 wide.",)
