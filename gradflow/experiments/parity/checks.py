"""What a parity must show, as checks."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.experiments.parity.compare import GATE, STATE
from gradflow.records.base import Check
from gradflow.records.parity import Comparison


def comparison_checks(comparisons: Sequence[Comparison]) -> list[Check]:
    """Return whether states, shown gates and gradients agree, with the largest error of each."""
    groups = {
        "states agree": [c for c in comparisons if c.group == STATE],
        "gates agree": [c for c in comparisons if c.group == GATE],
        "gradients agree": [c for c in comparisons if c.group not in (STATE, GATE)],
    }
    return [_check(name, group) for name, group in groups.items() if group]


def gradient_check(dead: Sequence[str]) -> Check:
    """Return whether every weight that belongs to a gate gets a gradient."""
    return Check(
        name="every weight gets a gradient",
        passed=not dead,
        detail=f"none arrives at {', '.join(dead)}" if dead else "of both sides",
    )


def parameter_check(strays: Sequence[str]) -> Check:
    """Return that some weights of a gate are no parameters."""
    return Check(
        name="every weight is a parameter",
        passed=not strays,
        detail=f"a plain tensor, which nothing trains: {', '.join(strays)}",
    )


def power_check(undecided: Sequence[str], tried: int) -> Check:
    """Return whether this run could tell A from every known variant of it."""
    return Check(
        name="the run tells the known variants apart",
        passed=not undecided,
        detail=(
            f"these would have passed as well: {', '.join(undecided)}. Take a random state and "
            "biases (--start, --bias) and several steps"
            if undecided
            else f"{tried} of them would have failed"
        ),
    )


def steady_check(sentences: Sequence[str]) -> Check:
    """Return whether each side gives one answer, and each row its own."""
    return Check(
        name="each side gives one answer, row by row",
        passed=not sentences,
        detail=" ".join(sentences) if sentences else "run twice, and by single rows where needed",
    )


def _check(name: str, group: Sequence[Comparison]) -> Check:
    errors = [c.error for c in group]
    known = [error for error in errors if error is not None]
    worst = "not a number" if len(known) < len(errors) else f"{max(known):.2g}"
    return Check(
        name=name,
        passed=all(c.passed for c in group),
        detail=f"largest error {worst}, tolerance {min(c.tolerance for c in group):g}",
    )
