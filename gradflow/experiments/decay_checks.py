"""What a decay measurement must show, as checks; and what it shows beside, as notes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gradflow.records.base import Check
from gradflow.records.decay import DecayCurve

MOST_TOLD = 3  # live gains whose factors a note lists


def decay_checks(curves: Sequence[DecayCurve]) -> tuple[Check, ...]:
    """Return the checks: the order of held gates, autograd, and that every number is one."""
    checks = [_order_check(cell, group) for cell, group in _by_cell(curves, gain=0.0).items()]
    held = [check for check in checks if check is not None]
    return (*held, _autograd_check(curves), _finite_check(curves))


def decay_notes(curves: Sequence[DecayCurve]) -> tuple[str, ...]:
    """Return what a reader of the curves should know: zeros, live candidates, bare cells."""
    notes = []
    for curve in curves:
        if curve.path == "full" and curve.zero_reason == "exact":
            notes.append(
                f"{curve.cell}: the norm of d{curve.state}_T/d{curve.state}_0 is exactly 0 from "
                f"step {curve.first_zero_step}: no weight carries {curve.state}_0 any further. "
                "That is the cell's structure, no failure."
            )
        elif curve.path == "full" and curve.zero_reason == "underflow":
            notes.append(
                f"{curve.cell}: the norm underflows to 0 at step {curve.first_zero_step}: a slope "
                "there is too small for the dtype, though a path exists."
            )
    for cell, group in _by_cell(curves, gain=None).items():
        notes.append(_live_note(cell, group))
    notes += [
        f"{cell}: measured as it is; it declares no keep gate, so there is nothing to hold and "
        "no trend to compare with."
        for cell in dict.fromkeys(curve.cell for curve in curves if curve.candidate_gain is None)
    ]
    return tuple(dict.fromkeys(note for note in notes if note))


def _by_cell(curves: Sequence[DecayCurve], *, gain: float | None) -> dict[str, list[DecayCurve]]:
    """Return the full paths of gated cells by cell: at this gain, or (None) at any live gain."""
    groups: dict[str, list[DecayCurve]] = {}
    for curve in curves:
        gated = curve.path == "full" and curve.gate_value is not None
        wanted = curve.candidate_gain == gain if gain is not None else bool(curve.candidate_gain)
        if gated and wanted:
            groups.setdefault(curve.cell, []).append(curve)
    return groups


def _rates_in_order(group: Sequence[DecayCurve]) -> list[tuple[float, float]]:
    pairs = [
        (curve.gate_value, curve.rate)
        for curve in group
        if curve.gate_value is not None and curve.rate is not None
    ]
    return sorted(pairs)


def _order_check(cell: str, group: Sequence[DecayCurve]) -> Check | None:
    pairs = _rates_in_order(group)
    if len(pairs) < 2:
        return None
    ordered = all(low[1] < high[1] for low, high in pairwise(pairs))
    listing = ", ".join(f"{value:g}: {rate:.6f}" for value, rate in pairs)
    return Check(
        name="larger keep gate decays slower",
        passed=ordered,
        detail=f"{cell}, candidate gain 0; nats per step by gate value: {listing}",
    )


def _live_note(cell: str, group: Sequence[DecayCurve]) -> str:
    """Return how far a live candidate is from the trend, and whether the order survives it."""
    parts = []
    for gain in _told(sorted({curve.candidate_gain or 0.0 for curve in group})):
        pairs = _rates_in_order([curve for curve in group if curve.candidate_gain == gain])
        if not pairs:
            continue
        factors = ", ".join(f"{value:g} -> {np.exp(rate):.4g}" for value, rate in pairs)
        ordered = all(low[1] < high[1] for low, high in pairwise(pairs))
        word = "" if len(pairs) < 2 else " (in order)" if ordered else " (not in order)"
        parts.append(f"gain {gain:g}: factor per step by gate value {factors}{word}")
    return f"{cell} with a live candidate, {'; '.join(parts)}." if parts else ""


def _told(gains: Sequence[float]) -> Sequence[float]:
    """Return the gains that a note tells of: of a sweep the one nearest to 1 and the last."""
    if len(gains) <= MOST_TOLD:
        return gains
    return sorted({min(gains, key=lambda gain: abs(gain - 1.0)), gains[-1]})


def _autograd_check(curves: Sequence[DecayCurve]) -> Check:
    checks = [curve.autograd for curve in curves if curve.autograd is not None]
    read = [check for check in checks if check.max_relative_error is not None]
    failed = [c for c in read if not (c.max_relative_error or 0.0) <= c.tolerance]
    worst = max((check.max_relative_error or 0.0 for check in read), default=0.0)
    subjects = ", ".join(dict.fromkeys(check.subject for check in read))
    detail = (
        f"largest relative error {worst:.1e} (tolerance {read[0].tolerance:g}) over {len(read)} of "
        f"{len(checks)} curves; differentiated: {subjects}"
        if read
        else "no step at which plain autograd's own numbers are normal; nothing to compare"
    )
    return Check(name="autograd agrees", passed=not failed, detail=detail)


def _finite_check(curves: Sequence[DecayCurve]) -> Check:
    broken = [
        curve
        for curve in curves
        if np.isnan(curve.log10_norm).any() or np.isposinf(curve.log10_norm).any()
    ]
    unexplained = [
        curve
        for curve in curves
        if np.isneginf(curve.log10_norm).any() and curve.zero_reason is None
    ]
    zeros = sum(1 for curve in curves if curve.first_zero_step is not None)
    where = ", ".join(f"{curve.cell} {curve.path}" for curve in [*broken, *unexplained])
    detail = (
        f"not so in {where}"
        if where
        else f"{len(curves)} curves, {zeros} of them with a zero whose reason is known"
    )
    return Check(
        name="every number is finite or a known zero",
        passed=not broken and not unexplained,
        detail=detail,
    )
