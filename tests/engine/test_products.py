"""The running product itself: no subnormal number in it, the same on one thread and on two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from gradflow.engine import jacobian_norms
from gradflow.engine.blocks import locate_block
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.dense_product import DenseProduct
from gradflow.engine.matrix_powers import MatrixPowers, scale_by_powers_of_two_, scaled_to_unit
from gradflow.engine.norm_readers import FrobeniusReader
from gradflow.engine.trajectory import run_in_chunks
from tests import cases
from tests.engine.measuring import cell_of, silent

TINY = torch.finfo(torch.float64).tiny


class Watcher(FrobeniusReader):
    """A reader that also looks for numbers below the smallest normal one."""

    subnormal = 0

    def read(self, block: Tensor, sizes: Sequence[float], exponents: Sequence[int]) -> None:
        """Count them, with the flushing off: it hides them from comparisons as well."""
        torch.set_flush_denormal(False)
        self.subnormal += count_subnormal(block)
        torch.set_flush_denormal(True)
        super().read(block, sizes, exponents)


def count_subnormal(values: Tensor) -> int:
    """Return how many entries are neither zero nor normal."""
    return int(((values != 0) & (values.abs() < TINY)).sum())


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Let torch compute on two threads, and as before after the test."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_neither_states_nor_products_become_subnormal() -> None:
    """States fade under zero input, and gates from 0.01 to 0.99 part the entries of the product.

    0.1^300 is subnormal, 0.01^160 is beside 0.99^160: both would be met on the way.
    """
    subject = cases.held_lstm(0.1, cases.Setup(hidden_size=6, batch=1))
    gates = torch.logit(torch.linspace(0.01, 0.99, 6, dtype=torch.float64))
    with torch.no_grad():
        subject.module.bias_ih[6:12] = gates
    run = silent(subject, 900)
    cell, state = cell_of(run.module), run.state
    place = locate_block("joint", cell.parts, state)
    watcher = Watcher(1, like=state[0])
    product = DenseProduct(place, watcher, 1, like=state[0])
    states = []
    with flushed_denormals(), torch.no_grad():
        for chunk in run_in_chunks(cell, run.inputs, state, 300):
            states += [torch.cat(chunk.states, dim=-1)]
            steps = cell.linearize(chunk.drive, chunk.states)
            product.advance(steps, torch.arange(chunk.steps))
    assert count_subnormal(torch.cat(states)) == 0
    assert watcher.subnormal == 0
    assert product.log_norms().shape == (900, 1)
    # without the flushing the same states do fade through them: the test can see them
    with torch.no_grad():
        faded = [torch.cat(c.states, -1) for c in run_in_chunks(cell, run.inputs, state, 300)]
    assert count_subnormal(torch.cat(faded)) > 0


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_two_threads_change_no_log_norm(norm: str) -> None:
    """One thread and two give the same log norms to 1e-11, wide enough for both to be used."""
    setup = cases.Setup(hidden_size=128, batch=1, steps=8)
    subject = cases.random_subject("lstm", setup, weight_scale=0.8)
    cell = cell_of(subject.module)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        norms = jacobian_norms(cell, subject.inputs, subject.state, "joint", norm)
        found.append(norms.log_norm)
    cases.assert_same_log_norm(found[0], found[1], tolerance=1e-11)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_all_ways_agree(kind: str, norm: str) -> None:
    """Step by step, by leaps, by torch.func and by vectors a run has one set of norms."""
    setup = cases.Setup(hidden_size=8, batch=2)
    subject = silent(cases.random_subject(kind, setup, weight_scale=0.7), 1100)
    cell, at = cell_of(subject.module), [1, 2, 50, 600, 1100]
    ways = ["auto", "dense", "jump", "generic", *(["krylov"] if norm == "spectral" else [])]
    found = {
        way: jacobian_norms(cell, subject.inputs, subject.state, norm=norm, at=at, method=way)
        for way in ways
    }
    assert {way: norms.method for way, norms in found.items()} == {
        **{way: way for way in ways},
        "auto": "jump",
    }
    for way in ways:
        tolerance = 1e-6 if way == "krylov" else 1e-11
        expected = found["dense"].log_norm
        cases.assert_same_log_norm(found[way].log_norm, expected, tolerance=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_powers_of_two_scale_exactly(dtype: torch.dtype) -> None:
    """A shift moves the exponent alone, also one that is no number of the dtype itself."""
    matrix = torch.tensor([[[3.0, -0.625]], [[1e-3, 7.0]]], dtype=dtype)
    far = 200 if dtype == torch.float32 else 1100
    small = scale_by_powers_of_two_(matrix.clone() * 2.0**100, [-far, 0])
    back = scale_by_powers_of_two_(small, [far, 0]) * 2.0**-100
    assert torch.equal(back, matrix)


def test_squares_of_a_matrix_are_its_powers() -> None:
    """K^1024 of two turns by 0.3 and a scale of 1e-3 turns by 614.4 and is 1e-3072 in size."""
    c, s = math.cos(0.3), math.sin(0.3)
    step = torch.tensor([[[c, -s], [s, c]]], dtype=torch.float64)
    matrix, exponents = MatrixPowers([1e-3 * step, step])(10)
    assert float(torch.linalg.vector_norm(matrix)) <= 1.0
    turned = math.atan2(float(matrix[0, 1, 0]), float(matrix[0, 0, 0]))
    # 1024 times the round-off of the angle
    assert turned == pytest.approx(math.remainder(1024 * 0.6, math.tau), abs=1e-12)
    size = math.log(float(torch.linalg.matrix_norm(matrix[0], 2)))
    assert size + exponents[0] * math.log(2) == pytest.approx(1024 * math.log(1e-3), rel=1e-14)


def test_a_zero_matrix_has_no_unit() -> None:
    """Scaling to unit size leaves zero, and what is no number, as they are."""
    matrix = torch.tensor([[[0.0]], [[float("inf")]], [[8.0]]], dtype=torch.float64)
    unit, exponents = scaled_to_unit(matrix, [1, 2, 3])
    assert unit.flatten().tolist() == [0.0, float("inf"), 0.5]
    assert exponents == [1, 2, 7]
