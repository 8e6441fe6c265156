"""Where do two sides part first? The earliest step, then the first thing computed in it.

Up to the first differing step both sides hold the same state, so that step alone says what is
otherwise. Gates that a side does not show are read from outside (`parity_gates`). Where all states
agree and a gradient does not, single steps are differentiated, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from gradflow.errors import GradflowError
from gradflow.experiments.parity.bench import Bench, Sided
from gradflow.experiments.parity.compare import (
    GATE,
    PARAMETER_GRADIENT,
    STATE,
    biases_of,
    compare_gradients,
    distance,
    size_of,
)
from gradflow.experiments.parity.gates import gate_of_quantity, read_gates
from gradflow.records.parity import Comparison, FirstDifference

COMPUTED = {  # in this order within a step
    "lstm": ("input", "forget", "candidate", "output", "c", "h"),
    "gru": ("reset", "update", "candidate", "h"),
    "rnn": ("candidate", "h"),
}


def first_difference(
    bench: Bench, a: Sided, b: Sided, comparisons: Sequence[Comparison]
) -> FirstDifference | None:
    """Return where A and B part first, None where they do not."""
    steps = [c.first_step for c in comparisons if c.group in (STATE, GATE) and c.first_step]
    if steps:
        return _in_forward(bench, a, b, min(steps) - 1)
    failed = [c for c in comparisons if not c.passed]
    return _in_backward(bench, a, failed[0]) if failed else None


def _in_forward(bench: Bench, a: Sided, b: Sided, step: int) -> FirstDifference:
    gates = {name: a.run.gates[name] for name in a.run.gates if name in b.run.gates}
    shown = {name: (one, b.run.gates[name]) for name, one in gates.items()}
    for name, values in _in_order(bench, a, b, step, shown):
        if not distance(values[0], values[1]) <= bench.tolerance * size_of(values[0]):
            gate = name if name in shown else None
            if bench.pair.kind is not None and gate is None:
                gate = gate_of_quantity(name, bench.pair.kind)
            quantity = f"{name} gate" if gate == name and name != "candidate" else name
            return _place(step, quantity, gate, values)
    return FirstDifference(step + 1, "h", None, None, None, None, None)


def _in_order(
    bench: Bench,
    a: Sided,
    b: Sided,
    step: int,
    shown: Mapping[str, tuple[Tensor, Tensor]],
) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Yield what the step computes on both sides: gates, shown or read, then the state."""
    kind = bench.pair.kind
    if kind is not None and shown:
        for name in COMPUTED[kind]:
            if name in shown:
                yield name, (shown[name][0][step], shown[name][1][step])
    elif kind is not None:
        yield from _read_from_outside(bench, a, step)
    for part in reversed(list(b.run.states)):  # c before h
        if part in a.run.states:
            yield part, (a.run.states[part][step], b.run.states[part][step])


def _read_from_outside(
    bench: Bench, a: Sided, step: int
) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Yield the gates of both sides at a step, read by shutting the others."""
    kind, biases = bench.pair.kind, biases_of(bench.pair)
    if kind is None or not biases or bench.pair.b.way == "none" or bench.pair.a.way == "none":
        return
    moved = ("bias_ih", "bias_hh")
    x, state = bench.problem.xs[step], a.run.before(step, bench.problem.state)

    def read(letter: str) -> dict[str, Tensor]:
        common = bench.common_a if letter == "a" else bench.common_b
        return read_gates(kind, lambda w, s: bench.step_of(letter, w, x, s), common, state, moved)

    try:
        of_a, of_b = read("a"), read("b")
    except GradflowError:  # code that cannot stand a large bias
        return
    yield from ((name, (of_a[name], of_b[name])) for name in of_a)


def _in_backward(bench: Bench, a: Sided, failed: Comparison) -> FirstDifference:
    """Return the first single step whose gradient differs, else what differs only over time."""
    for step in range(len(bench.problem.xs)):
        alone = bench.problem.single_step(step, a.run.before(step, bench.problem.state))
        one, other = bench.side_a(alone), bench.side_b(alone)
        parted = [
            c for c in compare_gradients(bench.pair, one, other, bench.tolerance) if not c.passed
        ]
        if parted:
            first = min(parted, key=lambda c: c.group != PARAMETER_GRADIENT)
            quantity = _of_one_step(first, step)
            return FirstDifference(step + 1, quantity, first.gate, None, None, None, None)
    return FirstDifference(None, failed.quantity, failed.gate, None, None, None, None)


def _of_one_step(comparison: Comparison, step: int) -> str:
    """Return the quantity's name where the loss reads the state after this step alone."""
    if comparison.group == PARAMETER_GRADIENT:
        return f"gradient of the {comparison.quantity}"
    return comparison.quantity.replace("_0", f"_{step}").replace("dL/dx", f"dL/dx_{step + 1}")


def _place(
    step: int, quantity: str, gate: str | None, values: tuple[Tensor, Tensor]
) -> FirstDifference:
    """Return the entry that differs most, with its values."""
    one, other = values
    off = torch.nan_to_num((one - other).abs(), nan=math.inf)
    row, unit = divmod(int(off.argmax()), off.shape[-1])
    return FirstDifference(
        step=step + 1,
        quantity=quantity,
        gate=gate,
        row=row,
        unit=unit,
        a=float(one[row, unit]),
        b=float(other[row, unit]),
    )
