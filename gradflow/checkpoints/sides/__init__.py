"""The two sides of a parity question: whatever steps, behind one small protocol."""

from gradflow.checkpoints.sides.blocks import (
    LETTERS,
    SOURCES,
    STANDARD_ORDER,
    Block,
    Layout,
    standard_layout,
)
from gradflow.checkpoints.sides.protocol import Gradients, Problem, Run, Side, Weights

__all__ = [
    "LETTERS",
    "SOURCES",
    "STANDARD_ORDER",
    "Block",
    "Gradients",
    "Layout",
    "Problem",
    "Run",
    "Side",
    "Weights",
    "standard_layout",
]
