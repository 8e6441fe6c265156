"""The axis dictionary: every tensor shape of the package, named once.

Axes: `time` (steps), `batch` (rows, one sample each), `input` and `hidden` (widths), `gate` (rows
of a stacked weight), `state` (all parts of the state, one after the other: h, then c), `columns`
(a block of tangents or cotangents). A leading `...` is "any number of further axes, time first".

The aliases are plain `Tensor` to the program; the tests load the package under jaxtyping's import
hook, which then checks every call.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

Inputs = Float[Tensor, "... batch input"]
Drive = Float[Tensor, "... batch gates"]
Part = Float[Tensor, "... batch hidden"]
Block = Float[Tensor, "batch state columns"]
GateBlock = Float[Tensor, "batch gates columns"]
StepJacobian = Float[Tensor, "batch state state"]

# One (batch, hidden) tensor per part, in the cell's order: (h,) or (h, c).
State = tuple[Tensor, ...]

__all__ = ["Block", "Drive", "GateBlock", "Inputs", "Part", "State", "StepJacobian", "Tensor"]
