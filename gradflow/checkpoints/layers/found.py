"""What was found in a file of weights: one `FoundLayer` for each layer and direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from gradflow.cells import CellLike

Kind = Literal["lstm", "gru", "rnn"]  # of those that files are searched for
Direction = Literal["forward", "reverse"]


@dataclass(frozen=True)
class Slot:
    """The tensors of one layer and direction as stored, before anything is computed from them.

    `tensors` has torch's names, and for each its parts ("" is the weight itself); `stored` says
    what they are called in the file. `level` is None for a cell. `reset` is where a GRU's reset
    gate acts, where the source tells. `beside` names other tensors of the same module.
    """

    owner: str
    level: int | None
    reverse: bool
    tensors: Mapping[str, Mapping[str, Tensor]]
    stored: Mapping[str, str]
    reset: Literal["before", "after"] = "after"
    notes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name the place in words: "encoder.rnn, layer 1, reverse"."""
        words = [self.owner or "the file's own layer"]
        words += [] if self.level is None else [f"layer {self.level}"]
        return ", ".join([*words, "reverse"] if self.reverse else words)


@dataclass(frozen=True)
class NonFinite:
    """Numbers of one stored tensor that are not finite, and the place of the first."""

    tensor: str
    nans: int
    infinities: int
    first: tuple[int, ...]

    def __str__(self) -> str:
        """Say it in words.

        >>> str(NonFinite("rnn.bias_ih_l0", 2, 0, (3,)))
        'rnn.bias_ih_l0 has 2 NaN, the first at [3]'
        """
        counts = [f"{n} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "inf")) if n]
        return f"{self.tensor} has {' and '.join(counts)}, the first at {list(self.first)}"


@dataclass(frozen=True)
class FoundLayer:
    """One layer and direction of a recurrent module in a file of weights, as a float64 cell.

    `name` is the module's dotted name without wrappers (`module.`, `_orig_mod.`, `model.`), or its
    kind where the file is that module alone. `kind` is lstm, gru or rnn, or the class of a user's
    cell (those are found in modules, not in files). `layers` and `directions` count those of the
    module.
    `dtype` is what is stored; `parameters` counts the effective weights and biases. `rebuilt` says
    of which weights something else was stored, and how they were computed. `notes` say in
    sentences what one should know. `before` and `after` name the nearest parts with weights around
    it, where it was found in a module.
    """

    name: str
    kind: str
    layer: int
    direction: Direction
    input_size: int
    hidden_size: int
    projection: int | None
    bias: bool
    layers: int
    directions: int
    dtype: str
    parameters: int
    cell: CellLike
    stored: Mapping[str, str] = field(repr=False)
    rebuilt: Mapping[str, str] = field(default_factory=dict)
    nonfinite: tuple[NonFinite, ...] = ()
    notes: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None

    @property
    def label(self) -> str:
        """Name the place in one word, as torch names its weights: "encoder.rnn.l1_reverse"."""
        return f"{self.name}.l{self.layer}" + ("_reverse" if self.direction == "reverse" else "")

    @property
    def shown_size(self) -> int:
        """Width of h: the projection's, or the hidden width."""
        return self.projection or self.hidden_size


@dataclass(frozen=True)
class FoundModule:
    """A recurrent module of a file: all its layers and directions, in torch's order."""

    name: str
    kind: str
    layers: tuple[FoundLayer, ...]

    @property
    def input_size(self) -> int:
        """Width of what the first layer reads."""
        return self.layers[0].input_size

    @property
    def hidden_size(self) -> int:
        """Width of the state that is kept."""
        return self.layers[0].hidden_size

    @property
    def num_layers(self) -> int:
        """How many layers lie on each other."""
        return self.layers[0].layers

    @property
    def bidirectional(self) -> bool:
        """Whether it reads the sequence both ways."""
        return self.layers[0].directions == 2

    @property
    def parameters(self) -> int:
        """How many weights and biases it has."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def cells(self) -> list[CellLike]:
        """The cells, as `gradflow.cells.Stack` takes them."""
        return [layer.cell for layer in self.layers]


@dataclass(frozen=True)
class Unread:
    """A layer whose tensors were found but not understood, and why."""

    name: str
    reason: str
    quantised: bool = False

    def __str__(self) -> str:
        """Say it in a sentence."""
        return f"{self.name} is left out: {self.reason}."


@dataclass(frozen=True)
class Checkpoint:
    """All recurrent layers of a file; `notes` say what was looked through to find them."""

    path: str
    layers: tuple[FoundLayer, ...]
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def modules(self) -> list[FoundModule]:
        """The layers by module, in the order of the file."""
        names = dict.fromkeys(layer.name for layer in self.layers)
        grouped = {name: tuple(x for x in self.layers if x.name == name) for name in names}
        return [FoundModule(name, same[0].kind, same) for name, same in grouped.items()]
