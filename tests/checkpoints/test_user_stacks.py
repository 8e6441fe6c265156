"""Stacks from a user's files: a cell that is stacked, a whole layer that is taken as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradflow.checkpoints.user_stacks import load_stack
from gradflow.config import DepthSettings
from gradflow.errors import CellLoadError, SettingError, ShapeError
from gradflow.experiments.depth import run_depth

FILE = """
import torch
from gradflow.cells import Stack

def cell(input_size, hidden_size):
    return torch.nn.GRUCell(input_size, hidden_size)

class Leaky(torch.nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.mix = torch.nn.Linear(input_size + hidden_size, hidden_size)

    def forward(self, x, h):
        return 0.9 * h + 0.1 * torch.tanh(self.mix(torch.cat([x, h], dim=1)))

def fixed():
    return torch.nn.GRUCell(3, 4)

def layer():
    torch.manual_seed(0)
    return torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True, dropout=0.5)

def stack():
    return Stack.build("gru", 4, 4, layers=2, residual=True)

def nothing():
    return 7
"""
SMALL: dict[str, Any] = {"steps": 5, "batch": 2, "hidden": 4, "input_size": 3, "layers": 2}


@pytest.fixture(autouse=True)
def _a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)


def load(name: str, *, layers: int = 2, bidirectional: bool = False):
    """Load a stack of the file."""
    return load_stack(
        f"mine.py:{name}",
        3,
        4,
        layers=layers,
        bidirectional=bidirectional,
        dtype=torch.float64,
        device="cpu",
    )


def test_a_cell_is_made_for_every_layer_and_direction() -> None:
    """Each as wide as what the layer below shows, each with weights of its own."""
    stack, whole = load("cell", layers=3, bidirectional=True)
    assert not whole
    assert [cell.input_size for cell in stack.cells] == [3, 3, 8, 8, 8, 8]
    assert not torch.equal(stack.cells[2].weight_hh, stack.cells[3].weight_hh)
    assert stack.dtype == torch.float64


def test_a_cell_with_its_own_width_fits_on_itself_or_is_refused() -> None:
    """GRUCell(3, 4) reads 3 and shows 4: it stands alone."""
    assert load("fixed", layers=1)[0].layers == 1
    with pytest.raises(ShapeError, match="layer 2 must read what layer 1 shows, 4 numbers"):
        load("fixed")


def test_a_layer_is_taken_whole() -> None:
    """Its own layers, directions, weights and form; the file's own object is not changed."""
    stack, whole = load("layer", layers=7)
    assert whole
    assert (stack.layers, stack.directions, stack.batch_first) == (2, 2, True)
    x = torch.randn(2, 5, 3).double()
    torch.manual_seed(0)
    expected = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True).double()
    torch.testing.assert_close(stack.eval()(x)[0], expected(x)[0], rtol=1e-12, atol=1e-13)


def test_a_whole_layer_and_a_users_cell_are_measured() -> None:
    """The map has the file's layers; notes tell whose weights they are, checks pass."""
    result = run_depth(DepthSettings(cell="mine.py:layer,mine.py:Leaky", **SMALL))
    assert [check for check in result.checks if not check.passed] == []
    assert [(m.layers, m.directions, m.method) for m in result.maps] == [
        (2, 2, "closed form"), (2, 2, "closed form"), (2, 1, "generic"), (2, 1, "generic"),
    ]  # fmt: skip
    assert any("measured as its file makes it, with 2 layers" in note for note in result.notes)
    assert "mine.py:layer: the stack is torch's layer" in [check.name for check in result.checks]


def test_a_stack_with_links_keeps_them() -> None:
    """It is measured with its links alone."""
    result = run_depth(DepthSettings(cell="mine.py:stack", **SMALL))
    assert [found.residual for found in result.maps] == [True]


def test_what_is_no_cell_is_refused() -> None:
    """The flag, the name, what came."""
    with pytest.raises(CellLoadError, match=r"--cell mine.py:nothing: nothing\(.*int"):
        load("nothing")
    with pytest.raises(SettingError, match="--init draws the weights of a built-in cell"):
        run_depth(DepthSettings(cell="mine.py:cell", init="xavier", **SMALL))
