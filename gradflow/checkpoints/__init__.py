"""A user's files and modules, turned into cells."""

from gradflow.checkpoints.torch_modules import from_torch
from gradflow.checkpoints.user_cells import load_cell
from gradflow.checkpoints.user_files import load_object

__all__ = ["from_torch", "load_cell", "load_object"]
