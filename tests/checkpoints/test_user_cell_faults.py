"""What can be wrong with what stands after --cell, each fault in words of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradflow.checkpoints import load_cell
from gradflow.errors import CellLoadError, RequestError, UnknownNameError
from tests.checkpoints.user_files import CELLS, Write

FAULTS: list[tuple[str, str]] = [
    ("cells.py:mak_cell", "cells.py has no 'mak_cell'. Did you mean 'make_cell'"),
    ("cells.py:Makers.sell", "no 'Makers.sell'. Did you mean 'cell'"),
    ("cells.py", r"does not say which object.*FILE.py:NAME. In the file: Cell, make_cell"),
    ("cells.py:", "does not say which object"),
    (":make_cell", "does not say which object"),
    ("cell.py:make_cell", "no file cell.py. Did you mean cells.py"),
    ("nowhere/cell.py:make_cell", "no folder nowhere"),
    ("missing.py", "'missing.py' does not say which object"),
    ("folder:make_cell", "folder is a folder; .*folder/FILE.py:NAME"),
    ("folder/:make_cell", "is a folder"),
    ("notes.txt:make_cell", "notes.txt is no Python file"),
    ("binary.py:make_cell", "binary.py cannot be run"),
    ("syntax.py:make_cell", r"syntax.py cannot be run: SyntaxError: .*\(syntax.py:3\)"),
    ("raises.py:make_cell", r"raises.py cannot be run: KeyError: 'gone' \(raises.py:2\)"),
    (
        "deep.py:make_cell",
        r"deep.py cannot be run: ValueError: deep down \(helper_that_raises.py:2\)",
    ),
    ("exits.py:make_cell", r"(?s)sys.exit\(2\) \(exits.py:2\).*__name__ == '__main__'"),
    ("imports.py:make_cell", r"No module named 'not_installed_anywhere'.*\(imports.py:1\)"),
    ("relative.py:make_cell", r"(?s)relative import.*package.module:name"),
    ("nopackage.module:make_cell", "no module 'nopackage'"),
    ("cells:nothing", "cells has no 'nothing'"),
    ("raises:make_cell", r"the module raises cannot be imported: KeyError: 'gone' \(raises.py:2\)"),
    ("not a module:x", "no module 'not a module'"),
    ("faults.py:number", "number cannot be called.*int"),
    ("faults.py:nothing", r"nothing\(\) must return a torch.nn.Module; it returned None"),
    ("faults.py:a_class", r"returned the class Cell itself. Return Cell\(...\)"),
    ("faults.py:a_number", "returned something of type float"),
    ("faults.py:a_pair", "returned something of type tuple"),
    ("faults.py:fails", r"fails\(\) failed: RuntimeError: no luck today \(faults.py:\d+\)"),
    ("faults.py:fails_with", r"fails_with\(input_size=1, hidden_size=8\) failed: TypeError"),
    ("faults.py:leaves", r"leaves\(\) failed: sys.exit\('bye'\) \(faults.py:\d+\)"),
    ("faults.py:needs", r"needs\(depth\) is called without arguments.*also needs depth"),
    ("faults.py:needs_more", r"needs_more\(input_size, hidden_size, depth\).*also needs depth"),
    ("faults.py:lstm_step", r"lstm_step\(x, h, c\) looks like the step itself"),
    ("faults.py:two_levels", "nn.LSTM of several levels or directions is 2 cells"),
    ("faults.py:complex_cell", "parameter 'lin.weight' is complex"),
    ("faults.py:bad_forward", r"cell\(x, h\) failed: NameError: .*\(faults.py:\d+\)"),
    (
        "faults.py:bad_output",
        r"must return the new h, a tensor; got a tuple of 2 \(Tensor, Tensor\)",
    ),
    ("faults.py:linear", r"(?s)no width among its parameters.*TypeError: Linear.forward"),
    ("faults.py:bad_gates", "'keep' has no role 'kept'"),
]

FAULTY = """
import sys
number = 3
def nothing(): Cell(2, 5)
def a_class(): return Cell
def a_number(): return 0.5
def a_pair(): return Cell(2, 5), 3
def fails(): raise RuntimeError("no luck\\ntoday")
def fails_with(input_size, hidden_size): return Cell(input_size)
def leaves(): sys.exit("bye")
def needs(depth): return Cell(2, 5)
def needs_more(input_size, hidden_size, depth): return Cell(2, 5)
def lstm_step(x, h, c): return h, c
def two_levels(): return nn.LSTM(2, 5, num_layers=2)
def complex_cell():
    cell = Cell(2, 5)
    cell.lin.weight = nn.Parameter(cell.lin.weight.to(torch.complex64))
    return cell
def bad_forward():
    class Bad(Cell):
        def forward(self, x, h): return undefined_name
    return Bad(2, 5)
def bad_output():
    class Bad(Cell):
        def forward(self, x, h): return h, h
    return Bad(2, 5)
def linear(): return nn.Linear(2, 5)
def bad_gates():
    cell = Cell(2, 5)
    cell.gates = [{"name": "keep", "role": "kept"}]
    return cell
"""


@pytest.mark.parametrize(("spec", "words"), FAULTS, ids=[spec for spec, _ in FAULTS])
def test_what_is_wrong_is_said(write: Write, folder: Path, spec: str, words: str) -> None:
    """Every fault has words of its own, of one to four lines, and no traceback."""
    write("cells.py", CELLS)
    write("faults.py", CELLS + FAULTY)
    write("folder/inside.py", CELLS)
    write("notes.txt", "def make_cell(): pass")
    (folder / "binary.py").write_bytes(b"\x00\x01\xff\xfe")
    write("syntax.py", "import torch\n\ndef make_cell(:\n    pass\n")
    write("raises.py", "kinds = {}\nmake_cell = kinds['gone']\n")
    write("helper_that_raises.py", "def help_me():\n    raise ValueError('deep down')\n")
    write("deep.py", "from helper_that_raises import help_me\nmake_cell = help_me()\n")
    write("exits.py", "import sys\nsys.exit(2)\n")
    write("imports.py", "import not_installed_anywhere\n")
    write("relative.py", "from . import cells\n")
    with pytest.raises(CellLoadError, match=words) as caught:
        load_cell(spec, 1, 8)
    message = str(caught.value)
    assert message.startswith(f"--cell {spec}: ")
    assert len(message.splitlines()) <= 4
    assert isinstance(caught.value, RequestError)


def test_a_misspelt_name_offers_the_nearest() -> None:
    """A word without a colon is a registered name."""
    with pytest.raises(UnknownNameError, match=r"no cell 'lsmt'. Did you mean 'lstm'.*file.py:"):
        load_cell("lsmt", 1, 8)


def test_an_unreadable_file_is_said_to_be_unreadable(write: Write) -> None:
    """Permissions are a reason too (a superuser reads everything, so here it is a broken link)."""
    path = write("cells.py", CELLS)
    shutil.move(path, path.with_name("moved.py"))
    path.symlink_to("nowhere.py")
    with pytest.raises(CellLoadError, match=r"no file cells.py"):
        load_cell("cells.py:make_cell", 1, 8)


def test_a_keyboard_interrupt_is_not_swallowed(write: Write) -> None:
    """Stopping while a user's file runs stops the program."""
    write("cells.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_cell("cells.py:make_cell", 1, 8)
