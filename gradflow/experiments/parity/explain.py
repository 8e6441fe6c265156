"""Why do two sides differ? Known variants, and habits of code that no equation tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from gradflow.checkpoints.sides import Run, Weights
from gradflow.errors import GradflowError
from gradflow.experiments.parity.bench import Bench, Sided
from gradflow.experiments.parity.compare import distance
from gradflow.experiments.parity.identify import (
    Trial,
    identify,
    nearest_variants,
    undecided_variants,
)
from gradflow.experiments.parity.variants import Numbers, Variant, count_of_variants

MIXED = 1e-5  # float32 inside a cell rounds otherwise for another batch, by 1e-7
Fits = list[tuple[Variant, float]]


@dataclass(frozen=True)
class Explanation:
    """Which variants fit which side.

    `fits_a` and `fits_b` are the simplest variants that each side computes on the shared weights,
    with their errors; with weights of their own, `subject` is the side whose weights are read
    otherwise so that it reproduces the other, and only its fits are known. `nearest` are the
    subject's closest single variants, `undecided` those that this run cannot tell from A, of the
    number `tried`.
    """

    subject: str = "b"
    fits_a: Fits = field(default_factory=list)
    fits_b: Fits = field(default_factory=list)
    nearest: Fits = field(default_factory=list)
    undecided: list[Variant] = field(default_factory=list)
    tried: int = 0

    @property
    def fits(self) -> Fits:
        """The variants that the subject computes, where they are not torch's own cell."""
        found = self.fits_a if self.subject == "a" else self.fits_b
        return [entry for entry in found if entry[0]]

    @property
    def other_fits(self) -> Fits:
        """Those of the other side."""
        found = self.fits_b if self.subject == "a" else self.fits_a
        return [entry for entry in found if entry[0]]


def explain(bench: Bench, a: Sided, b: Sided, *, agree: bool) -> Explanation:
    """Return which known variants fit; with `agree`, only whether others would have passed too."""
    if bench.pair.kind is None:
        return Explanation()
    if not bench.shared:
        return Explanation() if agree else _explain_files(bench, a, b)
    of_a = _trial(bench, bench.common_a, a.run)
    fits_a = _fits(of_a)
    undecided = undecided_variants(of_a, fits_a[0][0]) if fits_a else []
    tried = count_of_variants(of_a.numbers)
    if agree:
        return Explanation("b", fits_a, fits_a, undecided=undecided, tried=tried)
    of_b = _trial(bench, bench.common_a, b.run)
    fits_b = _fits(of_b)
    subject = "a" if _is_torch(fits_b) and not _is_torch(fits_a) else "b"
    nearest = nearest_variants(of_a if subject == "a" else of_b)
    return Explanation(subject, fits_a, fits_b, nearest, undecided, tried)


def _fits(trial: Trial) -> Fits:
    return [(variant, trial.error(variant)) for variant in identify(trial)]


def _is_torch(fits: Fits) -> bool:
    return any(not variant for variant, _ in fits)


def _explain_files(bench: Bench, a: Sided, b: Sided) -> Explanation:
    """Return how the subject's weights must be read to give the other side's states."""
    subject = "a" if bench.pair.b.way == "none" else "b"
    common, target = (bench.common_a, b) if subject == "a" else (bench.common_b, a)
    trial = _trial(bench, common, target.run)
    fits, nearest = _fits(trial), nearest_variants(trial)
    if subject == "a":
        return Explanation(subject, fits, [], nearest)
    return Explanation(subject, [], fits, nearest)


def _trial(bench: Bench, common: Weights, run: Run) -> Trial:
    kind = bench.pair.kind
    assert kind is not None
    return Trial(
        numbers=Numbers.of(kind, {name: tensor.numpy() for name, tensor in common.items()}),
        xs=bench.problem.xs.numpy(),
        state=tuple(part.numpy() for part in bench.problem.state),
        target={part: np.asarray(values) for part, values in run.states.items()},
    )


def habits(bench: Bench, a: Sided, b: Sided, *, explained: bool) -> Iterator[str]:
    """Yield what running a side again shows: chance, a memory, rows that see each other."""
    for letter, side, first in (("a", bench.pair.a, a), ("b", bench.pair.b, b)):
        if side.way == "none":
            continue
        again = bench.run_again(letter)
        if any(distance(first.run.states[p], again.states[p]) > 0 for p in again.states):
            yield (
                f"{side.label} gives two answers to the same input and state: it draws random "
                "numbers, or keeps a memory of its own."
            )
        elif not explained and _rows_see_each_other(bench, letter, first):
            yield (
                f"{side.label} mixes the rows of a batch: a row alone gets another answer than "
                "among others. Is a sum, a softmax or a view over axis 0? (Axis 0 is the batch.)"
            )


def _rows_see_each_other(bench: Bench, letter: str, whole: Sided) -> bool:
    x = bench.problem.xs[0]
    common = bench.common_a if letter == "a" else bench.common_b
    try:
        alone = bench.step_of(letter, common, x[:1], tuple(p[:1] for p in bench.problem.state))
    except GradflowError:  # takes no batch of one
        return False
    together = [part[0, :1] for part in whole.run.states.values()]
    return any(distance(one, other) > MIXED for one, other in zip(alone, together, strict=True))


def turned_recording(bench: Bench, a: Sided, b: Sided) -> Iterator[str]:
    """Yield that a recording has its first two axes exchanged, where that explains it."""
    pair = bench.pair
    for letter, recording, sided in (("b", pair.a, a), ("a", pair.b, b)):
        if recording.way != "none" or any(torch.any(part) for part in bench.problem.state):
            continue
        xs, ys = (t.transpose(0, 1) for t in (bench.problem.xs, sided.run.states["h"]))
        state = tuple(xs.new_zeros(xs.shape[1], part.shape[1]) for part in bench.problem.state)
        found = bench.run_on(letter, xs, state).states["h"]
        if distance(found, ys) <= bench.tolerance:
            yield (
                f"{recording.label} has its axes in the order (batch, time, width): turned to "
                f"(time, batch, width) it is reproduced to {distance(found, ys):.1g}."
            )
