"""Do two cells compute the same, forward and backward? And if not: where, and which is which?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gradflow.checkpoints.parity_sides import (
    Widths,
    read_side,
    side_name,
    torch_twin_name,
)
from gradflow.checkpoints.sides import Side
from gradflow.checkpoints.sides.file_side import (
    RecordingSide,
)
from gradflow.checkpoints.sides.find_layout import find_layout
from gradflow.checkpoints.sides.weight_map import WeightMap, read_weight_map
from gradflow.errors import SettingError, ShapeError
from gradflow.experiments.parity.answer import parity_result
from gradflow.experiments.parity.mapping import Link, NameLink, Pair, link_sides
from gradflow.experiments.parity.setup import asked_widths, make_bench
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.parity import ParityResult
from gradflow.settings.parity import ParitySettings

Progress = Callable[[str, int, int], None]


def run_parity(settings: ParitySettings, *, progress: Progress | None = None) -> ParityResult:
    """Compare the two sides that the settings name.

    Args:
        settings: the sides, their weights, the run.
        progress: called as `progress(what, steps done, steps in all)`.

    Raises:
        UnknownNameError, CellLoadError: a side that does not exist, load or step.
        ShapeError, SettingError: widths or weights that do not fit.
    """
    weight_map = None
    if settings.weight_map is not None:
        weight_map = read_weight_map(settings.weight_map)
    return _compare(settings.a, settings.b, settings, weight_map, progress)


def parity(
    a: object,
    b: object | None = None,
    weight_map: object | None = None,
    **options: Any,
) -> ParityResult:
    """Compare two cells: states, gates, and the gradient by everything.

    Args:
        a, b: each a name ("torch.LSTMCell"), a place ("lstm.py:lstm_step"), a file of weights or a
            recording, a torch module, a cell, a NumPy cell, a step function, or a dict of tensors;
            torch's own cell where b is None.
        weight_map: how b's weights come from a's, where names and shapes do not tell: a function
            of a's weights (a dict of tensors) that returns b's, a mapping of places, or a file.
        **options: fields of `ParitySettings`: weights="own", steps=8, tolerance=1e-12, ...

    Returns:
        The comparison; `result.passed` says whether parity holds.

    Raises:
        GradflowError: as in `run_parity`.

    >>> from torch import nn
    >>> parity(nn.GRUCell(3, 4), "numpy.gru").passed
    True
    """
    named = {"a": side_name(a), "b": None if b is None else side_name(b)}
    settings = ParitySettings(**named, **options)
    given = None if weight_map is None else read_weight_map(weight_map)
    return _compare(a, b, settings, given, None)


def _compare(
    a: object,
    b: object | None,
    settings: ParitySettings,
    weight_map: WeightMap | None,
    progress: Progress | None,
) -> ParityResult:
    watch = Stopwatch()

    def report(what: str, done: int) -> None:
        if progress is not None:
            progress(what, done, 3)

    if settings.gate_order is not None:
        base = weight_map or WeightMap("--gate-order")
        weight_map = base.ordered(settings.gate_order)
    report("reading the sides", 0)
    side_a, side_b = _read_sides(a, b, settings)
    pair = _link(side_a, side_b, weight_map)
    report("running them", 1)
    bench = make_bench(pair, settings)
    report("comparing", 2)
    result = parity_result(bench)
    return replace(
        result, config=settings.to_json(), environment=provenance("parity", settings, watch)
    )


def _read_sides(a: object, b: object | None, settings: ParitySettings) -> tuple[Side, Side]:
    """Read both sides, as wide as the settings, the weights or the other side say."""
    asked = asked_widths(settings)
    first = read_side(a, asked)
    own = Widths(first.input_size, first.hidden_size)
    second = read_side(torch_twin_name(_kind_of(first)) if b is None else b, own)
    if (second.input_size, second.hidden_size) != (own.input_size, own.hidden_size):
        first = read_side(a, Widths(second.input_size, second.hidden_size))
    widths = [(side.input_size, side.hidden_size) for side in (first, second)]
    if widths[0] != widths[1]:
        raise ShapeError(
            "the two sides must be of the same widths to be equal; "
            f"{first.name} has input {widths[0][0]} and hidden {widths[0][1]}, {second.name} "
            f"{widths[1][0]} and {widths[1][1]}."
        )
    for key, value, found in (
        ("--input-size", settings.input_size, first.input_size),
        ("--hidden", settings.hidden, first.hidden_size),
    ):
        if value is not None and value != found:
            raise ShapeError(
                f"{key} asks for {value}, and {first.name} or {second.name} has its own width "
                f"{found}. Leave {key} out."
            )
    return first, second


def _kind_of(side: Side) -> str:
    if isinstance(side, RecordingSide):
        raise SettingError(f"{side.name} is a recording; name the side that is to reproduce it.")
    side.layout = side.layout or find_layout(side)
    return side.layout.kind


def _link(a: Side, b: Side, weight_map: WeightMap | None) -> Pair:
    """Return the links; a recording has no weights, so the other side's stand alone."""
    recorded = [side for side in (a, b) if isinstance(side, RecordingSide)]
    if len(recorded) == 2:
        raise SettingError("two recordings have nothing to run; one side must be a network.")
    if not recorded:
        return link_sides(a, b, weight_map)
    network = b if a is recorded[0] else a
    linked = link_sides(network, network, weight_map)
    recorded[0].parts = network.parts
    links: list[Link] = [linked.link_a, NameLink()]
    one, other = links if network is a else links[::-1]
    return Pair(a, b, one, other, linked.kind)
