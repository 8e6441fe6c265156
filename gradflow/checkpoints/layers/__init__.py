"""The recurrent layers in a file of weights, as cells."""

from gradflow.checkpoints.layers.found import (
    Checkpoint,
    FoundLayer,
    FoundModule,
    NonFinite,
    Unread,
)
from gradflow.checkpoints.layers.load_layers import load_checkpoint, load_layers

__all__ = [
    "Checkpoint",
    "FoundLayer",
    "FoundModule",
    "NonFinite",
    "Unread",
    "load_checkpoint",
    "load_layers",
]
