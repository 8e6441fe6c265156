"""From two runs to an answer: comparisons, the first difference, the variant that explains it."""

from __future__ import annotations

from collections.abc import Iterator

from gradflow.checkpoints.sides import Side
from gradflow.experiments.parity.bench import Bench, Sided
from gradflow.experiments.parity.blame import first_difference
from gradflow.experiments.parity.checks import (
    comparison_checks,
    gradient_check,
    parameter_check,
    power_check,
    steady_check,
)
from gradflow.experiments.parity.compare import GATE, STATE, compare_gradients, compare_runs
from gradflow.experiments.parity.explain import Explanation, Fits, explain, habits, turned_recording
from gradflow.experiments.parity.mapping import mapped_blocks
from gradflow.experiments.parity.notes import (
    dead_weights,
    gradient_reasons,
    not_numbers,
    reasons,
    side_notes,
    stray_weights,
    verdict,
)
from gradflow.experiments.parity.words import variant_name, variant_sentence
from gradflow.records.base import Check
from gradflow.records.parity import ComparedSide, Comparison, ParityResult, TriedVariant


def parity_result(bench: Bench) -> ParityResult:
    """Run both sides of a bench and return the answer."""
    pair, a, b = bench.pair, bench.side_a(), bench.side_b()
    comparisons = [
        *compare_runs(a.run, b.run, bench.tolerance),
        *compare_gradients(pair, a, b, bench.tolerance),
    ]
    forward = all(c.passed for c in comparisons if c.group in (STATE, GATE))
    why = explain(bench, a, b, agree=forward)
    odd = list(habits(bench, a, b, explained=forward or bool(why.fits)))
    dead = list(dead_weights(pair, a, b))
    first = first_difference(bench, a, b, comparisons)
    checks = _checks(bench, comparisons, why, odd, dead)
    failed = [check.name for check in checks if not check.passed]
    return ParityResult(
        a=_compared_side(pair.a),
        b=_compared_side(pair.b),
        kind=pair.kind,
        sizes=_sizes(bench),
        comparisons=tuple(comparisons),
        verdict=verdict(pair, comparisons, first, failed),
        mapping=mapped_blocks(pair),
        first_difference=first,
        subject=why.subject,
        variants=() if forward else _tried(pair.kind, why.fits),
        nearest=() if forward else _tried(pair.kind, why.nearest),
        undecided=tuple(variant_name(v, pair.kind or "") for v in why.undecided),
        unreached=tuple(dead),
        notes=tuple(dict.fromkeys([*odd, *_notes(bench, a, b, why, comparisons)])),
        checks=checks,
    )


def _notes(
    bench: Bench, a: Sided, b: Sided, why: Explanation, comparisons: list[Comparison]
) -> Iterator[str]:
    """Yield what is wrong, why, and what else one should know."""
    pair = bench.pair
    yield from (*pair.a.faults, *pair.b.faults, *not_numbers(pair, a, b))
    if not all(c.passed for c in comparisons if c.group in (STATE, GATE)):
        turned = list(turned_recording(bench, a, b))
        yield from turned or reasons(bench, why, comparisons)
    if not all(c.passed for c in comparisons):
        yield from gradient_reasons(bench, a, b)
    yield from side_notes(bench, a, b)


def _checks(
    bench: Bench,
    comparisons: list[Comparison],
    why: Explanation,
    odd: list[str],
    dead: list[str],
) -> tuple[Check, ...]:
    found = comparison_checks(comparisons)
    if any(c.group not in (STATE, GATE) for c in comparisons):
        found.append(gradient_check(dead))
    if strays := list(stray_weights(bench.pair)):
        found.append(parameter_check(strays))
    if faults := [*bench.pair.a.faults, *bench.pair.b.faults]:
        found.append(Check("time and batch are on their own axes", False, " ".join(faults)))
    found.append(steady_check(odd))
    if bench.shared and bench.pair.kind is not None and why.fits_a:
        names = [variant_name(variant, bench.pair.kind) for variant in why.undecided]
        found.append(power_check(names, why.tried))
    return tuple(found)


def _compared_side(side: Side) -> ComparedSide:
    return ComparedSide(side.name, side.what, side.way)


def _sizes(bench: Bench) -> dict[str, int]:
    steps, batch, width = bench.problem.xs.shape
    hidden = bench.pair.a.hidden_size
    return {"input_size": width, "hidden_size": hidden, "steps": steps, "batch": batch}


def _tried(kind: str | None, fits: Fits) -> tuple[TriedVariant, ...]:
    if kind is None:
        return ()
    return tuple(
        TriedVariant(variant_name(variant, kind), variant_sentence(variant, kind), error)
        for variant, error in fits
    )
