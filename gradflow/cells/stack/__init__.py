"""Cells in layers and directions, with residual links, dropout and padded batches."""

from gradflow.cells.stack.dropout import Dropout, DropoutMasks
from gradflow.cells.stack.layer_run import output_part
from gradflow.cells.stack.recurrent_mask import with_recurrent_mask
from gradflow.cells.stack.stack import Stack
from gradflow.cells.stack.stack_run import StackRun

__all__ = [
    "Dropout",
    "DropoutMasks",
    "Stack",
    "StackRun",
    "output_part",
    "with_recurrent_mask",
]
