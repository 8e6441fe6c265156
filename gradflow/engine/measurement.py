"""One pass over a run: each chunk's step Jacobians go to the product and to the direct path."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike, Linearization
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockPlace, Norm
from gradflow.engine.cycles import constant_from, period_of, rests
from gradflow.engine.dense_product import DenseProduct
from gradflow.engine.generic import GENERIC_CHUNK_ELEMENTS, GenericLinearization
from gradflow.engine.norm_readers import ExactSpectralReader, FrobeniusReader, NormReader
from gradflow.engine.points import points_within
from gradflow.engine.products import DiagonalProduct, DirectProduct, Product
from gradflow.engine.spectral import WarmSpectralReader
from gradflow.engine.trajectory import Chunk, chunk_length, run_in_chunks
from gradflow.errors import UnknownNameError

Progress = Callable[[int, int], None]
# Below this width a decomposition costs less than following the singular vectors.
NARROW = 96
LEAPING = ("auto", "jump")
# From this many steps on a run that was not able to leap says so.
LONG = 20_000


class Measurement:
    """The norms of one run, chunk by chunk; what was measured is there also if it is stopped.

    `method` and `settled_step` tell how; these norms are exact, so they have no interval.

    Args:
        cell, place, norm: what is measured.
        points: the steps to read, ascending, from 1.
        method: as in `jacobian_norms`; the attribute `method` tells the one that was taken.
        state: the state before the first step.
    """

    upper: Tensor | None = None
    converged: Tensor | None = None

    _latest: Linearization

    def __init__(
        self,
        cell: CellLike,
        place: BlockPlace,
        norm: Norm,
        *,
        points: Tensor,
        method: str,
        state: State,
    ) -> None:
        self._cell, self._place, self._norm, self._state = cell, place, norm, state
        self._points, self._asked = points, method
        self._product: Product | None = None
        self.method = method
        self.direct = DirectProduct(place, norm, kept_part=cell.kept_part)
        self.settled_step: int | None = None
        self.final_state = state
        self._taken = self._same_from = 0
        self._restless = False

    def run(self, x: Tensor, progress: Progress | None) -> None:
        """Measure the whole run, as far as nothing stops it."""
        steps = x.shape[0]
        self._same_from = constant_from(x) if self._asked in LEAPING else steps
        length = chunk_length(self._cell, x.shape[1], steps)
        for chunk in run_in_chunks(self._cell, x, self._state, length):
            self._take(chunk)
            if progress is not None:
                progress(self._taken, steps)
            if self._taken < steps and self._leap(chunk, steps):
                if progress is not None:
                    progress(steps, steps)
                return

    def log_norms(self) -> Tensor:
        """Return the norms read so far, (points, batch)."""
        if self._product is None:
            like = self._state[0]
            return like.new_empty(0, like.shape[0], dtype=torch.float64)
        return self._product.log_norms()

    def notes(self, steps: int) -> tuple[str, ...]:
        """Return what one should know of a run of so many steps: how or why not it leapt."""
        if self._restless:
            return (
                f"from step {self.settled_step} on the state moves in its last digits alone; the "
                f"rest after step {self._taken} was computed with the Jacobian that it has there.",
            )
        waited = self._asked == "jump" or (self._asked == "auto" and steps >= LONG)
        if not waited or self.settled_step is not None:
            return ()
        why = (
            f"the input changes until step {self._same_from}"
            if self._same_from
            else f"the state did not come back within {self._taken} steps"
        )
        return (f"every step was taken one by one: {why}.",)

    def _take(self, chunk: Chunk) -> None:
        """Hand one chunk's steps on."""
        for start, steps in self._linearized(chunk):
            if self._product is None:
                self._product = self._choose(steps)
            inside = points_within(self._points, start, steps.steps)
            self._product.advance(steps, inside)
            if steps.keep is not None:
                self.direct.advance(steps.keep, inside)
            self._latest = steps
        self._taken, self.final_state = chunk.start + chunk.steps, chunk.last

    def _linearized(self, chunk: Chunk) -> Iterator[tuple[int, Linearization]]:
        """Yield the chunk's step Jacobians and where they begin; stored ones in smaller parts."""
        if self._asked != "generic":
            own = self._cell.linearize(chunk.drive, chunk.states)
            if own is not None:
                yield chunk.start, own
                return
        elements = self._state[0].shape[0] * self._place.state_size**2
        length = max(1, GENERIC_CHUNK_ELEMENTS // elements)
        for first in range(0, chunk.steps, length):
            part = slice(first, first + length)
            states = tuple(state[part] for state in chunk.states)
            steps = GenericLinearization(self._cell, chunk.drive[part], states)
            yield chunk.start + first, steps

    def _leap(self, chunk: Chunk, steps: int) -> bool:
        """Take the rest of the run at once where the state came back; return whether it did."""
        if self._taken <= self._same_from:
            return False
        period = period_of(chunk)
        settled = None if period is None else self._taken - period
        if period is None and chunk.start >= self._same_from and rests(chunk, self._latest):
            period, settled, self._restless = 1, chunk.start, True
        if period is None or settled is None or settled < self._same_from:
            return False
        states = tuple(part[-period:] for part in chunk.states)
        cycle = self._linearize(chunk.drive[-period:], states)
        self._repeat(cycle, self._points[self._points > self._taken] - self._taken)
        self.settled_step = settled
        self.final_state = tuple(part[(steps - self._taken) % period] for part in states)
        return True

    def _repeat(self, cycle: Linearization, points: Tensor) -> None:
        if self._product is None or len(points) == 0:
            return
        self._product.repeat(cycle, points)
        if isinstance(self._product, DenseProduct) and self._product.leaped:
            self.method = "jump"
        if cycle.keep is not None:
            self.direct.repeat(cycle.keep, points)

    def _choose(self, steps: Linearization) -> Product:
        """Return the product to carry, and note which it is."""
        batch = self._state[0].shape[0]
        closed = not isinstance(steps, GenericLinearization)
        diagonal = self._asked in (*LEAPING, "diagonal") and steps.diagonal() is not None
        if self._asked == "diagonal" and not diagonal:
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
        self.method = "dense" if closed else "generic"
        like = self._state[0].new_empty(0, dtype=product_dtype(self._state[0].dtype))
        return DenseProduct(self._place, self._reader(batch, like), batch, like=like)

    def _reader(self, batch: int, like: Tensor) -> NormReader:
        rows = self._place.rows.stop - self._place.rows.start
        columns = self._place.columns.stop - self._place.columns.start
        if self._norm == "frobenius":
            return FrobeniusReader(batch, like=like)
        if min(rows, columns) < NARROW:
            return ExactSpectralReader(batch, like=like)
        return WarmSpectralReader(batch, columns, like=like)

    def _linearize(self, drive: Tensor, states: State) -> Linearization:
        if self._asked != "generic":
            own = self._cell.linearize(drive, states)
            if own is not None:
                return own
        return GenericLinearization(self._cell, drive, states)


def first_step(cell: CellLike, state: State) -> Linearization | None:
    """Return the step Jacobian at the first state and no input, None without a closed form."""
    first = tuple(part.unsqueeze(0) for part in state)
    zeros = first[0].new_zeros(1, first[0].shape[1], cell.input_size)
    return cell.linearize(cell.drive(zeros), first)


def product_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return what a product is carried in: the cell's own dtype, float32 where that is narrower."""
    return torch.promote_types(dtype, torch.float32)
