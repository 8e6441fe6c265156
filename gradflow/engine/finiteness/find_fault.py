"""Why a run is not finite: an honest overflow, or a fault of the cell.

    overflow  the true value does not fit the dtype either
    fault     the true value fits: the way in which the cell computes it overflowed

The true value is computed with float64's digits and no largest number, so the question has an
answer in float64 too. Judged is what counts as a result: the states, and the gradients of states,
pre-activations and parameters; how large a number inside the cell becomes is its own affair. The
one exception are matrix products of numbers that fit: they are what a recurrence *is*, so where
their true result does not fit, all that follows is excused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from gradflow.engine.finiteness.blame import (
    BackwardLog,
    Broken,
    first_broken_states,
    first_broken_total,
)
from gradflow.engine.finiteness.shadow import Shadow
from gradflow.engine.saturation.measure import Feed, leaf_state, mean_gradients
from gradflow.engine.saturation.subjects import Subject
from gradflow.records.saturate import FirstNonfinite, Verdict


@dataclass(frozen=True)
class Finding:
    """What is not finite and whose fault it is; `verdict` is "overflow" or "fault"."""

    verdict: Verdict
    first: FirstNonfinite
    reason: str


@dataclass(frozen=True)
class _Run:
    """A run under the shadow: the first state and the first gradient that are not finite."""

    shadow: Shadow
    state: Broken | None
    gradient: Broken | None
    overflow_step: int | None


def find_fault(subject: Subject, feed: Feed) -> Finding | None:
    """Run a trial again, watched, and say what is not finite first and why.

    Args:
        subject: with the weights of the trial.
        feed: the trial's.

    Returns:
        What was found, None where everything is finite.
    """
    run = _watched(subject, feed)
    broken, cause = run.gradient or run.state, run.state or run.gradient
    if broken is None or cause is None:
        return None
    dtype = str(subject.cell.dtype).removeprefix("torch.")
    during = "forward" if run.gradient is None else "backward"
    first = _described(broken, run.shadow, during)
    if run.shadow.lost is not None:
        reason = f"{_sentence(cause)}; {run.shadow.lost} cannot be followed to its true value"
        return Finding("fault", replace(first, true_log10=None, fits=None), reason)
    if run.overflow_step is not None:
        reason = (
            f"{_sentence(cause)}; a matrix product of step {run.overflow_step} is itself beyond "
            f"the largest {dtype}, though what it multiplies is not"
        )
        return Finding("overflow", first, reason)
    judged = first if broken is cause else _described(cause, run.shadow, "forward")
    if judged.fits is None:
        return Finding("fault", first, f"{_sentence(cause)}; its true value is not known")
    size = "0" if judged.true_log10 is None else f"10^{judged.true_log10:.4g}"
    reason = f"{_sentence(cause)}; its true value, {size}, {_verdict(judged, subject.cell.dtype)}"
    return Finding("fault" if judged.fits else "overflow", first, reason)


def _verdict(judged: FirstNonfinite, dtype: torch.dtype) -> str:
    """Return what becomes of the true value in the dtype, in words."""
    name = str(dtype).removeprefix("torch.")
    if not judged.fits:
        return f"does not fit {name} either"
    size, limits = judged.true_log10, torch.finfo(dtype)
    least = math.log10(limits.smallest_normal * limits.eps)  # the smallest subnormal number
    rounds = size is not None and size < least - math.log10(2.0)
    return f"rounds to 0 in {name}, a finite number" if rounds else f"fits {name}"


def _watched(subject: Subject, feed: Feed) -> _Run:
    """Run forward and backward under a shadow, with a log of the backward pass."""
    shadow, log = Shadow(subject.cell.dtype), BackwardLog(subject)
    states, overflow_step, first_operation = [leaf_state(feed.start)], None, None
    try:
        with shadow:
            for step, x in enumerate(feed.xs, start=1):
                states.append(subject.step(x, states[-1])[0])
                log.watch(step, states[-1])
                if shadow.honest_overflow is not None and overflow_step is None:
                    overflow_step = step
            first_operation = shadow.first_broken
            by_state, by_parameter = mean_gradients(states, subject.parameters)
        gradient = log.first() or first_broken_total(by_state, by_parameter, subject)
    finally:
        log.close()
    broken = [replace(b, operation=first_operation) for b in first_broken_states(subject, states)]
    return _Run(shadow, _cause(broken, shadow), gradient, overflow_step)


def _cause(broken: list[Broken], shadow: Shadow) -> Broken | None:
    """Return the part that had to overflow, where one had; else the first: h is read from c."""
    for part in broken:
        true = shadow.true_value(part.tensor)[part.mask]
        if not np.any(true.fits(shadow.limit)):
            return part
    return broken[0] if broken else None


def _described(broken: Broken, shadow: Shadow, during: str) -> FirstNonfinite:
    """Return the record of a broken tensor, by an entry whose true value fits, if one does."""
    true = shadow.true_value(broken.tensor)[broken.mask]
    fits = true.fits(shadow.limit)
    entry = int(np.argmax(fits))
    size = float(true.log10_size()[entry])
    return FirstNonfinite(
        during=during,
        tensor=broken.name,
        gate=broken.gate,
        unit=broken.unit,
        step=broken.step,
        operation=broken.operation,
        parameter=broken.parameter,
        row=broken.row,
        value=broken.value,
        true_log10=size if np.isfinite(size) else None,
        fits=None if np.isnan(size) else bool(fits[entry]),
    )


def _sentence(broken: Broken) -> str:
    """Return "the gradient of the pre-activation (gate input, unit 0) is nan at step 4, by exp"."""
    whose = f"gate {broken.gate}" if broken.gate else ""
    if not broken.gate and broken.row is not None and "pre-activation" in broken.name:
        whose = f"row {broken.row} of {broken.parameter}"
    elif broken.unit is not None:
        whose = ", ".join(filter(None, [whose, f"unit {broken.unit}"]))
    place = f" ({whose})" if whose else ""
    when = "" if broken.step is None else f" at step {broken.step}"
    maker = f", made by {broken.operation}" if broken.operation else ""
    article = "" if broken.name.isidentifier() and len(broken.name) <= 2 else "the "
    return f"{article}{broken.name}{place} is {broken.value}{when}{maker}"
