"""The running product as a matrix times a power of two, so that it never under- or overflows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.cells.protocol import Linearization, StepFactors
from gradflow.engine.blocks import BlockPlace
from gradflow.engine.log_norms import LN2, log_norm
from gradflow.engine.matrix_powers import MatrixPowers, scale_by_powers_of_two_
from gradflow.engine.norm_readers import NormReader, SafeRange
from gradflow.engine.product_room import Room, StepFactor, by_step

FACTOR_ELEMENTS = 2**20  # step matrices that are made at once, about 8 MB of float64
MOST_FACTORS = 32
FEW_CYCLES = 4  # from this many on, powers cost less than steps
SMALL = 2**15  # below this many entries torch does not share one norm among threads


class DenseProduct:
    """P_t as a (batch, state, columns) matrix times a power of two per batch row.

    Powers of two are exact. They are taken out where the Frobenius norm of the whole leaves
    [1/most, most]; a step that leaves even the range where squares are safe is taken again, from
    a product that was scaled towards it.

    The matrix has the dtype of the cell: the rounding of a float32 product, about 6e-8 a step, is
    no more than that of a float32 gate.

    Args:
        block: which columns are varied and which rows are read.
        reader: what reads the norm of the block.
        batch: how many rows.
        like: a tensor of the dtype and on the device of the product.
    """

    def __init__(self, block: BlockPlace, reader: NormReader, batch: int, *, like: Tensor) -> None:
        self._block, self._reader = block, reader
        self._joint = block.rows == slice(0, block.state_size)
        self._exponents = [0] * batch
        self._known = [1.0] * batch  # the Frobenius norm of each row of the product
        self._live = set(range(batch))  # rows that are not zero, or nan, for good
        self.leaped = False
        elements = batch * block.state_size**2
        self._together = max(1, min(MOST_FACTORS, FACTOR_ELEMENTS // elements))
        self._use_rooms(like, factors=self._together * elements)
        self._now.whole.zero_()[:, block.columns].diagonal(dim1=1, dim2=2).fill_(1.0)

    def _use_rooms(self, like: Tensor, *, factors: int) -> None:
        """Take memory for the product, for the next one and for factors, all of it at once.

        In one piece, because an allocator gives back to the system what is large, and has to map
        it anew for the next measurement; it keeps what is no larger than what it gave before.
        """
        batch, columns = len(self._exponents), self._block.columns.stop - self._block.columns.start
        shape = (batch, self._block.state_size, columns)
        size = math.prod(shape)
        memory = like.new_empty(2 * size + factors)
        self._factor_room = memory[2 * size :]
        self._now, self._next = (
            Room(memory[first : first + size].view(shape)) for first in (0, size)
        )
        whole = self._now.whole
        self._row_sizes = whole.new_empty(whole.shape[:2])
        self._sizes = whole.new_empty(whole.shape[0])
        self._range = SafeRange(whole.dtype)
        self._most = 2.0 ** (-math.log2(torch.finfo(whole.dtype).tiny) / 8)
        self._least, self._far = 1.0 / self._most, False
        self._at_once = self._joint and self._now.flat.shape[1] < SMALL

    def advance(self, linearization: Linearization, points: Tensor) -> None:
        """Multiply the chunk's steps on; see `Product.advance`."""
        wanted = set(points.tolist())
        for first in range(0, linearization.steps, self._together):
            last = min(first + self._together, linearization.steps)
            factors = linearization.factors(first, last, self._factor_room)
            self._fit(factors)
            for t, factor in enumerate(by_step(factors, self._now.whole.dtype), first):
                self._step(factor)
                if t in wanted:
                    self._read()

    def repeat(self, cycle: Linearization, points: Tensor) -> None:
        """Leap from point to point by powers of the cycle's product; see `Product.repeat`.

        A gap of a few cycles is taken step by step: that is cheaper, and the same numbers as ever.
        """
        period, at = cycle.steps, 0
        powers = MatrixPowers([cycle.dense(t).clone() for t in range(period)])
        factors = cycle.factors(0, period)
        steps = by_step(factors, self._now.whole.dtype)
        self._fit(factors)
        for point in points.tolist():
            aligned = at + (-at) % period
            cycles = (point - aligned) // period
            if cycles >= FEW_CYCLES:
                self._walk(steps, at, aligned)
                if self._now.whole.dtype != torch.float64:  # the powers have its precision
                    product = self._now.whole.to(torch.float64)
                    self._use_rooms(product, factors=0)
                    self._now.whole.copy_(product)
                    self._fit(factors)
                    steps = by_step(factors, torch.float64)
                self._leap(powers, cycles)
                at = aligned + cycles * period
            self._walk(steps, at, point)
            self._read()
            at = point

    def log_norms(self) -> Tensor:
        """Return what was read so far."""
        return self._reader.log_norms()

    def _fit(self, factors: StepFactors) -> None:
        self._now.fit(factors)
        self._next.fit(factors)

    def _walk(self, cycle: Sequence[StepFactor], first: int, last: int) -> None:
        """Take steps `first` to `last - 1` of a cycle that repeats for ever."""
        for t in range(first, last):
            self._step(cycle[t % len(cycle)])

    def _leap(self, powers: MatrixPowers, cycles: int) -> None:
        """Multiply by K^cycles, a power of two at a time."""
        self.leaped = True
        for j in range(cycles.bit_length()):
            if cycles >> j & 1:
                matrix, exponents = powers(j)
                self._step(StepFactor(matrix, None, whole=True))
                self._exponents = [a + b for a, b in zip(self._exponents, exponents, strict=True)]

    def _step(self, factor: StepFactor) -> None:
        """Multiply by one factor, and see that the size stays in range."""
        if self._far:
            self._rescale()
        self._now.multiply(factor, out=self._next)
        sizes = self._measure()
        if not (self._least < min(sizes) and sum(sizes) < self._most):  # a sum passes nan on
            sizes = self._come_back(factor, sizes)
        self._known = sizes
        self._now, self._next = self._next, self._now

    def _come_back(self, factor: StepFactor, sizes: list[float]) -> list[float]:
        """See to a product that left [least, most]: it is scaled before the next step, or now."""
        self._far = True
        if not self._range.holds(sizes) and self._scale_towards(sizes):
            self._now.multiply(factor, out=self._next)
            sizes = self._measure_anything()
        return sizes

    def _measure(self) -> list[float]:
        """Return the Frobenius norm of each batch row of the next product."""
        if self._at_once:
            torch.linalg.vector_norm(self._next.flat, dim=1, out=self._sizes)
        else:
            torch.linalg.vector_norm(self._next.whole, dim=2, out=self._row_sizes)
            torch.linalg.vector_norm(self._row_sizes, dim=1, out=self._sizes)
        sizes: list[float] = self._sizes.tolist()
        return sizes

    def _read(self) -> None:
        """Let the reader read the block of the product as it stands."""
        rows, sizes = self._block.rows, self._known
        if not self._joint:
            sizes = torch.linalg.vector_norm(self._row_sizes[:, rows], dim=1).tolist()
        self._reader.read(self._now.whole[:, rows], sizes, self._exponents)

    def _rescale(self) -> None:
        """Take out the power of two of the rows whose size is far from 1."""
        self._far = len(self._live) < len(self._known)  # what is zero or nan stays far
        shifts = [0] * len(self._known)
        for row in self._live:
            if not 1.0 / self._most < self._known[row] < self._most:
                shifts[row] = -math.frexp(self._known[row])[1]
        self._shift(self._now, shifts)

    def _shift(self, room: Room, shifts: Sequence[int]) -> None:
        if any(shifts):
            scale_by_powers_of_two_(room.whole, shifts)
            self._exponents = [e - s for e, s in zip(self._exponents, shifts, strict=True)]

    def _scale_towards(self, sizes: Sequence[float]) -> bool:
        """Scale the old product so that a step beyond the safe range stays within the numbers.

        Returns:
            Whether anything was scaled; rows that are zero or nan for good are not.
        """
        far = int(math.log2(torch.finfo(self._now.whole.dtype).max)) // 2
        shifts = [0] * len(sizes)
        for row in self._live:
            if sizes[row] <= self._range.low:
                shifts[row] = far
            elif not sizes[row] < self._range.high:
                shifts[row] = -far
        self._shift(self._now, shifts)
        return any(shifts)

    def _measure_anything(self) -> list[float]:
        """Bring the next product to a size near 1, wherever it is; return the sizes then.

        Rows that are zero or nan even now are so for good.
        """
        logs = log_norm(self._next.whole).tolist()
        self._live = {row for row in self._live if math.isfinite(logs[row])}
        shifts = [-round(log / LN2) if math.isfinite(log) else 0 for log in logs]
        self._shift(self._next, shifts)
        return self._measure()
