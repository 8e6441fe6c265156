"""What every twin measures: one torch cell, the inputs it reads, the state it starts from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

State = tuple[Tensor, ...]
Block = str | tuple[str, str]
"""``"joint"`` or (row part, column part), such as ``("c", "c")`` for dc_T/dc_0."""


@dataclass(frozen=True)
class Subject:
    """A torch cell in torch's call form, its inputs (time, batch, input) and its first state.

    ``state`` holds one tensor (batch, hidden) per part: (h, c) for an LSTM, (h,) otherwise.
    """

    module: nn.Module
    inputs: Tensor
    state: State

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.inputs.shape[0]

    @property
    def batch(self) -> int:
        """Number of rows."""
        return self.inputs.shape[1]

    @property
    def hidden_size(self) -> int:
        """Width of one part."""
        return self.state[0].shape[1]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts, in the order of the joint state."""
        return ("h", "c") if len(self.state) == 2 else ("h",)

    @property
    def state_size(self) -> int:
        """Width of the joint state."""
        return self.hidden_size * len(self.state)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The parameters by name, detached."""
        return {name: tensor.detach() for name, tensor in self.module.named_parameters()}

    def advance(self, x: Tensor, state: State) -> State:
        """Take one step; the call differs by the number of parts, the answer does not."""
        if len(state) == 1:
            return (self.module(x, state[0]),)
        return tuple(self.module(x, state))

    def advance_joint(self, x: Tensor, joint: Tensor) -> Tensor:
        """Take one step of the joint state (batch, state), h first and then c."""
        parts = joint.chunk(len(self.state), dim=1)
        return torch.cat(self.advance(x, parts), dim=1)

    def span(self, part: str) -> slice:
        """Return where a part stands in the joint state."""
        first = self.parts.index(part) * self.hidden_size
        return slice(first, first + self.hidden_size)

    def spans(self, block: Block) -> tuple[slice, slice]:
        """Return the rows and the columns of a block of the joint Jacobian."""
        if isinstance(block, tuple):
            return self.span(block[0]), self.span(block[1])
        if block != "joint":
            raise ValueError(f'a block is "joint" or two parts, not {block!r}')
        return slice(None), slice(None)

    def row(self, index: int) -> Subject:
        """Return the same subject with one row of the batch."""
        rows = slice(index, index + 1)
        state = tuple(part[rows] for part in self.state)
        return replace(self, inputs=self.inputs[:, rows], state=state)

    def first(self, steps: int) -> Subject:
        """Return the same subject over its first steps only."""
        return replace(self, inputs=self.inputs[:steps])
