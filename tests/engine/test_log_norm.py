"""The logarithm of a matrix norm: from 10^-300 to 10^300, from zero to what is no number."""

from __future__ import annotations

import math

import torch

from gradflow.engine import log_norm
from tests import cases
from tests.reference import autograd_jacobian


def test_a_float32_vector_of_tiny_entries_has_a_norm() -> None:
    """Four entries of 2^-75 have norm 2^-74; squared in float32 they would read 0."""
    vector = torch.full((4, 1), 2.0**-75)
    assert torch.linalg.vector_norm(vector) == 0
    for norm in ("frobenius", "spectral"):
        cases.assert_same_log_norm(log_norm(vector, norm), -74 * math.log(2), tolerance=1e-15)
        cases.assert_same_log_norm(log_norm(vector.mT, norm), -74 * math.log(2), tolerance=1e-15)


def test_the_norm_of_a_matrix_of_any_size_is_its_norm() -> None:
    """Spectral and Frobenius norms scale with the matrix, from 10^-300 to 10^300, and see zero."""
    generator = torch.Generator().manual_seed(0)
    for shape in ((4, 4), (2, 7), (7, 2), (1, 5)):
        matrix = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
        for norm in ("spectral", "frobenius"):
            plain = autograd_jacobian.matrix_norm(matrix, norm).log()
            for scale in (1.0, 1e-300, 1e-200, 1e200, 1e300):
                found = log_norm(scale * matrix, norm)
                cases.assert_same_log_norm(found, plain + math.log(scale))
            assert torch.isneginf(log_norm(0 * matrix, norm)).all()


def test_what_is_not_finite_is_said_row_by_row() -> None:
    """A NaN or an infinity makes its own matrix's norm NaN or infinite, and no neighbour's."""
    matrix = torch.eye(2).double().repeat(3, 1, 1)
    matrix[0, 0, 1], matrix[1, 0, 1] = math.nan, math.inf
    for norm in ("spectral", "frobenius"):
        found = log_norm(matrix, norm)
        assert torch.isnan(found[0])
        assert not torch.isfinite(found[1])
        assert not torch.isneginf(found[1])
        cases.assert_same_log_norm(found[2], 0.0 if norm == "spectral" else math.log(2) / 2)
