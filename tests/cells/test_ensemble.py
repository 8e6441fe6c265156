"""Ensembles: one cell whose batch rows run on weights of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradflow.cells import GRU, LSTM, RNN, Cell, stack_cells
from gradflow.errors import ShapeError

MAKERS: list[Callable[[], Cell]] = [
    lambda: LSTM(2, 3, dtype=torch.float64),
    lambda: GRU(2, 3, dtype=torch.float64),
    lambda: GRU(2, 3, reset="before", dtype=torch.float64),
    lambda: RNN(2, 3, dtype=torch.float64),
    lambda: RNN(2, 3, nonlinearity="relu", dtype=torch.float64),
    lambda: GRU(2, 3, bias=False, dtype=torch.float64),
    lambda: GRU(2, 3, bias=False, reset="before", dtype=torch.float64),
]
each_maker = pytest.mark.parametrize("make", MAKERS)


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """With other draws all three units of a relu RNN can be dead, and no gradient is left."""
    torch.manual_seed(0)


@each_maker
def test_row_b_is_cell_b(make: Callable[[], Cell]) -> None:
    """Each row of an ensemble's step is its own member's step, gates included."""
    cells = [make() for _ in range(4)]
    ensemble = stack_cells(cells)
    x = torch.randn(4, 2).double()
    state = tuple(torch.randn(4, 3).double() for _ in ensemble.parts)
    together = ensemble.step(x, state)
    for row, cell in enumerate(cells):
        alone = cell.step(x[row : row + 1], tuple(part[row : row + 1] for part in state))
        for name in (*cell.parts, *alone.gates, "candidate"):
            torch.testing.assert_close(together[name][row], alone[name][0], rtol=1e-13, atol=1e-15)


@each_maker
def test_gradients_stay_with_their_member(make: Callable[[], Cell]) -> None:
    """A loss on row 1 moves the weights of member 1 and of no other."""
    ensemble = stack_cells([make() for _ in range(3)])
    state = tuple(torch.randn(3, 3).double() for _ in ensemble.parts)
    ensemble.step(torch.randn(3, 2).double(), state)["h"][1].sum().backward()
    for parameter in ensemble.parameters():
        assert not torch.any(parameter.grad[[0, 2]])
    assert torch.any(ensemble.weight_hh.grad[1])


def test_a_drive_for_many_steps_has_the_time_axis_in_front() -> None:
    """drive and advance take (time, batch, ...) as single cells do."""
    cells = [LSTM(2, 3, dtype=torch.float64) for _ in range(4)]
    ensemble = stack_cells(cells)
    x = torch.randn(5, 4, 2).double()
    drive = ensemble.drive(x)
    for t in range(5):
        torch.testing.assert_close(drive[t], ensemble.drive(x[t]), rtol=1e-14, atol=1e-15)


def test_members_keep_their_own_weights() -> None:
    """Stacking copies: the members and the ensemble do not share memory."""
    cell = GRU(2, 3)
    ensemble = stack_cells([cell, cell])
    with torch.no_grad():
        ensemble.weight_hh.zero_()
    assert torch.any(cell.weight_hh)


def test_members_differ_in_their_weights_alone() -> None:
    """Another kind, width, dtype, variant or a missing bias is refused, naming both."""
    pairs: list[tuple[Cell, Cell]] = [
        (LSTM(2, 3), GRU(2, 3)),
        (LSTM(2, 3), LSTM(2, 4)),
        (LSTM(2, 3), LSTM(3, 3)),
        (LSTM(2, 3), LSTM(2, 3).double()),
        (GRU(2, 3), GRU(2, 3, reset="before")),
        (RNN(2, 3), RNN(2, 3, nonlinearity="relu")),
        (LSTM(2, 3), LSTM(2, 3, bias=False)),
    ]
    for one, other in pairs:
        with pytest.raises(ShapeError, match=r"weights alone; cell 0 is .* cell 1 is"):
            stack_cells([one, other])


def test_no_cells_are_no_ensemble() -> None:
    """The words say how many came."""
    with pytest.raises(ShapeError, match="at least one cell; got none"):
        stack_cells([])


def test_an_ensemble_is_no_torch_cell() -> None:
    """torch's cells hold one set of weights, so the members are to be converted one by one."""
    for make in (LSTM, GRU, RNN):
        with pytest.raises(ShapeError, match="convert its members one by one"):
            stack_cells([make(2, 3), make(2, 3)]).to_torch()
