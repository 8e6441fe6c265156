"""Cells by name: built in, registered in the process, announced by an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gradflow.cells import GRU, RNN, ForeignCell, cell_names, make_cell, register_cell
from gradflow.cells import registry as registry_module
from gradflow.errors import CellLoadError, UnknownNameError
from tests.cells.user_modules import MinimalGatedUnit


@pytest.fixture(autouse=True)
def _clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_registered", {})


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    """Install a package that announces two cells: one that works, one that does not load."""
    (tmp_path / "my_cells_plugin.py").write_text(
        "from gradflow.cells import RNN\n"
        "def make(input_size, hidden_size):\n"
        "    return RNN(input_size, hidden_size, nonlinearity='relu')\n",
        encoding="utf-8",
    )
    info = tmp_path / "my_cells-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: my-cells\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[gradflow.cells]\npositive = my_cells_plugin:make\nbroken = my_cells_plugin:gone\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    sys.modules.pop("my_cells_plugin", None)


def test_built_in_cells_come_first() -> None:
    """lstm, gru and rnn are always there."""
    assert cell_names()[:3] == ("lstm", "gru", "rnn")


def test_options_reach_the_factory_that_takes_them() -> None:
    """`reset` is the GRU's, `nonlinearity` the RNN's; the others do without."""
    options = {"reset": "before", "nonlinearity": "relu", "dtype": torch.float64}
    gru, rnn, lstm = (make_cell(name, 2, 3, **options) for name in ("gru", "rnn", "lstm"))
    assert isinstance(gru, GRU)
    assert isinstance(rnn, RNN)
    assert (gru.reset, rnn.nonlinearity, lstm.dtype) == ("before", "relu", torch.float64)


def test_a_registered_cell_is_known_by_name() -> None:
    """Everything that takes a cell's name takes it from then on; registering again replaces it."""
    register_cell("relu-rnn", lambda i, h: RNN(i, h, nonlinearity="relu"))
    assert "relu-rnn" in cell_names()
    assert make_cell("relu-rnn", 2, 3, reset="after").nonlinearity == "relu"
    register_cell("relu-rnn", RNN)
    assert make_cell("relu-rnn", 2, 3).nonlinearity == "tanh"


def test_a_registered_module_becomes_a_cell() -> None:
    """A factory may return a plain torch module in torch's call form."""
    register_cell("mgu", MinimalGatedUnit)
    cell = make_cell("mgu", 2, 3)
    assert isinstance(cell, ForeignCell)
    assert (cell.input_size, cell.hidden_size, cell.keep_gate.name) == (2, 3, "update")


def test_a_factory_with_keywords_gets_every_option() -> None:
    """**options takes all that was asked for."""
    seen: dict[str, object] = {}

    def factory(input_size: int, hidden_size: int, **options: object) -> RNN:
        seen.update(options)
        return RNN(input_size, hidden_size)

    register_cell("greedy", factory)
    make_cell("greedy", 2, 3, reset="after", dtype=None)
    assert seen == {"reset": "after", "dtype": None}


def test_an_installed_package_announces_its_cells(plugin: Path) -> None:
    """An entry point of the group gradflow.cells is a cell."""
    assert plugin.exists()
    assert {"positive", "broken"} <= set(cell_names())
    assert make_cell("positive", 2, 3).nonlinearity == "relu"


def test_a_package_that_fails_to_load_is_named(plugin: Path) -> None:
    """The words name the entry point, the cell and the reason."""
    assert plugin.exists()
    with pytest.raises(CellLoadError, match=r"'my_cells_plugin:gone' for cell 'broken'.*gone"):
        make_cell("broken", 2, 3)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_built_in_names_are_taken(name: str) -> None:
    """A result named lstm must mean our LSTM."""
    with pytest.raises(CellLoadError, match=f"'{name}' is a built-in cell"):
        register_cell(name, RNN)


@pytest.mark.parametrize("name", ["", "a.py:b", "my cell", "pkg.mod", "a/b"])
def test_names_that_mean_files_or_nothing_are_refused(name: str) -> None:
    """Dots, colons and slashes stand for files and modules."""
    with pytest.raises(CellLoadError, match="letters, digits"):
        register_cell(name, RNN)


def test_a_misspelt_cell_gets_the_right_one_offered() -> None:
    """The words list what there is, and how a cell of one's own is written."""
    with pytest.raises(UnknownNameError, match=r"'lsmt'. Did you mean 'lstm'.*file.py:make_cell"):
        make_cell("lsmt", 2, 3)
