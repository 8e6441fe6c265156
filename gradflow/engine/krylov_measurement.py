"""The norms of one run by vectors alone, for chosen steps: `Measurement` for wide cells."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockPlace, Norm
from gradflow.engine.krylov import Estimates, KrylovProcess
from gradflow.engine.measurement import Progress, first_step
from gradflow.engine.points import points_within
from gradflow.engine.products import DirectProduct
from gradflow.engine.stored_run import StoredRun
from gradflow.errors import UnknownNameError

# From this state size on, and for no more points than this, vectors beat the whole matrix.
WIDE, FEW_POINTS = 2048, 8


def prefers_vectors(place: BlockPlace, norm: Norm, points: Tensor) -> bool:
    """Return whether pushing and pulling vectors is the cheaper way to these norms."""
    return norm == "spectral" and place.state_size >= WIDE and len(points) <= FEW_POINTS


def suits_vectors(cell: CellLike, state: State, norm: Norm, method: str) -> bool:
    """Return whether a measurement of few points would be by vectors: asked for, or by itself."""
    if method == "krylov":
        return True
    wide = norm == "spectral" and sum(cell.part_sizes) >= WIDE
    return method == "auto" and wide and KrylovMeasurement.applies(cell, state)


class KrylovMeasurement:
    """As `Measurement`, by `KrylovProcess`.

    `upper` and `converged` (points, batch) tell how good each norm is.
    """

    method = "krylov"
    settled_step: int | None = None

    def __init__(
        self, cell: CellLike, place: BlockPlace, norm: Norm, *, points: Tensor, state: State
    ) -> None:
        if norm != "spectral":
            raise UnknownNameError(
                "method 'krylov' follows the largest singular value, so it measures the spectral "
                f"norm alone; got norm {norm!r}. Use method 'dense' or 'auto'."
            )
        if first_step(cell, state) is None:
            raise UnknownNameError(
                f"method 'krylov' needs a cell that gives its own derivative, and {cell.kind} "
                "does not. Use method 'generic' or 'auto'."
            )
        self._cell, self._place, self._points, self._state = cell, place, points, state
        self._found: list[Estimates] = []
        self.direct = DirectProduct(place, norm, kept_part=cell.kept_part)
        self.final_state = state

    @staticmethod
    def applies(cell: CellLike, state: State) -> bool:
        """Return whether the cell can be measured so, and has no better way still."""
        steps = first_step(cell, state)
        return steps is not None and steps.diagonal() is None

    def run(self, x: Tensor, progress: Progress | None) -> None:
        """Measure the whole run, as far as nothing stops it."""
        run = StoredRun(self._cell, x, self._state)
        for chunk, steps in run.follow():
            if steps.keep is not None:
                self.direct.advance(
                    steps.keep, points_within(self._points, chunk.start, chunk.steps)
                )
        self.final_state = run.final_state
        like = self._state[0]
        process = KrylovProcess(run, self._place, like=like, batch=like.shape[0])
        for step in self._points.tolist():
            self._found.append(process.estimate(step))
            if progress is not None:
                progress(step, x.shape[0])

    def log_norms(self) -> Tensor:
        """Return the norms read so far, (points, batch)."""
        return self._stacked([found.lower for found in self._found])

    @property
    def upper(self) -> Tensor:
        """The upper ends of the norms' intervals, natural logs, (points, batch)."""
        return self._stacked([found.upper for found in self._found])

    @property
    def converged(self) -> Tensor:
        """Whether each norm is good to 1e-6 in its natural log, (points, batch)."""
        return self._stacked([found.converged for found in self._found]).bool()

    def notes(self, steps: int) -> tuple[str, ...]:  # noqa: ARG002 - the form of `Measurement`
        """Return which norms are not known to 1e-6, with the interval that was reached."""
        notes = []
        for step, found in zip(self._points.tolist(), self._found, strict=False):
            open_rows = torch.nonzero(~found.converged).flatten().tolist()
            for row in open_rows[:1]:
                low, high = float(found.lower[row]), float(found.upper[row])
                notes.append(
                    f"method 'krylov' has not converged at step {step} after {found.pairs} pushes "
                    f"and pulls: the natural log of the norm lies in [{low:.10g}, {high:.10g}]."
                )
        return tuple(notes)

    def _stacked(self, rows: list[Tensor]) -> Tensor:
        if rows:
            return torch.stack(rows)
        like = self._state[0]
        return like.new_empty(0, like.shape[0], dtype=torch.float64)
