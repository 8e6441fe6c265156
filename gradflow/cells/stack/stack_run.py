"""What a run of a stack leaves behind: every layer's inputs and states, by position."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.cells.stack.dropout import DropoutMasks


@dataclass(frozen=True)
class StackRun:
    """One run over (time, batch, input); cells are in torch's order (layer, then direction).

    `inputs[l]` is what the cells of layer l read, after dropout, (time, batch, width);
    `states[k]` the state of cell k after it read each position, (time, batch, width) per part,
    `start[k]` the one before the first, `final[k]` the one after the last that is the sample's
    own. `output` is the last layer's, with zeros at padded steps; `valid` (time, batch) tells
    those, None where nothing is padded, and `lengths` counts them. `masks` are those that were
    used.
    """

    inputs: tuple[Tensor, ...]
    states: tuple[State, ...]
    start: tuple[State, ...]
    final: tuple[State, ...]
    output: Tensor
    lengths: Tensor | None
    valid: Tensor | None
    masks: DropoutMasks | None
