"""Which known variant does a side compute? Every one is tried, the simplest first.

A variant fits where it reproduces the side's states over all steps. The first number of switches at
which any fits is the answer; several of that number are all named, because the run cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from gradflow.experiments.parity.variants import (
    Array,
    Numbers,
    States,
    Variant,
    choices,
    combinations,
    is_repeated,
    partial_orders,
    usual_choices,
    variant_run,
    variant_step,
)

# Rounding of two codes for the same cell over a few steps; a wrong cell is 1e-3 away.
SAME = 1e-9
# Weights of a cell above which switches are tried one at a time: a step then takes milliseconds.
LARGE = 100_000
MOST_SWITCHES = {"lstm": 3, "gru": 4, "rnn": 4}


@dataclass(frozen=True)
class Trial:
    """What the variants are run on, and the states that they are to reproduce.

    `numbers` are the weights, `xs` (time, batch, input), `state` the parts before the first step,
    `target` part name to (time, batch, hidden); "c" may be missing.
    """

    numbers: Numbers
    xs: Array
    state: States
    target: Mapping[str, Array]

    def error(self, variant: Variant) -> float:
        """Return max |variant - target| over all steps and parts; nan where one is no number."""
        with np.errstate(all="ignore"):
            found = variant_run(self.numbers, variant, self.xs, self.state)
            return max(far(found[part], wanted) for part, wanted in self.target.items())

    def starts_alike(self, variant: Variant) -> bool:
        """Return whether the first step is the target's: a quick way to say no."""
        with np.errstate(all="ignore"):
            first = variant_step(self.numbers, variant, self.xs[0], self.state)
        parts = dict(zip(("h", "c"), first, strict=False))
        return all(far(parts[part], wanted[0]) <= SAME for part, wanted in self.target.items())


def far(one: Array, other: Array) -> float:
    """Return max |one - other|; nan only where just one of them is nan."""
    both = np.isnan(one) & np.isnan(other)
    return float(np.where(both | (one == other), 0.0, np.abs(one - other)).max())


def identify(trial: Trial) -> list[Variant]:
    """Return the simplest variants that fit, [] where no known one does.

    [{}] says that the side is torch's own cell.
    """
    if trial.error({}) <= SAME:
        return [{}]
    most = MOST_SWITCHES[trial.numbers.kind]
    if trial.numbers.w.size + trial.numbers.u.size > LARGE:
        most = 1
    for count in range(1, most + 1):
        open_choices = choices(trial.numbers) if count < 3 else usual_choices(trial.numbers)
        tried: Iterable[Variant] = combinations(open_choices, count)
        if count == 1:
            tried = [*tried, *partial_orders(trial.numbers)]
        fits = [v for v in tried if trial.starts_alike(v) and trial.error(v) <= SAME]
        if fits:
            return fits
    return []


def nearest_variants(trial: Trial, most: int = 5) -> list[tuple[Variant, float]]:
    """Return the variants of one switch that come closest, with their errors."""
    errors = [(variant, trial.error(variant)) for variant in single_variants(trial)]
    known = [(variant, error) for variant, error in errors if np.isfinite(error)]
    return sorted(known, key=lambda entry: entry[1])[:most]


def undecided_variants(trial: Trial, base: Variant) -> list[Variant]:
    """Return the variants, one switch away from `base`, that this very run cannot tell from it.

    The target is the run of `base` itself; what is not told apart would pass as well.
    """
    found = []
    for switch, settings in choices(trial.numbers).items():
        usual: list[Variant] = []
        if switch in base:
            usual.append({k: v for k, v in base.items() if k != switch})
        others: list[Variant] = [
            {**base, switch: value} for value in settings if base.get(switch) != value
        ]
        tried = [v for v in (*usual, *others) if not is_repeated(v)]
        found += [v for v in tried if trial.starts_alike(v) and trial.error(v) <= SAME]
    return found


def single_variants(trial: Trial) -> list[Variant]:
    """Return torch's own cell and every variant of one switch."""
    singles: list[Variant] = [{}]
    return [*singles, *combinations(choices(trial.numbers), 1)]
