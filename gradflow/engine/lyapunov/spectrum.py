"""The Lyapunov exponents of a run: what each direction of the state is multiplied by per step.

    lambda_i = lim 1/T sum_t ln |R_ii(t)|,    J_t Q_{t-1} = Q_t R_t

by QR after every step (Benettin, Galgani, Giorgilli & Strelcyn 1980; Geist, Parlitz & Lauterborn
1990). Units: nats per step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.lyapunov.kaplan_yorke import kaplan_yorke_dimension
from gradflow.engine.lyapunov.run import LyapunovRun
from gradflow.engine.lyapunov.step_functions import GivenState, StepFunctionLike
from gradflow.engine.lyapunov.subject import Subject, make_subject, require_step_and_input
from gradflow.engine.threads import threads_for
from gradflow.engine.trajectory import run_in_chunks
from gradflow.engine.zeros import ZeroReason
from gradflow.errors import Interrupted, ShapeError

BLOCKS = 20
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LyapunovSpectrum:
    """Lyapunov exponents in nats per step, the largest first.

    `exponents` (count,) are means over steps and batch rows, -inf for a direction that nothing is
    left of; `zero_reason` then says "exact" (the recurrence is built so) or "underflow" (it shrinks
    faster than the dtype can tell beside the others), and is None elsewhere. `standard_errors`
    (count,) come from block means, nan where unknown. `by_row` (batch, count) are the means of each
    row. `steps` were measured, after `warmup` others; `state_size` is the number of all exponents.
    `method` is "qr", or "diagonal" where the units do not see each other.
    """

    exponents: Tensor
    standard_errors: Tensor
    by_row: Tensor
    zero_reason: tuple[ZeroReason | None, ...]
    steps: int
    warmup: int
    state_size: int
    method: str
    final_state: State

    @property
    def sum(self) -> float:
        """The sum of the exponents; of all of them, the mean of ln |det J_t|. -inf with a zero."""
        return float(self.exponents.sum())

    @property
    def kaplan_yorke_dimension(self) -> float | None:
        """The Kaplan-Yorke dimension of the attractor, None where more exponents are needed."""
        return kaplan_yorke_dimension(self.exponents.tolist(), state_size=self.state_size)


def lyapunov_spectrum(
    step: CellLike | StepFunctionLike,
    state: GivenState,
    x: Tensor | int,
    count: int | None = None,
    warmup: int = 500,
    *,
    blocks: int = BLOCKS,
    progress: Progress | None = None,
) -> LyapunovSpectrum:
    """Measure the Lyapunov exponents along a run of a cell or of any step function.

    Random orthonormal tangents are pushed through the step Jacobians and made orthonormal again
    by QR after every step; the exponents are the means of ln |R_ii|. The Jacobians are a cell's
    closed form or torch.func's, of a module in float64, of a function in its own dtype.

    Args:
        step: a cell, a torch module in the call form of one, or a function of torch code called
            as `step(x_t, state)` that returns the new state in the form of `state`.
        state: the first state: one (batch, width) tensor or a tuple of them. Rows are
            trajectories of their own, over which the exponents are averaged. A function of its
            own may also have a state without batch axis.
        x: the input, (time, batch, input), warm-up included; or the number of steps of a run
            without input (a cell gets zeros, a function None).
        count: how many exponents, the largest first; all of them where None.
        warmup: steps at the beginning that turn the tangents and are not measured.
        blocks: how many blocks the standard errors come from.
        progress: called as `progress(steps done, steps in all)`.

    Returns:
        The exponents; see `LyapunovSpectrum`.

    Raises:
        SubjectError: `step` is neither a cell nor a function.
        ShapeError, DtypeError: x, state, count, warmup or blocks do not fit.
        DivergenceError: the state, or its Jacobian, is no longer finite.
        Interrupted: stopped from the keyboard; its `partial` has what was measured by then.

    >>> def halve(x, s):
    ...     return s * torch.tensor([0.5, 0.25])
    >>> spectrum = lyapunov_spectrum(halve, torch.ones(2), 60, warmup=50)
    >>> [round(exponent, 4) for exponent in spectrum.exponents.tolist()]
    [-0.6931, -1.3863]
    """
    require_step_and_input(step, x)
    subject = make_subject(step, state, x)
    count = _count(count, subject)
    total = subject.x.shape[0]
    if not _is_whole(warmup) or not 0 <= warmup < total:
        raise ShapeError(
            "the warm-up comes off the steps of x, and at least one must be left to measure; "
            f"got warmup {warmup} and {total} steps. Give a longer x or a shorter warm-up."
        )
    if not _is_whole(blocks) or blocks < 1:
        raise ShapeError(
            "standard errors come from the means of a whole number of blocks of steps, 1 or more; "
            f"got blocks {blocks!r}."
        )
    work = subject.state_size**2 * count // 8  # QR gains less from threads than a product does
    run = LyapunovRun(subject, count, steps=total, warmup=warmup, blocks=blocks)
    try:
        with flushed_denormals(), torch.no_grad(), threads_for(work):
            length = subject.chunk_length(total)
            for chunk in run_in_chunks(subject.recurrence, subject.x, subject.state, length):
                run.take(chunk)
                if progress is not None:
                    progress(chunk.start + chunk.steps, total)
    except KeyboardInterrupt:
        raise Interrupted(
            f"{run.measured} of {total - warmup} steps are measured.",
            partial=_collect(run, subject, count, warmup) if run.measured else None,
        ) from None
    return _collect(run, subject, count, warmup)


def _collect(run: LyapunovRun, subject: Subject, count: int, warmup: int) -> LyapunovSpectrum:
    """Return what the run has measured by now."""
    sums, reasons = run.finish()
    order = sums.means.mean(dim=0).argsort(descending=True, stable=True)[:count]
    return LyapunovSpectrum(
        exponents=sums.means.mean(dim=0)[order],
        standard_errors=sums.standard_errors[order],
        by_row=sums.means[:, order],
        zero_reason=tuple(reasons[index] for index in order.tolist()),
        steps=run.measured,
        warmup=warmup,
        state_size=subject.state_size,
        method=run.method,
        final_state=run.state,
    )


def _is_whole(value: object) -> TypeGuard[int]:
    """Return whether this is a whole number; Python reads True as 1, and nobody means it."""
    return isinstance(value, int) and not isinstance(value, bool)


def _count(count: object, subject: Subject) -> int:
    if count is None:
        return subject.state_size
    if not _is_whole(count) or not 1 <= count <= subject.state_size:
        raise ShapeError(
            f"a state of {subject.state_size} numbers has as many exponents; got count {count!r}."
        )
    return count
