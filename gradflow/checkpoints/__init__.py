"""A user's files and modules, turned into cells."""

from gradflow.checkpoints.fill_model import fill_model_
from gradflow.checkpoints.find_modules import ModuleSearch, RecurrentModule, find_modules
from gradflow.checkpoints.layers import (
    Checkpoint,
    FoundLayer,
    FoundModule,
    load_checkpoint,
    load_layers,
)
from gradflow.checkpoints.layers.of_modules import layers_of_model
from gradflow.checkpoints.torch_modules import from_torch
from gradflow.checkpoints.user_cells import load_cell
from gradflow.checkpoints.user_files import load_object

__all__ = [
    "Checkpoint",
    "FoundLayer",
    "FoundModule",
    "ModuleSearch",
    "RecurrentModule",
    "fill_model_",
    "find_modules",
    "from_torch",
    "layers_of_model",
    "load_cell",
    "load_checkpoint",
    "load_layers",
    "load_object",
]
