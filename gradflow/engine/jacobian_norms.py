"""The instrument: ln ||ds_t/ds_0|| for every prefix t of a run, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockName, BlockPlace, Norm, locate_block, require_norm
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.krylov_measurement import KrylovMeasurement, prefers_vectors
from gradflow.engine.measurement import Measurement, Progress
from gradflow.engine.points import measured_points
from gradflow.engine.run_checks import require_run
from gradflow.engine.zeros import ZeroReason, explain_zeros
from gradflow.errors import Interrupted, UnknownNameError, nearest_name

__all__ = ["JacobianNorms", "Method", "Progress", "jacobian_norms"]

Method = Literal["auto", "dense", "diagonal", "generic", "jump", "krylov"]


@dataclass(frozen=True)
class JacobianNorms:
    """ln ||ds_t/ds_0|| at some steps of a run, for every batch row.

    `steps` (points,) counts from 1; `log_norm` (points, batch) is natural, float64, -inf where
    the norm is zero. `direct_log_norm` is the same for the product of the keep gates alone, and
    `keep_min`, `keep_max` (batch,) their range over the run; None for a cell without (known) keep
    gate. `first_zero_step` and `zero_reason` have one entry per batch row, None where the norm
    never was zero. `method` names the way it was computed; `settled_step` is the step from which
    the state repeats itself and the rest was computed as powers, None where it was not.

    An estimate by method "krylov" (a lower bound) has `log_norm_upper`, where its interval ends,
    and `converged`, both (points, batch); None for the other methods, which are exact. `notes`
    says in sentences what one should know of the way.
    """

    steps: Tensor
    log_norm: Tensor
    direct_log_norm: Tensor | None
    keep_min: Tensor | None
    keep_max: Tensor | None
    first_zero_step: tuple[int | None, ...]
    zero_reason: tuple[ZeroReason | None, ...]
    block: BlockName
    norm: Norm
    method: str
    final_state: State
    settled_step: int | None = None
    log_norm_upper: Tensor | None = None
    converged: Tensor | None = None
    notes: tuple[str, ...] = ()


def jacobian_norms(
    cell: CellLike,
    x: Tensor,
    state: State,
    block: BlockName | None = None,
    norm: Norm = "spectral",
    *,
    at: Tensor | list[int] | None = None,
    method: Method = "auto",
    progress: Progress | None = None,
) -> JacobianNorms:
    """Measure ln ||ds_t/ds_0|| along a run, exactly, for every prefix t in one pass.

    The product of step Jacobians carries a power of two beside it, so that neither 0.1^100000
    nor 3^100000 is out of range. Each step costs one product with the running matrix. Under a
    constant input a state may come back bit for bit; from there on powers by repeated squaring
    leap from point to point.

    The product has the cell's own dtype (float32 where that is narrower): what a float32 product
    loses, about 6e-8 a step, the float32 gates have lost already.

    Args:
        cell: a cell or an ensemble.
        x: the input, (time, batch, input).
        state: the state before the first step, one (batch, width) tensor per part.
        block: (row part, column part), such as ("c", "c"): the part read at t and the part
            varied at 0, the others held fixed; or "joint". Default: the kept state's own block.
        norm: "spectral" or "frobenius".
        at: the steps to report, each from 1 to the length of x; default all.
        method: "auto" chooses. "dense" carries the matrix step by step; "jump" leaps where the
            state came back, and notes where it did not; "diagonal" needs recurrent weights that
            are all zero; "krylov" estimates spectral norms by vectors alone, for wide cells and
            few points; "generic" ignores the cell's closed form and uses torch.func, whose slopes
            lose digits where a unit is saturated.
        progress: called as `progress(steps done, steps in all)` after each chunk.

    Returns:
        The norms; see `JacobianNorms`.

    Raises:
        SubjectError: `cell` is no cell; `from_torch` gives those of a torch layer.
        ShapeError, DtypeError: x or state do not fit the cell, or `at` does not fit x.
        UnknownNameError: no such block, norm or method, or a method that does not apply.
        Interrupted: stopped from the keyboard; its `partial` has the norms measured by then.

    >>> from gradflow.cells import LSTM, hold_
    >>> cell = hold_(LSTM(1, 4).double(), forget=0.1)
    >>> norms = jacobian_norms(cell, torch.zeros(400, 1, 1).double(), cell.initial_state(1))
    >>> round(norms.log_norm[-1].item() / torch.log(torch.tensor(10.0)).item(), 4)
    -400.0
    """
    require_norm(norm)
    if method not in get_args(Method):
        raise UnknownNameError(
            f"there is no method {method!r}. {nearest_name(method, get_args(Method))}"
        )
    require_run(cell, x, state)
    block = (cell.kept_part, cell.kept_part) if block is None else block
    place = locate_block(block, cell.parts, state)
    points = measured_points(at, x.shape[0])
    run = _measurement(cell, place, norm, points=points, method=method, state=state)
    try:
        with flushed_denormals(), torch.no_grad():
            run.run(x, progress)
    except KeyboardInterrupt:
        partial = _collect(run, cell, x, state, place=place, norm=norm, points=points)
        done = int(partial.steps[-1]) if len(partial.steps) else 0
        raise Interrupted(
            f"the norms are known up to step {done} of {x.shape[0]}.", partial=partial
        ) from None
    return _collect(run, cell, x, state, place=place, norm=norm, points=points)


def _measurement(
    cell: CellLike, place: BlockPlace, norm: Norm, *, points: Tensor, method: Method, state: State
) -> Measurement | KrylovMeasurement:
    """Return the measurement by vectors or by matrix."""
    by_vectors = method == "krylov"
    if method == "auto" and prefers_vectors(place, norm, points):
        by_vectors = KrylovMeasurement.applies(cell, state)
    if by_vectors:
        return KrylovMeasurement(cell, place, norm, points=points, state=state)
    return Measurement(cell, place, norm, points=points, method=method, state=state)


def _collect(
    run: Measurement | KrylovMeasurement,
    cell: CellLike,
    x: Tensor,
    state: State,
    *,
    place: BlockPlace,
    norm: Norm,
    points: Tensor,
) -> JacobianNorms:
    """Return what the run has measured, up to the last point that all of it has passed."""
    with torch.no_grad():
        measured, direct = run.log_norms(), run.direct.log_norms()
        count = min(len(measured), len(measured) if direct is None else len(direct))
        measured, points = measured[:count], points[:count]
        # out of the flushing: a subnormal weight is a path, though its number was flushed
        zero_steps, reasons = explain_zeros(cell, x, state, place, points, measured)
    upper, converged = run.upper, run.converged
    return JacobianNorms(
        steps=points,
        log_norm=measured,
        direct_log_norm=None if direct is None else direct[:count],
        keep_min=run.direct.keep_min,
        keep_max=run.direct.keep_max,
        first_zero_step=zero_steps,
        zero_reason=reasons,
        block=place.name,
        norm=norm,
        method=run.method,
        final_state=run.final_state,
        settled_step=run.settled_step,
        log_norm_upper=None if upper is None else upper[:count],
        converged=None if converged is None else converged[:count],
        notes=run.notes(x.shape[0]),
    )
