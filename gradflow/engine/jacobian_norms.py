"""The instrument: ln ||ds_t/ds_0|| for every prefix t of a run, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gradflow.cells.base import CellLike, Linearization, require_state
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockName, BlockPlace, Norm, locate_block, require_norm
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.generic import GENERIC_CHUNK_ELEMENTS, GenericLinearization
from gradflow.engine.products import DenseProduct, DiagonalProduct, DirectProduct, Product
from gradflow.engine.trajectory import chunk_length, run_in_chunks
from gradflow.engine.zeros import ZeroReason, zero_reason
from gradflow.errors import DtypeError, ShapeError, UnknownNameError, nearest_name

Method = Literal["auto", "dense", "diagonal", "generic"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class JacobianNorms:
    """ln ||ds_t/ds_0|| at some steps of a run, for every batch row.

    `steps` (points,) counts from 1; `log_norm` (points, batch) is natural, float64, -inf where
    the norm is zero. `direct_log_norm` is the same for the product of the keep gates alone, and
    `keep_min`, `keep_max` (batch,) their range over the run; None for a cell without (known) keep
    gate. `first_zero_step` and `zero_reason` have one entry per batch row, None where the norm
    never was zero. `method` names the way it was computed.
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
    nor 3^100000 is out of range. Each step costs one product with the running matrix.

    Args:
        cell: a cell or an ensemble.
        x: the input, (time, batch, input).
        state: the state before the first step, one (batch, width) tensor per part.
        block: (row part, column part), such as ("c", "c"): the part read at t and the part
            varied at 0, the others held fixed; or "joint". Default: the kept state's own block.
        norm: "spectral" or "frobenius".
        at: the steps to report, each from 1 to the length of x; default all.
        method: "auto" chooses; "dense" carries the matrix, "diagonal" needs recurrent weights
            that are all zero, "generic" ignores the cell's closed form and uses torch.func.
        progress: called as `progress(steps done, steps in all)` after each chunk.

    Returns:
        The norms; see `JacobianNorms`.

    Raises:
        ShapeError, DtypeError: x or state do not fit the cell, or `at` does not fit x.
        UnknownNameError: no such block, norm or method, or a method that does not apply.

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
    require_state(cell, state)
    require_run(cell, x, state)
    place = locate_block(block or (cell.kept_part, cell.kept_part), cell.parts, state)
    points = _points(at, x)
    with flushed_denormals(), torch.no_grad():
        run = _Measurement(cell, place, norm, method, state=state)
        for chunk in run_in_chunks(cell, x, state, run.chunk_length(x.shape[0])):
            run.take(chunk.start, chunk.drive, chunk.states, points)
            if progress is not None:
                progress(chunk.start + chunk.steps, x.shape[0])
        measured = run.finish()
    with torch.no_grad():  # a subnormal weight is a path, though its number was flushed
        zero_steps, reasons = _explain_zeros(cell, x, state, place, points, measured)
    return JacobianNorms(
        steps=points,
        log_norm=measured,
        direct_log_norm=run.direct_norms(),
        keep_min=run.direct.keep_min,
        keep_max=run.direct.keep_max,
        first_zero_step=zero_steps,
        zero_reason=reasons,
        block=place.name,
        norm=norm,
        method=run.method,
        final_state=chunk.last,
    )


class _Measurement:
    """One pass: hands each chunk's linearization to the product and to the direct path."""

    def __init__(
        self, cell: CellLike, place: BlockPlace, norm: Norm, method: Method, *, state: State
    ) -> None:
        self._cell, self._place, self._norm, self._state = cell, place, norm, state
        self.method: str = method
        self._product: Product | None = None
        self._norms: list[Tensor] = []
        self._direct_norms: list[Tensor] = []
        self.direct = DirectProduct(place, norm, kept_part=cell.kept_part)

    def chunk_length(self, steps: int) -> int:
        batch = self._state[0].shape[0]
        own = chunk_length(self._cell, batch, steps)
        if self._has_closed_form() and self.method != "generic":
            return own
        return max(1, min(own, GENERIC_CHUNK_ELEMENTS // (batch * self._place.state_size**2)))

    def _has_closed_form(self) -> bool:
        first = tuple(part.unsqueeze(0) for part in self._state)
        zeros = first[0].new_zeros(1, first[0].shape[1], self._cell.input_size)
        return self._cell.linearize(self._cell.drive(zeros), first) is not None

    def take(self, start: int, drive: Tensor, states: State, points: Tensor) -> None:
        own = None if self.method == "generic" else self._cell.linearize(drive, states)
        steps = GenericLinearization(self._cell, drive, states) if own is None else own
        if self._product is None:
            self._product = self._choose(steps, closed_form=own is not None)
        inside = points[(points > start) & (points <= start + steps.steps)] - start - 1
        self._norms.append(self._product.advance(steps, inside))
        if steps.keep is not None:
            self._direct_norms.append(self.direct.advance(steps.keep, inside))

    def _choose(self, steps: Linearization, *, closed_form: bool) -> Product:
        batch = self._state[0].shape[0]
        diagonal = self.method in ("auto", "diagonal") and steps.diagonal() is not None
        if self.method == "diagonal" and not diagonal:
            raise UnknownNameError(
                "method 'diagonal' needs a cell whose recurrent weights are all zero, because only "
                "then no unit sees another; these are not. Use method 'dense' or 'auto'."
            )
        if diagonal:
            self.method = "diagonal"
            kept = self._cell.kept_part
            return DiagonalProduct(
                self._place, self._norm, batch, kept_part=kept, like=self._state[0]
            )
        self.method = "dense" if closed_form else "generic"
        return DenseProduct(self._place, self._norm, batch, like=self._state[0])

    def finish(self) -> Tensor:
        return torch.cat(self._norms)

    def direct_norms(self) -> Tensor | None:
        return torch.cat(self._direct_norms) if self._direct_norms else None


def require_run(cell: CellLike, x: Tensor, state: State) -> None:
    """Raise unless x is (time, batch, input) with at least one step, for this cell and state."""
    rows = state[0].shape[0]
    if x.dim() != 3 or x.shape[0] < 1:
        raise ShapeError(
            f"x must be (time, batch, input) with at least one step; got shape {tuple(x.shape)}."
        )
    if x.shape[1] != rows or x.shape[2] != cell.input_size:
        raise ShapeError(
            f"x must be (time, {rows}, {cell.input_size}): as many rows as the state, as wide as "
            f"the cell's input; got {tuple(x.shape)}."
        )
    if x.dtype != cell.dtype:
        raise DtypeError(f"x must have the cell's dtype {cell.dtype}; got {x.dtype}.")


def _points(at: Tensor | list[int] | None, x: Tensor) -> Tensor:
    steps = x.shape[0]
    if at is None:
        return torch.arange(1, steps + 1)
    points: Tensor = torch.as_tensor(at, dtype=torch.int64).unique()
    if len(points) == 0 or points[0] < 1 or points[-1] > steps:
        raise ShapeError(
            f"'at' lists steps from 1 to {steps}, the length of x; got {list(map(int, points))}."
        )
    return points


def _explain_zeros(
    cell: CellLike, x: Tensor, state: State, place: BlockPlace, points: Tensor, measured: Tensor
) -> tuple[tuple[int | None, ...], tuple[ZeroReason | None, ...]]:
    first: list[int | None] = []
    reasons: list[ZeroReason | None] = []
    for row in range(measured.shape[1]):
        zeros = points[torch.isneginf(measured[:, row])]
        step = int(zeros[0]) if len(zeros) else None
        first.append(step)
        reasons.append(
            None if step is None else zero_reason(cell, x, state, block=place, step=step, row=row)
        )
    return tuple(first), tuple(reasons)
