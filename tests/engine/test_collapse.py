"""Directions that nothing is left of: found by structure, told from small numbers, and gone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gradflow.cells import GRU, LSTM, RNN
from gradflow.engine import lyapunov_spectrum
from gradflow.engine.lyapunov.kaplan_yorke import kaplan_yorke_dimension
from gradflow.errors import DivergenceError, DtypeError, RequestError, ShapeError
from tests.engine.maps import henon, random_hidden


def rotation() -> Tensor:
    """Return a turn of the plane that mixes both axes."""
    angle = torch.tensor(0.6, dtype=torch.float64)
    return torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).reshape(2, 2)


# closed form


def test_a_delay_line_forgets_everything() -> None:
    """n units that hand their values on: each step has rank n - 1, n steps have rank 0."""

    def shift(x: Tensor | None, state: Tensor) -> Tensor:
        del x
        return torch.cat([state.new_zeros(state.shape[0], 1), 0.9 * state[:, :-1]], dim=-1)

    spectrum = lyapunov_spectrum(shift, torch.ones(1, 4, dtype=torch.float64), 10, warmup=0)
    assert torch.isneginf(spectrum.exponents).all()
    assert spectrum.zero_reason == ("exact",) * 4


def test_a_delay_line_of_tanh_units_is_seen_in_closed_form() -> None:
    """The rank bound of one step is n - 1; only the product's pattern tells that all is lost."""
    cell = RNN(1, 4, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.copy_(torch.diag(torch.ones(3, dtype=torch.float64), -1))
    spectrum = lyapunov_spectrum(cell, (random_hidden(2, 4),), 10, warmup=0)
    assert spectrum.zero_reason == ("exact",) * 4


def test_a_network_of_low_rank_has_as_many_exponents() -> None:
    """W = u v^T + w z^T of rank 2: two exponents, and n - 2 exact zeros despite full-looking J."""
    cell = RNN(1, 6, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.copy_(random_hidden(6, 2) @ random_hidden(2, 6, seed=2))
    spectrum = lyapunov_spectrum(cell, (random_hidden(1, 6),), 300, warmup=100)
    assert torch.isfinite(spectrum.exponents[:2]).all()
    assert spectrum.zero_reason == (None,) * 2 + ("exact",) * 4


def test_shut_relu_units_are_exact_zeros() -> None:
    """A relu unit that stays below 0 has slope 0, truly: its direction is gone."""
    cell = RNN(1, 3, nonlinearity="relu", dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.copy_(0.9 * torch.eye(3))
        cell.bias_ih.copy_(torch.tensor([1.0, 1.0, -100.0]))
    state = random_hidden(1, 3).abs()
    for spectrum in (
        lyapunov_spectrum(cell, (state,), 60, warmup=10),
        lyapunov_spectrum(cell.forward, state, torch.zeros(60, 1, 1).double(), warmup=10),
    ):
        assert torch.allclose(spectrum.exponents[:2], torch.tensor(math.log(0.9)).double())
        assert spectrum.zero_reason == (None, None, "exact")


def test_a_silent_lstm_shows_nothing_of_its_output_gate() -> None:
    """At c = 0 tanh(c) is 0, so the output gate carries nothing: H exact zeros with a full U."""
    cell = LSTM(2, 3, bias=False, dtype=torch.float64)
    zeros = torch.zeros(50, 1, 2, dtype=torch.float64)
    spectrum = lyapunov_spectrum(cell, cell.initial_state(1), zeros, warmup=10)
    assert spectrum.zero_reason == (None,) * 3 + ("exact",) * 3


# edges


def test_a_collapse_of_one_step_stays() -> None:
    """What was multiplied by 0 once never comes back, whatever the other steps do."""

    def scale(x: Tensor, state: Tensor) -> Tensor:
        return state * torch.cat([x, 2 * torch.ones_like(x)], dim=-1)

    for step in (3, 20):  # in the warm-up, and after it
        x = torch.ones(40, 1, 1, dtype=torch.float64)
        x[step] = 0.0
        spectrum = lyapunov_spectrum(scale, x.new_ones(1, 2), x, warmup=10)
        assert spectrum.exponents.tolist() == [pytest.approx(math.log(2)), -math.inf]
        assert spectrum.zero_reason == (None, "exact")


def test_a_collapse_in_one_row_is_told_of_the_mean() -> None:
    """A mean with -inf in it is -inf; the other rows' own exponents remain to be read."""

    def scale(x: Tensor, state: Tensor) -> Tensor:
        return state * torch.cat([x, 2 * torch.ones_like(x)], dim=-1)

    x = torch.ones(30, 2, 1, dtype=torch.float64)
    x[5, 1] = 0.0
    spectrum = lyapunov_spectrum(scale, x.new_ones(2, 2), x, warmup=10)
    assert spectrum.exponents[1] == -math.inf
    assert spectrum.by_row[0, 1].item() == pytest.approx(0.0, abs=1e-6)
    assert spectrum.by_row[1, 1] == -math.inf


def test_what_rounding_hides_is_no_exact_zero() -> None:
    """A slope of 1e-16 in a turned basis drowns in rounding; other states show that it is there."""
    turn = rotation()

    def saturated(x: Tensor | None, state: Tensor) -> Tensor:
        del x
        along, across = (state @ turn).unbind(-1)
        return torch.stack([along, 2 * torch.tanh(10 * across)], dim=-1) @ turn.T

    start = torch.tensor([[0.0, 2.0]], dtype=torch.float64) @ turn.T
    spectrum = lyapunov_spectrum(saturated, start, 60, warmup=10)
    assert spectrum.exponents[0].item() == pytest.approx(0.0, abs=1e-12)
    assert spectrum.zero_reason == (None, "underflow")


def test_a_rank_that_is_missing_everywhere_is_exact() -> None:
    """A turned projection has rank 1 whatever the state, though no entry of it is zero."""
    projection = rotation()[:, :1] @ rotation()[:, :1].T
    start = torch.ones(1, 2, dtype=torch.float64)
    spectrum = lyapunov_spectrum(lambda _, s: torch.tanh(s) @ projection, start, 60, warmup=10)
    assert spectrum.zero_reason == (None, "exact")


def test_a_small_factor_beside_a_large_one_is_resolved() -> None:
    """ln 1e-12 beside ln 1, in a turned basis, is measured and no zero."""
    turn = rotation()
    matrix = turn @ torch.diag(torch.tensor([1.0, 1e-12], dtype=torch.float64)) @ turn.T
    start = torch.zeros(1, 2, dtype=torch.float64)
    spectrum = lyapunov_spectrum(lambda _, s: s @ matrix, start, 60, warmup=10)
    assert spectrum.exponents[1].item() == pytest.approx(math.log(1e-12), abs=1e-3)


def test_a_slope_that_underflows_is_no_exact_zero() -> None:
    """tanh at 400 has the slope 1e-347, which float64 has not: a zero, but not by structure."""
    cell = RNN(1, 2, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.copy_(0.5 * torch.eye(2))
        cell.bias_ih.copy_(torch.tensor([0.0, 400.0]))
        cell.bias_hh.zero_()
    spectrum = lyapunov_spectrum(cell, (random_hidden(1, 2),), 50, warmup=10)
    assert spectrum.zero_reason == (None, "underflow")
    gru = GRU(1, 1, dtype=torch.float64)
    with torch.no_grad():
        gru.weight_hh.zero_()
        gru.bias_ih.copy_(torch.tensor([0.0, -800.0, 0.0]))
    gated = lyapunov_spectrum(gru, gru.initial_state(1), 5, warmup=0)
    assert gated.zero_reason == ("underflow",)


def test_small_exponents_are_not_zeros() -> None:
    """A step that shrinks all alike by 1e-300, whose square no float holds, has ln 1e-300."""
    start = torch.zeros(3, dtype=torch.float64)
    for count in (1, 3):
        spectrum = lyapunov_spectrum(lambda _, s: 1e-300 * s, start, 20, count=count, warmup=0)
        expected = torch.full((count,), math.log(1e-300), dtype=torch.float64)
        assert torch.allclose(spectrum.exponents, expected, rtol=1e-12)


# the dimension


@pytest.mark.parametrize(
    ("exponents", "size", "dimension"),
    [
        ([0.906, 0.0, -14.572], 3, 2 + 0.906 / 14.572),  # Lorenz
        ([-0.1, -0.2], 2, 0.0),
        ([0.3, -math.inf], 2, 1.0),
        ([0.3, -0.1], 2, 2.0),  # no volume shrinks: the whole space
        ([0.3, -0.1], 5, None),  # the sum is still positive: more exponents are needed
        ([0.0], 3, None),
    ],
)
def test_the_dimension_is_where_the_sum_turns_negative(
    exponents: list[float], size: int, dimension: float | None
) -> None:
    """D = j + (sum of the first j) / |the next|, j the last with a sum of 0 or more."""
    assert kaplan_yorke_dimension(exponents, state_size=size) == pytest.approx(dimension)


# words


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"count": 3}, ShapeError, "a state of 2 numbers has as many exponents; got count 3"),
        ({"count": 0}, ShapeError, "got count 0"),
        ({"warmup": 30}, ShapeError, "got warmup 30 and 30 steps. Give a longer x"),
        ({"warmup": -1}, ShapeError, "got warmup -1"),
        ({"x": 0}, ShapeError, "1 or more; got 0"),
        ({"state": torch.ones(1, 2, dtype=torch.int64)}, DtypeError, "got torch.int64"),
        ({"state": (torch.ones(2), torch.ones(1, 2))}, ShapeError, r"got shapes \[\(2,\), \(1, 2"),
        ({"step": lambda _, s: s[:, :1]}, ShapeError, r"got shapes \[\(1, 1\)\] for \[\(1, 2\)\]"),
        ({"step": lambda _, s: 9 * s**3}, DivergenceError, "at step 7 it, or its Jacobian"),
    ],
)
def test_what_has_no_exponents_is_one_message(
    options: dict[str, object], error: type[RequestError], words: str
) -> None:
    """Wrong counts, shapes and types, and a trajectory that leaves the numbers, are named."""
    asked = {"step": henon, "state": torch.ones(1, 2, dtype=torch.float64), "x": 30, "warmup": 5}
    with pytest.raises(error, match=words):
        lyapunov_spectrum(**{**asked, **options})  # type: ignore[arg-type]


def test_a_cell_checks_its_input_and_state() -> None:
    """What does not fit the cell is refused before anything runs."""
    cell = LSTM(2, 3, dtype=torch.float64)
    with pytest.raises(ShapeError, match="x must be"):
        lyapunov_spectrum(cell, cell.initial_state(1), torch.zeros(9, 1, 5).double(), warmup=1)
    with pytest.raises(ShapeError, match="a torch module reads an input at every step"):
        lyapunov_spectrum(cell.to_torch(), cell.initial_state(1), 9, warmup=1)
    with pytest.raises(ShapeError, match="one tensor per part"):
        lyapunov_spectrum(cell, cell.initial_state(1)[0], 9, warmup=1)
