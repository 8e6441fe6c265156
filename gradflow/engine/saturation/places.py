"""Where huge numbers are put into a cell: the bias of a gate, the input, the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import Cell, Gate, Rows
from gradflow.cells.gates import parameter_of
from gradflow.engine.saturation.measure import Feed
from gradflow.engine.saturation.subjects import Subject

INPUT, STATE, AS_GIVEN = "input", "state", "as given"


@dataclass(frozen=True)
class Place:
    """A place and the way from it to the gates.

    Attributes:
        name: "forget gate", "candidate", the written rows of a bias ("lin.bias[0:3]"), "input",
            "state" or "as given".
        path: "bias"; "identity", where the weights that read the input (or the state) are the
            identity for every gate, so that each number reaches each gate once and alone;
            "weights", where they are as the cell has them.
        gate: the gate's own name, None for what is no gate. An LSTM has a gate called "input".
        biases: the rows of a gate's biases, which add up: the first carries the number, the
            others are 0.
    """

    name: str
    path: str
    gate: str | None = None
    biases: tuple[Rows, ...] = ()


def gate_places(subject: Subject) -> list[Place]:
    """Return a place for every gate, and for every bias that no gate claims.

    A gate without a bias has a place without `biases`: nothing can be put there. A bias that no
    gate claims is taken in pieces as long as the state is wide: one for each gate of a stacked
    bias, whatever their order is.
    """
    places = [Place(_gate_title(gate), "bias", gate.name, gate.bias) for gate in subject.gates]
    claimed = {
        (rows.parameter, row)
        for place in places
        for rows in place.biases
        for row in _rows_of(subject, rows)
    }
    places += [
        Place(str(rows), "bias", None, (rows,))
        for rows in bias_blocks(subject)
        if not claimed & {(rows.parameter, row) for row in _rows_of(subject, rows)}
    ]
    return places


def open_places(subject: Subject, *, beyond: bool = False) -> list[Place]:
    """Return the input and the state as places, with every path that the trial takes.

    The paths of our cells and torch's are set to the identity; beyond the square root of the
    largest number also to the weights as they are, whose sums overflow. A user's cell keeps its
    weights: nobody knows which of them read the input.
    """
    paths = ["identity"] if isinstance(subject.cell, Cell) else ["weights"]
    if beyond and isinstance(subject.cell, Cell):
        paths.append("weights")
    return [Place(name, path) for path in paths for name in (INPUT, STATE)]


def load(subject: Subject, place: Place, value: float | None, feed: Feed) -> Feed:
    """Put a number into a place: set the subject's weights and return what to feed.

    Args:
        subject: its parameters are changed.
        place: where to.
        value: the number; None leaves everything as it is.
        feed: ordinary inputs and first state.
    """
    if value is None:
        return feed
    with torch.no_grad():
        for number, rows in enumerate(place.biases):
            rows.bias_of(subject.module).fill_(value if number == 0 else 0.0)
        if place.path == "identity":
            name = "weight_ih" if place.name == INPUT else "weight_hh"
            _set_identities(parameter_of(subject.module, name), subject.cell.hidden_size)
    if place.name == INPUT:
        return Feed(torch.full_like(feed.xs, value), feed.start)
    if place.name == STATE:
        return Feed(feed.xs, tuple(torch.full_like(part, value) for part in feed.start))
    return feed


def ordinary_feed(subject: Subject, *, steps: int, batch: int, seed: int) -> Feed:
    """Return standard normal inputs and a first state within (-1, 1), drawn from the seed."""
    generator = torch.Generator().manual_seed(seed)
    cell = subject.cell

    def draw(*shape: int) -> Tensor:
        drawn = torch.randn(*shape, dtype=torch.float64, generator=generator)
        return drawn.to(dtype=cell.dtype, device=cell.device)

    xs = draw(steps, batch, cell.input_size)
    return Feed(xs, tuple(torch.tanh(draw(batch, size)) for size in cell.part_sizes))


def _gate_title(gate: Gate) -> str:
    kind = "candidate" if gate.role == "candidate" else "gate"
    return gate.name if kind in gate.name else f"{gate.name} {kind}"


def _set_identities(weight: Tensor, hidden: int) -> None:
    for rows in weight.split(hidden):
        torch.nn.init.eye_(rows)


def _rows_of(subject: Subject, rows: Rows) -> range:
    return range(*rows.rows.indices(parameter_of(subject.module, rows.parameter).shape[-1]))


def bias_blocks(subject: Subject) -> Iterator[Rows]:
    """Yield the vectors that are called a bias (bias_ih, b_f, bz, b), cut to the state's width."""
    for name, parameter in subject.parameters.items():
        if max(parameter.shape[:-1], default=1) > 1 or not _is_called_bias(name):
            continue
        size, width = parameter.shape[-1], subject.cell.hidden_size
        if size % width or size == width:
            yield Rows(name)
            continue
        for first in range(0, size, width):
            yield Rows(name, slice(first, first + width))


def _is_called_bias(name: str) -> bool:
    last = name.rsplit(".", 1)[-1].lower()
    return "bias" in last or (last.startswith("b") and len(last.split("_")[0]) <= 2)
