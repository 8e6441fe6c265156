"""What the trials of `saturate` say together: the checks, and sentences for the reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradflow.records import Check
from gradflow.records.saturate import SaturateRow

_SHOWN = 3


def saturate_checks(rows: Sequence[SaturateRow]) -> tuple[Check, ...]:
    """Return the checks: no judged fault, and no gate outside of [0, 1].

    An honest overflow, a relu RNN and what lies beyond the square root of the largest number are
    shown and never fail a check.
    """
    faults = [row for row in rows if row.judged and row.verdict == "fault"]
    outside = [row for row in rows if row.verdict == "ok" and row.gates_in_range is False]
    seen = sum(1 for row in rows if row.gates_in_range is not None)
    return (
        Check(
            name="no cell makes inf or nan of what fits",
            passed=not faults,
            detail=_listing(faults) if faults else _tally(rows),
        ),
        Check(
            name="every gate stays in [0, 1]",
            passed=not outside,
            detail=_listing(outside) if outside else f"seen in {seen:,} of {len(rows):,} trials",
        ),
    )


def saturate_notes(rows: Sequence[SaturateRow]) -> tuple[str, ...]:
    """Return what a reader must know beside the verdicts."""
    notes = [*_not_tried(rows), *_not_judged(rows)]
    if any(row.zero_slope_fraction for row in rows):
        notes.append(
            "A gate whose derivative is exactly zero is saturated, not broken: it learns nothing "
            "at that input, and all numbers are right."
        )
    return tuple(dict.fromkeys([*notes, *_not_seen(rows)]))


def _not_tried(rows: Sequence[SaturateRow]) -> list[str]:
    missing = [row for row in rows if row.verdict == "not applicable"]
    dtypes = [
        f"{row.dtype} is not tried for {row.cell} ({row.implementation}): {row.reason}"
        for row in missing
        if row.magnitude is None
    ]
    return dtypes + [f"n/a: {row.reason}." for row in missing if row.magnitude is not None]


def _not_judged(rows: Sequence[SaturateRow]) -> list[str]:
    cells = {row.cell for row in rows if not row.judged}
    notes = []
    if "rnn-relu" in cells:
        notes.append("The relu RNN grows by design: it is reported, and never fails a check.")
    if cells - {"rnn-relu"}:
        notes.append(
            "beyond: up to the largest number itself sums overflow; reported, and never failed."
        )
    return notes


def _not_seen(rows: Sequence[SaturateRow]) -> list[str]:
    unmoved = {
        row.cell for row in rows if row.verdict == "ok" and row.parameter_gradients_finite is None
    }
    hidden = {
        row.cell for row in rows if row.verdict != "not applicable" and row.gates_in_range is None
    }
    return [
        *(f"{cell}: no gradient reaches a parameter." for cell in sorted(unmoved)),
        *(
            f"{cell} does not show its gates (no torch.sigmoid, no gate_values), so whether they "
            "stay in [0, 1] and where their derivative is zero is not known."
            for cell in sorted(hidden - {"rnn", "rnn-relu"})
        ),
    ]


def _tally(rows: Sequence[SaturateRow]) -> str:
    counts = Counter(row.verdict for row in rows)
    unjudged = sum(1 for row in rows if row.verdict == "fault")
    text = (
        f"{len(rows):,} trials: {counts['ok']:,} all finite, {counts['overflow']:,} overflow "
        f"honestly, {counts['not applicable']:,} not applicable"
    )
    return text + (f", {unjudged:,} not finite where that is expected" if unjudged else "")


def _listing(rows: Sequence[SaturateRow]) -> str:
    shown = "; ".join(_where(row) for row in rows[:_SHOWN])
    more = len(rows) - _SHOWN
    return shown + (f"; and {more:,} more" if more > 0 else "")


def _where(row: SaturateRow) -> str:
    what = row.place if row.magnitude is None else f"{row.sign}{row.magnitude} in {row.place}"
    reason = f": {row.reason}" if row.reason else ""
    return f"{row.cell} ({row.implementation}), {row.dtype}, {what}{reason}"
