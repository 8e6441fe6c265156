"""The page docs/your-own-cell.md: its cell loads, its gates are read, its words are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.cells import ForeignCell
from gradflow.cells.declared_gates import declared_gates
from gradflow.cells.gates import KEYS, ROLES
from gradflow.checkpoints import load_cell

PAGE = Path(__file__).parents[2] / "docs" / "your-own-cell.md"


def blocks() -> list[str]:
    """Return the Python of the page, block by block."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_whole_cell_of_the_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved as leaky.py, it loads by its class; at h = 0 its step keeps 0.9 and what it mixes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaky.py").write_text(blocks()[0], encoding="utf-8")
    cell = load_cell("leaky.py:Leaky", 1, 4, dtype=torch.float64)
    assert isinstance(cell, ForeignCell)
    assert (cell.input_size, cell.part_sizes, cell.notes) == (1, (4,), ())
    step = cell.step(torch.zeros(1, 1).double(), (torch.ones(1, 4).double(),))
    assert ((step["h"] > 0.8) & (step["h"] < 1.0)).all()


def test_the_gates_of_the_page_can_be_read() -> None:
    """They fit an LSTM without output gate on nine rows over [x, h] of widths 2 and 3."""
    module = nn.Module()
    module.lin = nn.Linear(5, 9)
    exec(blocks()[1], {"self": module})
    gates = declared_gates(module)
    assert [gate.role for gate in gates] == ["keep", "write", "candidate"]


def test_every_role_and_key_is_explained() -> None:
    """What a declaration may say is on the page."""
    text = PAGE.read_text(encoding="utf-8")
    for word in (*ROLES, *KEYS):
        assert word in text, word
    read = ("input_size", "hidden_size", "state_size", "parts", "initial_state", "kept_part")
    for name in (*read, "gates", "gate_values"):
        assert f"`{name}" in text, name
