"""Recurrent Jacobians at 50 digits: what float64 should have said, for small cells.

An mpmath number has an exponent without bounds, so the product of thousands of step Jacobians
needs no scale, and 50 digits leave float64's 16 untouched by any rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import mpmath
import numpy as np
import torch
from torch import Tensor

from tests.reference.mpmath_cells import Exact, exact, exact_step
from tests.reference.subject import Block, Subject

DIGITS = 50


def trajectory(subject: Subject, *, digits: int = DIGITS) -> Tensor:
    """Return the joint states s_1 to s_T rounded to float64, (time, batch, state)."""
    with mpmath.workdps(digits):
        found = [[_rounded(state) for state, _ in _walk(row)] for row in _rows(subject)]
    return torch.tensor(np.array(found)).transpose(0, 1)


def jacobians(subject: Subject, *, block: Block = "joint", digits: int = DIGITS) -> Tensor:
    """Return ds_T/ds_0 for every T from 1 rounded to float64, (time, batch, rows, columns)."""
    rows, columns = subject.spans(block)
    with mpmath.workdps(digits):
        found = [[_rounded(product) for _, product in _walk(row)] for row in _rows(subject)]
    return torch.tensor(np.array(found)).transpose(0, 1)[:, :, rows, columns]


def log_norms(
    subject: Subject,
    *,
    block: Block = "joint",
    norm: str = "spectral",
    at: Sequence[int] | None = None,
    digits: int = DIGITS,
) -> Tensor:
    """Return ln ||ds_T/ds_0|| at the steps `at` (every T from 1 when None), (points, batch).

    A spectral norm is a decomposition at 50 digits, far dearer than a step: ask for few points.
    """
    points = set(range(1, subject.steps + 1) if at is None else at)
    rows, columns = subject.spans(block)
    measure = {"spectral": _spectral, "frobenius": _frobenius}[norm]
    found = []
    with mpmath.workdps(digits):
        for row in _rows(subject):
            walk = enumerate(_walk(row), start=1)
            kept = (product[rows, columns] for step, (_, product) in walk if step in points)
            found.append([_log(measure(matrix)) for matrix in kept])
    return torch.tensor(found, dtype=torch.float64).T


def _rows(subject: Subject) -> list[Subject]:
    return [subject.row(index) for index in range(subject.batch)]


def _walk(subject: Subject) -> Iterator[tuple[Exact, Exact]]:
    """Yield (joint state, ds_T/ds_0) for T = 1, 2, ... of a subject of one row."""
    step = exact_step(subject.module)
    state = exact(torch.cat(subject.state, dim=1)[0])
    product = None
    for x in exact(subject.inputs[:, 0]):
        state, jacobian = step(x, state)
        product = jacobian if product is None else jacobian @ product
        yield state, product


def _rounded(values: Exact) -> np.ndarray:
    return values.astype(np.float64)


def _frobenius(matrix: Exact) -> mpmath.mpf:
    return mpmath.sqrt(mpmath.fsum(matrix.ravel(), squared=True))


def _spectral(matrix: Exact) -> mpmath.mpf:
    """Return the largest singular value; scaled to 1 first, since the solver works absolutely."""
    largest = max(_moduli(matrix))
    if largest == 0:
        return largest
    singular = mpmath.svd_r(mpmath.matrix((matrix / largest).tolist()), compute_uv=False)
    return largest * max(singular)


def _moduli(matrix: Exact) -> Iterable[mpmath.mpf]:
    return (abs(entry) for entry in matrix.ravel())


def _log(value: mpmath.mpf) -> float:
    return float(mpmath.log(value)) if value > 0 else float("-inf")
