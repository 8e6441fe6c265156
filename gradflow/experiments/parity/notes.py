"""The answer of a parity in sentences: the verdict, why, and what else one should know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from gradflow.checkpoints.sides import SOURCES, Side
from gradflow.checkpoints.sides.file_side import RecordingSide
from gradflow.experiments.parity.bench import Bench, Sided
from gradflow.experiments.parity.compare import GATE, STATE
from gradflow.experiments.parity.explain import Explanation, Fits
from gradflow.experiments.parity.mapping import Pair
from gradflow.experiments.parity.words import variant_cures, variant_name, variant_sentence
from gradflow.records.parity import Comparison, FirstDifference

SINGLE_PRECISION = (1e-9, 1e-5)  # what float32's rounding makes of a few steps


def verdict(
    pair: Pair,
    comparisons: Sequence[Comparison],
    first: FirstDifference | None,
    failed: Sequence[str],
) -> str:
    """Return the answer in a sentence or two; `failed` are the names of checks that failed."""
    if first is not None:
        return f"Parity is broken: {_place(pair, first)}"
    one, other = _labels(pair)
    gradients = any(c.group not in (STATE, GATE) for c in comparisons)
    worst = max((c.error for c in comparisons if c.error is not None), default=math.nan)
    agree = (
        f"{one} and {other} agree in every {'state and gradient' if gradients else 'state'}. The "
        f"largest error is {worst:.2g}, the tolerance {_tolerances(comparisons)}."
    )
    if failed:
        return f"Parity is not shown, for a check failed ({'; '.join(failed)}). {agree}"
    return f"Parity holds: {agree}"


def _tolerances(comparisons: Sequence[Comparison]) -> str:
    """Return the tolerance of states, and that of gradients where it is another."""
    state = min(c.tolerance for c in comparisons if c.group in (STATE, GATE))
    other = min((c.tolerance for c in comparisons if c.group not in (STATE, GATE)), default=state)
    return f"{state:g}" if other == state else f"{state:g} ({other:g} for gradients)"


def _place(pair: Pair, first: FirstDifference) -> str:
    gate = f" ({first.gate} gate)" if first.gate and first.gate not in first.quantity else ""
    gate = gate.replace("candidate gate", "candidate")
    the = "" if first.quantity in ("h", "c") or first.quantity.startswith("what") else "the "
    one, other = _labels(pair)
    if first.step is None:
        return (
            f"all states agree, and every single step's gradient, but {first.quantity}{gate} "
            "does not: the gradient through time differs."
        )
    if first.a is None and first.b is None:
        return f"all states agree, but from step {first.step} on {first.quantity}{gate} does not."
    return (
        f"the sides part at step {first.step}, in {the}{first.quantity}{gate}: row {first.row}, "
        f"unit {first.unit} is {first.a:.6g} in {one} and {first.b:.6g} in {other}."
    )


def _labels(pair: Pair) -> tuple[str, str]:
    """Return what the sides are called: without folders, where that tells them apart."""
    labels = (pair.a.label, pair.b.label)
    return labels if labels[0] != labels[1] else (f"A ({pair.a.name})", f"B ({pair.b.name})")


def reasons(bench: Bench, why: Explanation, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield why the states differ, as far as known variants explain it."""
    pair, kind = bench.pair, bench.pair.kind
    if kind is None:
        yield (
            "The gates of these cells are not known, so no variants were tried; map the weights "
            "onto torch's cell to have them tried."
        )
        return
    subject, other = (pair.a, pair.b) if why.subject == "a" else (pair.b, pair.a)
    if why.fits:
        yield from _fitting(subject, other, why.fits, kind, shared=bench.shared)
    else:
        yield from _unexplained(subject, why, comparisons, kind)
    if not why.fits or any("order" in variant for variant, _ in why.fits):
        yield from _guesses(pair)
    if why.other_fits and bench.shared:
        sentence = variant_sentence(why.other_fits[0][0], kind)
        yield f"{other.label} itself is not torch's cell: it {sentence}."


def _fitting(subject: Side, other: Side, fits: Fits, kind: str, *, shared: bool) -> Iterator[str]:
    variant, error = fits[0]
    sentence = variant_sentence(variant, kind)
    if len(fits) > 1:
        names = "; ".join(variant_name(one, kind) for one, _ in fits)
        yield f"{subject.label} fits several variants, which this run cannot tell apart: {names}."
        return
    agrees = (
        f"that variant reproduces it to {error:.1g}"
        if shared
        else f"read so, it gives the states of {other.label} to {error:.1g}"
    )
    yield f"{subject.label} {sentence}: {agrees}."
    yield from variant_cures(variant, kind, own_weights=not shared)


def _unexplained(
    subject: Side, why: Explanation, comparisons: Sequence[Comparison], kind: str
) -> Iterator[str]:
    worst = max((c.error or math.inf for c in comparisons if c.group == STATE), default=math.inf)
    if SINGLE_PRECISION[0] < worst < SINGLE_PRECISION[1]:
        yield (
            f"An error of {worst:.1g} is the size of float32's rounding: some constant or "
            "conversion (.float(), dtype=) is in single precision; parity is measured in float64."
        )
        return
    if why.nearest:
        variant, error = why.nearest[0]
        nearest = variant_name(variant, kind)
        yield (
            f"No known variant of the {kind.upper()} fits {subject.label}, alone or combined; the "
            f"nearest, {nearest}, is {error:.2g} away."
        )


def _guesses(pair: Pair) -> Iterator[str]:
    for side, layout in zip((pair.a, pair.b), pair.layouts, strict=True):
        if layout is not None and layout.guessed:
            yield f"In {side.label}, {'; '.join(layout.guessed)}."


def not_numbers(pair: Pair, a: Sided, b: Sided) -> Iterator[str]:
    """Yield where a state is no number."""
    for side, sided in ((pair.a, a), (pair.b, b)):
        for part, values in sided.run.states.items():
            bad = ~torch.isfinite(values).flatten(1).all(dim=1)
            if torch.any(bad):
                step = int(bad.nonzero()[0]) + 1
                yield f"{part} of {side.label} is no finite number from step {step} on."


def gradient_reasons(bench: Bench, a: Sided, b: Sided) -> Iterator[str]:
    """Yield where a gradient is cut that the other side has."""
    pair = bench.pair
    for side, one, other in ((pair.b, a, b), (pair.a, b, a)):
        for part, gradient in (one.by_state or {}).items():
            cut = (other.by_state or {}).get(part)
            if cut is not None and torch.any(gradient) and not torch.any(cut):
                yield (
                    f"No gradient reaches {part}_0 in {side.label}: it detaches {part}, or reads "
                    "its .data, on the way."
                )
    if a.by_input is not None and b.by_input is not None:
        yield from _cut_through_time(bench)


def _cut_through_time(bench: Bench) -> Iterator[str]:
    """Yield up to which step no gradient comes from the last state, where that is one side's."""
    ends = bench.problem.last_alone()
    one, other = bench.side_a(ends), bench.side_b(ends)
    reached = [
        [bool(torch.any(step)) for step in sided.by_input]
        for sided in (one, other)
        if sided.by_input is not None
    ]
    for side, mine, theirs in zip(
        (bench.pair.a, bench.pair.b), reached, reached[::-1], strict=True
    ):
        lost = [t for t, (m, o) in enumerate(zip(mine, theirs, strict=True), 1) if o and not m]
        if lost:
            yield (
                f"In {side.label} no gradient comes from the last state to step {lost[-1]} or any "
                "before: it detaches the state there (truncated backpropagation)."
            )


def dead_weights(pair: Pair, a: Sided, b: Sided) -> Iterator[str]:
    """Yield the weights at which no gradient arrives though it does on the other side: "b: U_o"."""
    sides = (("a", a, b, pair.layouts[0]), ("b", b, a, pair.layouts[1]))
    for letter, sided, other, layout in sides:
        theirs = other.by_weight or {}
        for name in sided.unreached:
            if layout is None:
                alive = name in theirs and bool(torch.any(theirs[name]))
            else:
                alive = any(
                    bool(torch.any(theirs[source][layout.rows(block.gate)]))
                    for block in layout.blocks
                    if block.tensor == name
                    for source in SOURCES[block.reads]
                    if source in theirs
                )
            if alive:
                yield f"{letter}: {name}"


def stray_weights(pair: Pair) -> Iterator[str]:
    """Yield the weights of a gate that are no parameters: nothing would train them."""
    for letter, side, layout in zip("ab", (pair.a, pair.b), pair.layouts, strict=True):
        known = layout.tensors if layout is not None else ()
        yield from (f"{letter}: {name}" for name in getattr(side, "strays", ()) if name in known)


def side_notes(bench: Bench, a: Sided, b: Sided) -> Iterator[str]:
    """Yield what was noticed of the sides, whether or not parity holds."""
    pair, problem = bench.pair, bench.problem
    for side, sided, layout in (
        (pair.a, a, pair.layouts[0]),
        (pair.b, b, pair.layouts[1]),
    ):
        yield from side.notes
        if layout is not None:
            yield from _spare_weights(side, sided.unreached, layout.tensors)
        if isinstance(side, RecordingSide):
            yield f"{side.label} is a recording: its h was compared, and there is no gradient."
        elif (why := side.why_no_gradient(problem)) is not None:
            yield f"States were compared, gradients were not: in {side.label} {why}."
    ways = {side.way for side in (pair.a, pair.b)}
    if "finite differences" in ways and a.by_input is not None and b.by_input is not None:
        yield (
            "A function of NumPy arrays has no autograd; its gradient was taken by finite "
            "differences, so gradients are held to 1e-07."
        )


def _spare_weights(side: Side, unreached: Sequence[str], used: Sequence[str]) -> Iterator[str]:
    spare = [name for name in side.weights if name not in used]
    idle = [name for name in spare if name in unreached]
    active = [name for name in spare if name not in unreached]
    if idle:
        yield (
            f"{', '.join(idle)} of {side.label} belongs to no gate and gets no gradient: the new "
            "state does not depend on it."
        )
    if active:
        yield (
            f"{', '.join(active)} of {side.label} belongs to no gate of torch's cell, and takes "
            "part; it was left at its own value."
        )
