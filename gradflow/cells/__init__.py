"""The things we look at: recurrences as white boxes, one per file."""

from gradflow.cells.base import Cell
from gradflow.cells.ensemble import stack_cells
from gradflow.cells.foreign import ForeignCell
from gradflow.cells.gates import Gate, Rows
from gradflow.cells.gru import GRU
from gradflow.cells.holding import hold_, logit, orthogonal_matrix
from gradflow.cells.lstm import LSTM
from gradflow.cells.protocol import CellLike, DiagonalSteps, Linearization, Step
from gradflow.cells.registry import cell_names, make_cell, register_cell
from gradflow.cells.rnn import RNN
from gradflow.cells.shapes import State
from gradflow.cells.stack import Dropout, DropoutMasks, Stack, StackRun

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Cell",
    "CellLike",
    "DiagonalSteps",
    "Dropout",
    "DropoutMasks",
    "ForeignCell",
    "Gate",
    "Linearization",
    "Rows",
    "Stack",
    "StackRun",
    "State",
    "Step",
    "cell_names",
    "hold_",
    "logit",
    "make_cell",
    "orthogonal_matrix",
    "register_cell",
    "stack_cells",
]
