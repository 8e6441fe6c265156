"""Parts of the engine, timed: `pytest tests/benchmarks/bench_engine.py`.

The name keeps it out of the tests. What is claimed of these numbers is a ratio of two of them from
one run, such as twelve curves beside one; single numbers are of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradflow.cells import GRU, LSTM, RNN, Cell, hold_, stack_cells
from gradflow.engine import jacobian_norms
from gradflow.engine.trajectory import zero_input
from gradflow.experiments.rates import report_points

Benchmark = Callable[..., Any]
FORMS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU, "rnn": RNN}


@pytest.fixture(autouse=True)
def _two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def driven(cell: Cell, steps: int, batch: int = 1) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return random input and a random first state."""
    x = torch.randn(steps, batch, cell.input_size, dtype=torch.float64)
    state = tuple(torch.randn(batch, size, dtype=torch.float64) for size in cell.part_sizes)
    return x, state


@pytest.mark.parametrize("curves", [1, 12])
@pytest.mark.parametrize("norm", ["frobenius", "spectral"])
def test_curves(benchmark: Benchmark, curves: int, norm: str) -> None:
    """Twelve curves of H = 32 in one batched run, beside one: at most 5 times as long."""
    torch.manual_seed(0)
    cells = [LSTM(8, 32, dtype=torch.float64) for _ in range(curves)]
    cell = stack_cells(cells) if curves > 1 else cells[0]
    x, state = driven(cell, 200, curves)
    norms = benchmark(lambda: jacobian_norms(cell, x, state, "joint", norm))
    assert torch.isfinite(norms.log_norm).all()


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(("hidden", "steps"), [(256, 100), (512, 40)])
def test_floor_and_product(benchmark: Benchmark, kind: str, hidden: int, steps: int) -> None:
    """A whole run; `gradflow speed --method gradflow,floor` has its floor beside it."""
    torch.manual_seed(0)
    cell = FORMS[kind](8, hidden, dtype=torch.float64)
    x, state = driven(cell, steps)
    norms = benchmark(lambda: jacobian_norms(cell, x, state, "joint", "frobenius"))
    assert torch.isfinite(norms.log_norm).all()


@pytest.mark.parametrize("hidden", [64, 128])
@pytest.mark.parametrize("norm", ["frobenius", "spectral"])
def test_spectral_norms(benchmark: Benchmark, hidden: int, norm: str) -> None:
    """What following the largest singular value adds to a run, at every prefix."""
    torch.manual_seed(0)
    cell = LSTM(8, hidden, dtype=torch.float64)
    x, state = driven(cell, 200)
    norms = benchmark(lambda: jacobian_norms(cell, x, state, "joint", norm))
    assert torch.isfinite(norms.log_norm).all()


@pytest.mark.parametrize("start", ["zero", "random"])
def test_a_million_steps(benchmark: Benchmark, start: str) -> None:
    """T = 10^6 at log-spaced points, H = 64: about a second."""
    torch.manual_seed(0)
    cell = hold_(LSTM(1, 64, dtype=torch.float64), forget=0.9, input=0.1, candidate_gain=1.0)
    steps = 1_000_000
    state = cell.initial_state(1) if start == "zero" else driven(cell, 1)[1]
    at = report_points(steps, 1000)
    norms = benchmark(lambda: jacobian_norms(cell, zero_input(cell, 1, steps), state, at=at))
    assert torch.isfinite(norms.log_norm).all()


@pytest.mark.parametrize("hidden", [512, 2048])
def test_push_and_pull(benchmark: Benchmark, hidden: int) -> None:
    """One push and one pull of 8 vectors: at most 32 times as long at 2048 as at 512."""
    torch.manual_seed(0)
    cell = LSTM(8, hidden, dtype=torch.float64)
    x, state = driven(cell, 4)
    with torch.no_grad():
        drive = cell.drive(x)
        states = tuple(part[:-1] for part in cell.run(drive, state))
        steps = cell.linearize(drive, states)
        block = torch.randn(1, 2 * hidden, 8, dtype=torch.float64)

        def pair() -> Tensor:
            pushed = block
            for t in range(4):
                pushed = steps.push(t, pushed)
            for t in reversed(range(4)):
                pushed = steps.pull(t, pushed)
            return pushed

        assert torch.isfinite(benchmark(pair)).all()


def test_wide_estimates(benchmark: Benchmark) -> None:
    """H = 2048, T = 100 by vectors, where the whole matrix takes minutes."""
    torch.manual_seed(0)
    cell = LSTM(8, 2048, dtype=torch.float64)
    x, state = driven(cell, 100)
    norms = benchmark.pedantic(
        lambda: jacobian_norms(cell, x, state, at=[100], method="krylov"), rounds=1
    )
    assert torch.isfinite(norms.log_norm).all()
