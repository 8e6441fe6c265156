"""One pass along a run: pushes the tangents, adds their growth up, notes what collapses and why."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization
from gradflow.cells.shapes import State
from gradflow.engine.lyapunov.collapse import structural_rank
from gradflow.engine.lyapunov.growth import GrowthSums
from gradflow.engine.lyapunov.orthonormal_frame import OrthonormalFrame
from gradflow.engine.lyapunov.subject import Subject
from gradflow.engine.trajectory import Chunk
from gradflow.engine.zeros import ZeroReason
from gradflow.errors import DivergenceError


class LyapunovRun:
    """The growth of tangents along a run, a chunk of steps at a time.

    Args:
        subject: what is measured.
        count: how many tangents.
        steps, warmup: of the whole run; the first `warmup` steps are not added up.
        blocks: see `GrowthSums`.
    """

    def __init__(
        self, subject: Subject, count: int, *, steps: int, warmup: int, blocks: int
    ) -> None:
        self._subject, self._count = subject, count
        self._steps, self._warmup, self._blocks = steps, warmup, blocks
        self._frame = OrthonormalFrame(
            subject.rows,
            subject.state_size,
            count,
            device=subject.state[0].device,
            resolution=subject.resolution,
        )
        self._sums: GrowthSums | None = None
        self._exact = [True] * subject.state_size
        self.state = subject.state  # after the steps that were taken
        self.method = "qr"

    def take(self, chunk: Chunk) -> None:
        """Measure one chunk's steps.

        Raises:
            DivergenceError: a step Jacobian is not finite.
        """
        drive, states = self._subject.drive_and_states(chunk)
        steps = self._subject.linearize(drive, states, columns=self._count)
        growth = self._diagonal_growth(steps)
        if growth is None:
            growth = self._pushed_growth(steps, drive, states)
        _require_finite(growth, after=chunk.start)
        if self._sums is None:
            measured = self._steps - self._warmup
            self._sums = GrowthSums(*growth.shape[1:], steps=measured, blocks=self._blocks)
        self._sums.add(growth[max(0, self._warmup - chunk.start) :])
        self.state = chunk.last

    @property
    def measured(self) -> int:
        """How many steps were measured by now."""
        return 0 if self._sums is None else self._sums.done

    def finish(self) -> tuple[GrowthSums, tuple[ZeroReason | None, ...]]:
        """Return the sums, and for each of their directions why it is -inf, or None."""
        if self._sums is None:
            raise RuntimeError("nothing was measured")
        if self.method == "diagonal":
            self._sums.sort()
        zero = torch.isneginf(self._sums.means).any(dim=0).tolist()
        words: tuple[ZeroReason, ZeroReason] = ("underflow", "exact")
        reasons = [
            words[exact] if gone else None for gone, exact in zip(zero, self._exact, strict=False)
        ]
        return self._sums, tuple(reasons)

    def _diagonal_growth(self, steps: Linearization) -> Tensor | None:
        """Return ln keep of each unit and -inf for the rest of the state, (time, batch, state)."""
        diagonal = steps.diagonal()
        if diagonal is None:
            return None
        self.method = "diagonal"
        kept = diagonal.keep.to(torch.float64).log()
        if steps.keep is not None:  # a sigmoid is never 0, so where it is it underflowed
            self._exact[: kept.shape[-1]] = [False] * kept.shape[-1]
        rest = self._subject.state_size - kept.shape[-1]
        return torch.nn.functional.pad(kept, (0, rest), value=-torch.inf)

    def _pushed_growth(self, steps: Linearization, drive: Tensor, states: State) -> Tensor:
        """Return ln |R_ii| of the chunk, (time, batch, count)."""
        # A single direction collapses only by becoming zero, so no bound is needed for it.
        bounds = steps.rank_bound() if self._count > 1 else None
        growth = []
        for t in range(steps.steps):
            before = self._frame.live
            growth.append(self._frame.push(steps, t, None if bounds is None else bounds[t]))
            if not torch.equal(before, self._frame.live):
                rank = structural_rank(self._subject.measured, drive, states, given=steps, last=t)
                self._note(before, rank)
        return torch.stack(growth)

    def _note(self, before: Tensor, rank: Tensor) -> None:
        """Note for each direction that collapsed now whether structure alone demands it."""
        for old, new, bound in zip(before, self._frame.live, rank, strict=True):
            for index in range(int(new), int(old)):
                self._exact[index] &= index >= int(bound)


def _require_finite(growth: Tensor, *, after: int) -> None:
    broken = torch.isnan(growth).flatten(1).any(dim=-1)
    if bool(broken.any()):
        step = after + int(broken.int().argmax()) + 1
        raise DivergenceError(
            f"Lyapunov exponents need a state that stays finite; at step {step} it, or its "
            "Jacobian, no longer is. Start elsewhere, or bound the step."
        )
