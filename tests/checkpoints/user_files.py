"""A file of cells as a user may have it on disk, and what writes such files for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

CELLS = """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.lin = nn.Linear(input_size + hidden_size, hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size

    def forward(self, x, h):
        return torch.tanh(self.lin(torch.cat([x, h], dim=1)))

def make_cell(input_size, hidden_size): return Cell(input_size, hidden_size)
def by_place(nin, nh): return Cell(nin, nh)
def keywords(*, hidden_size, input_size=5): return Cell(input_size, hidden_size)
def only_hidden(hidden_size): return Cell(7, hidden_size)
def fixed(): return Cell(2, 5)
def optional(stable=True, scale=1.0): return Cell(2, 5)
def anything(*args, **kwargs): return Cell(2, 5)
def typed(input_size, hidden_size, dtype=None): return Cell(input_size, hidden_size).to(dtype)
def other_width(input_size, hidden_size): return Cell(input_size, hidden_size + 1)
def torch_cell(): return nn.LSTMCell(2, 5)
def layer(): return nn.GRU(2, 5)
made = Cell(3, 4)
class Makers:
    @staticmethod
    def cell(): return Cell(2, 5)
"""

Write = Callable[[str, str], Path]
"""Write a text to a file below the working folder; return its path."""
