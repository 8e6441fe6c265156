"""The largest singular value, followed from prefix to prefix: never another than the largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from gradflow.engine.spectral import WarmSpectralReader
from tests.cases import orthogonal

STEPS = 25
Family = Callable[[int, torch.Generator], Iterator[Tensor]]


def _normal(size: int, generator: torch.Generator) -> Tensor:
    return torch.randn(size, size, generator=generator, dtype=torch.float64) / math.sqrt(size)


def _gaussian(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield independent Gaussian matrices: their products soon have one direction."""
    while True:
        yield _normal(size, generator)


def _orthogonal(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield orthogonal matrices times 0.9: all singular values stay one cluster."""
    while True:
        yield 0.9 * orthogonal(size, generator)


def _nearly_orthogonal(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield orthogonal matrices with a little noise: the cluster spreads step by step."""
    while True:
        yield 0.9 * orthogonal(size, generator) + 1e-3 * _normal(size, generator)


def _normal_power(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield f I + i o Q, a held LSTM with a live candidate: pairs of equal singular values."""
    matrix = 0.9 * torch.eye(size, dtype=torch.float64) + 0.05 * orthogonal(size, generator)
    while True:
        yield matrix


def _crossing(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield diagonal rates that change places: another direction leads after a while."""
    order = torch.randperm(size, generator=generator)
    for step in range(10_000):
        rates = torch.full((size,), 0.3, dtype=torch.float64)
        rates[order[0]] = 0.9 if step < STEPS // 2 else 0.5
        rates[order[1 % size]] = 0.7 if step < STEPS // 2 else 0.95
        rates[order[2 % size]] = 1.0 if step % 7 < 3 else 0.6
        yield rates.diag()


def _triangular(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield far from normal matrices, whose norm says little about their eigenvalues."""
    while True:
        rates = 0.8 + 0.2 * torch.rand(size, generator=generator, dtype=torch.float64)
        yield rates.diag() + torch.triu(_normal(size, generator), 1)


def _switching(size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield gates that open and close at random, unit by unit."""
    while True:
        open_ = torch.rand(size, 1, generator=generator, dtype=torch.float64) < 0.5
        gates = torch.where(open_, 0.95, 0.05)
        yield gates * (torch.eye(size, dtype=torch.float64) + 0.1 * _normal(size, generator))


FAMILIES: dict[str, Family] = {
    "gaussian": _gaussian,
    "orthogonal": _orthogonal,
    "nearly orthogonal": _nearly_orthogonal,
    "normal power": _normal_power,
    "crossing": _crossing,
    "triangular": _triangular,
    "switching": _switching,
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(6))
def test_no_prefix_is_given_another_singular_value(family: str, seed: int) -> None:
    """Every prefix has the largest singular value of a full decomposition, to round-off."""
    generator = torch.Generator().manual_seed(seed)
    rows, columns = torch.randint(2, 100, (2,), generator=generator).tolist()
    product = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    reader = WarmSpectralReader(1, columns, like=product)
    expected = []
    for _, step in zip(range(STEPS), FAMILIES[family](rows, generator), strict=False):
        product = step @ product
        product = product / product.abs().max()
        reader.read(product[None], [float(torch.linalg.vector_norm(product))], [0])
        expected.append(torch.linalg.svdvals(product)[0].log())
    # half of the relative error that a proof may leave, and the rounding of both
    torch.testing.assert_close(reader.log_norms()[:, 0], torch.stack(expected), rtol=0, atol=3e-13)


def test_a_leading_direction_needs_no_decomposition() -> None:
    """Of products that have one direction, most values are proved by the iteration alone."""
    generator = torch.Generator().manual_seed(0)
    product = torch.eye(100, dtype=torch.float64)
    reader = WarmSpectralReader(1, 100, like=product)
    for _, step in zip(range(200), _gaussian(100, generator), strict=False):
        product = step @ product
        product = product / product.abs().max()
        reader.read(product[None], [float(torch.linalg.vector_norm(product))], [0])
    assert reader.proved > 120
