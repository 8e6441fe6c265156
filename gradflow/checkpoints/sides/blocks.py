"""Where each gate's weights stand in a side's tensors, as rows and columns.

One set of numbers serves both sides of a parity question: torch's own tensors

    weight_ih (gates * hidden, input)     weight_hh (gates * hidden, hidden)
    bias_ih (gates * hidden,)             bias_hh (gates * hidden,)

with torch's row order. A `Layout` tells where each block of them stands in a side, and carries
numbers there (`fill`), reads them (`read`) and brings gradients back (`pull`, the transpose of
`fill`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Place = tuple[slice, ...]

STANDARD_ORDER: dict[str, tuple[str, ...]] = {
    "lstm": ("input", "forget", "candidate", "output"),
    "gru": ("reset", "update", "candidate"),
    "rnn": ("candidate",),
}
LETTERS: dict[str, dict[str, str]] = {
    "lstm": {"input": "i", "forget": "f", "candidate": "g", "output": "o"},
    "gru": {"reset": "r", "update": "z", "candidate": "n"},
    "rnn": {"candidate": "n"},
}
STANDARD_TENSORS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
# What a block reads, and the standard tensors that it stands for. One bias stands for both.
SOURCES: dict[str, tuple[str, ...]] = {
    "x": ("weight_ih",),
    "h": ("weight_hh",),
    "bias_ih": ("bias_ih",),
    "bias_hh": ("bias_hh",),
    "bias": ("bias_ih", "bias_hh"),
}


@dataclass(frozen=True)
class Block:
    """One gate's weights on one thing that it reads, and their place in a side's tensor.

    `reads` is "x", "h", "bias_ih", "bias_hh", or "bias" where one bias stands for both.
    `transposed` says that the side multiplies from the other side (v @ W, not W @ v).
    """

    gate: str
    reads: str
    tensor: str
    place: Place
    transposed: bool = False

    def __str__(self) -> str:
        """Return the place as one writes it: "W_f[:, 0:3]", "U_f.T"."""
        written = ", ".join(_written(part) for part in self.place)
        text = self.tensor
        if any(part != slice(None) for part in self.place):
            shown = written.removesuffix(", :") if len(self.place) == 2 else written
            text = f"{self.tensor}[{shown}]"
        return f"{text}.T" if self.transposed else text

    def value_from(self, standard: Mapping[str, Tensor], rows: slice) -> Tensor:
        """Return what stands here, out of torch's tensors (missing ones are zero)."""
        found = [standard[name][rows] for name in SOURCES[self.reads] if name in standard]
        total = found[0] if len(found) == 1 else torch.stack(found).sum(dim=0)
        return total.T if self.transposed else total


@dataclass(frozen=True)
class Layout:
    """All blocks of a side. `guessed` says in words what no name and no number decided."""

    kind: str
    input_size: int
    hidden_size: int
    blocks: tuple[Block, ...]
    guessed: tuple[str, ...] = ()

    def rows(self, gate: str) -> slice:
        """Return the gate's rows in torch's own tensors."""
        index = STANDARD_ORDER[self.kind].index(gate)
        return slice(index * self.hidden_size, (index + 1) * self.hidden_size)

    def of(self, gate: str, reads: str) -> Block | None:
        """Return where a gate's weights on x, h or its bias stand."""
        return next((b for b in self.blocks if b.gate == gate and b.reads == reads), None)

    @property
    def biases(self) -> tuple[str, ...]:
        """Which biases the side has: any of "bias_ih", "bias_hh" and "bias"."""
        return tuple(dict.fromkeys(b.reads for b in self.blocks if b.reads.startswith("bias")))

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors that hold a block."""
        return tuple(dict.fromkeys(block.tensor for block in self.blocks))

    def fill(self, standard: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the side's tensors with torch's numbers put in; what has no block stays."""
        filled = {name: tensor.detach().clone() for name, tensor in own.items()}
        for block in self.blocks:
            if any(name in standard for name in SOURCES[block.reads]):
                value = block.value_from(standard, self.rows(block.gate))
                target = filled[block.tensor][block.place]
                target.copy_(value.reshape(target.shape))
        return filled

    def read(self, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return torch's tensors from the side's; a single bias becomes bias_ih, with bias_hh 0."""
        standard = self._zeros(next(iter(own.values())))
        for block in self.blocks:
            name = SOURCES[block.reads][0]
            self._target(standard, block, name).copy_(self._taken(own, block, standard[name]))
        return standard

    def pull(self, gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return dL by torch's tensors from dL by the side's: the transpose of `fill`."""
        standard = self._zeros(next(iter(gradients.values())))
        for block in self.blocks:
            for name in SOURCES[block.reads]:
                target = self._target(standard, block, name)
                target.add_(self._taken(gradients, block, standard[name]))
        return standard

    def _zeros(self, like: Tensor) -> dict[str, Tensor]:
        rows = len(STANDARD_ORDER[self.kind]) * self.hidden_size
        return {
            "weight_ih": like.new_zeros(rows, self.input_size),
            "weight_hh": like.new_zeros(rows, self.hidden_size),
            "bias_ih": like.new_zeros(rows),
            "bias_hh": like.new_zeros(rows),
        }

    def _target(self, standard: Mapping[str, Tensor], block: Block, name: str) -> Tensor:
        return standard[name][self.rows(block.gate)]

    def _taken(self, own: Mapping[str, Tensor], block: Block, like: Tensor) -> Tensor:
        taken = own[block.tensor][block.place]
        if like.dim() == 1:
            return taken.reshape(-1)
        return taken.T if block.transposed else taken


def standard_layout(
    kind: str, input_size: int, hidden_size: int, *, names: Sequence[str], called: str = "{}"
) -> Layout:
    """Return the layout of torch's own tensors.

    Args:
        kind: "lstm", "gru" or "rnn".
        input_size, hidden_size: the widths.
        names: which of torch's tensors there are.
        called: what the side calls them: "{}_l0" in a layer, "cell.{}" inside another module.

    >>> layout = standard_layout("gru", 3, 5, names=("weight_ih", "weight_hh", "bias_ih"))
    >>> str(layout.of("update", "x")), layout.biases
    ('weight_ih[5:10]', ('bias_ih',))
    """
    reads = {"weight_ih": "x", "weight_hh": "h", "bias_ih": "bias_ih", "bias_hh": "bias_hh"}
    blocks = []
    for index, gate in enumerate(STANDARD_ORDER[kind]):
        rows = slice(index * hidden_size, (index + 1) * hidden_size)
        for name in names:
            columns = (slice(None),) if name.startswith("weight") else ()
            blocks.append(Block(gate, reads[name], called.format(name), (rows, *columns)))
    return Layout(kind, input_size, hidden_size, tuple(blocks))


def _written(part: slice) -> str:
    return ":" if part == slice(None) else f"{part.start}:{part.stop}"
