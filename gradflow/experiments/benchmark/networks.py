"""The networks that are compared: an encoder, one recurrent layer, a linear head.

torch's fused layers train; a user's cell is run step by step. Everything drawn comes from a seed,
and what does not depend on the cell (the encoder) is the same for all cells of that seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from gradflow.cells import CellLike
from gradflow.cells.stack import output_part
from gradflow.cells.stack.layer_run import run_cell
from gradflow.cells.torch_layers import cells_of_layer
from gradflow.checkpoints.user_cells import load_cell
from gradflow.errors import CellLoadError
from gradflow.experiments.benchmark.seeds import derived_seed
from gradflow.experiments.benchmark.tasks import SequenceTask
from gradflow.inits import apply_, torch_default_
from gradflow.inits.draws import normal, uniform

FUSED: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
AS_MADE = "torch-default"
"""The initialization that leaves a user's cell as its own code made it."""


class StepLayer(nn.Module):
    """A user's cell as a layer: run step by step, called as torch's layers are."""

    def __init__(self, cell: CellLike) -> None:
        super().__init__()
        self.cell = cast(nn.Module, cell)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """Return the output (time, batch, width) from zero states, and None for the last state."""
        cell = cast(CellLike, self.cell)
        states = run_cell(cell, x, cell.initial_state(x.shape[1]))
        return states[output_part(cell)], None


class Network(nn.Module):
    """Encoder, recurrent layer and head; the answer is given for the last `reads` steps.

    Tokens are embedded or one-hot; numbers enter as they are.
    """

    def __init__(
        self, task: SequenceTask, layer: nn.Module, output_width: int, *, embedding: int
    ) -> None:
        super().__init__()
        self.reads, self.tokens = task.reads, task.tokens
        embeds = embedding and task.tokens is not None
        self.encoder = nn.Embedding(task.tokens or 0, embedding) if embeds else None
        self.layer = layer
        self.head = nn.Linear(output_width, task.outputs)

    def encode(self, inputs: Tensor) -> Tensor:
        """Return what the recurrent layer reads, (time, batch, width)."""
        if self.encoder is not None:
            return cast(Tensor, self.encoder(inputs))
        if self.tokens is not None:
            return functional.one_hot(inputs, self.tokens).to(self.head.weight.dtype)
        return inputs.to(self.head.weight.dtype)

    def answer(self, output: Tensor) -> Tensor:
        """Return the head's answer at the last steps, (reads, batch, outputs)."""
        return cast(Tensor, self.head(output[-self.reads :]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the answers (reads, batch, outputs)."""
        output, _ = self.layer(self.encode(inputs))
        return self.answer(output)

    @property
    def parameter_count(self) -> int:
        """How many parameters the module has, counted."""
        return sum(parameter.numel() for parameter in self.parameters())

    def cells(self) -> list[CellLike]:
        """Return the recurrent layer as one cell, with its weights as they are now."""
        if isinstance(self.layer, StepLayer):
            return [cast(CellLike, self.layer.cell)]
        return cells_of_layer(cast(nn.RNNBase, self.layer))


def encoded_width(task: SequenceTask, embedding: int) -> int:
    """Return how wide the recurrent layer's input is."""
    return embedding if embedding and task.tokens is not None else task.input_width


def make_network(
    task: SequenceTask,
    *,
    cell: str,
    hidden: int,
    embedding: int,
    init: str = AS_MADE,
    seed: int = 0,
) -> Network:
    """Return a network whose weights come from the seed alone.

    Args:
        task: what is encoded and answered.
        cell: rnn, gru, lstm, a registered name or a user's place.
        hidden: the width of the recurrent layer.
        embedding: the width of a token's embedding, 0 for one-hot tokens.
        init: an initialization of `gradflow.inits`; a user's cell comes as its code makes it.
        seed: of this draw.

    Raises:
        UnknownNameError, CellLoadError: no such cell, or one that cannot be trained.
        GateValueError: the cell has no gate that the initialization could set.
    """
    width = encoded_width(task, embedding)
    with seeded(derived_seed(seed, "cell")):
        layer = _make_layer(cell, width, hidden)
        if init != AS_MADE or cell in FUSED:
            _initialize_(layer, init, derived_seed(seed, "weights"))
        output_width = _output_width(layer, hidden)
        network = Network(task, layer, output_width, embedding=embedding)
    _draw_ends_(network, derived_seed(seed, "encoder and head"))
    return network


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from this seed inside the block, in torch and in Python; put both back after."""
    state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


def _make_layer(cell: str, width: int, hidden: int) -> nn.Module:
    if cell in FUSED:
        return FUSED[cell](width, hidden)
    made = load_cell(cell, width, hidden, dtype=torch.float32)
    if made.input_size != width:
        raise CellLoadError(
            f"--cell {cell}: the encoded input is {width} wide, and the cell takes "
            f"{made.input_size}. Let its factory take (input_size, hidden_size)."
        )
    if not isinstance(made, nn.Module) or not any(True for _ in made.parameters()):
        raise CellLoadError(
            f"--cell {cell}: the benchmark trains, and this cell has no parameters to train."
        )
    return StepLayer(made)


def _initialize_(layer: nn.Module, init: str, seed: int) -> None:
    """Draw torch's default first, so that what a scheme leaves alone is alike in all schemes."""
    module = layer.cell if isinstance(layer, StepLayer) else layer
    torch_default_(module, generator=torch.Generator().manual_seed(seed))
    apply_(module, init, generator=torch.Generator().manual_seed(seed))


def _output_width(layer: nn.Module, hidden: int) -> int:
    if not isinstance(layer, StepLayer):
        return hidden
    cell: Any = layer.cell
    return int(cell.part_sizes[output_part(cell)])


@torch.no_grad()
def _draw_ends_(network: Network, seed: int) -> None:
    """Draw the encoder (normal) and then the head (uniform), as torch would, from one seed."""
    generator = torch.Generator().manual_seed(seed)
    if network.encoder is not None:
        rows, columns = network.encoder.weight.shape
        network.encoder.weight.copy_(normal(rows, columns, 1.0, generator))
    rows, columns = network.head.weight.shape
    bound = columns**-0.5
    network.head.weight.copy_(uniform(rows, columns, bound, generator))
    network.head.bias.copy_(uniform(rows, 1, bound, generator).squeeze(1))
