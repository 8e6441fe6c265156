"""What a step is called with: each misfit is named, with both sizes."""

from __future__ import annotations

import pytest
import torch

from gradflow.cells import GRU, LSTM, RNN, Cell, ForeignCell, State
from gradflow.errors import DtypeError, RequestError, ShapeError
from tests.cells.user_modules import Plain, ThreeParts

pytestmark = pytest.mark.usefixtures("unchecked_annotations")


def state_of(cell: Cell | ForeignCell, batch: int = 4) -> State:
    """Return a zero state."""
    return tuple(part.clone() for part in cell.initial_state(batch))


CELLS = [
    LSTM(2, 3),
    GRU(2, 3),
    GRU(2, 3, reset="before"),
    RNN(2, 3),
    ForeignCell(Plain(2, 3)),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.kind)
@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (torch.ones(4, 5), ShapeError, r"x must be 2 wide, as the cell is; got 5: shape \(4, 5\)"),
        (torch.ones(2), ShapeError, r"x must have 2 axes, \(batch, input\).*\(4, 2\); got 1"),
        (torch.ones(6, 4, 2), ShapeError, r"x must have 2 axes.*got 3: shape \(6, 4, 2\)"),
        (torch.ones(3, 2), ShapeError, r"x must have as many batch rows.*4; got 3"),
        (
            torch.ones(4, 2).double(),
            DtypeError,
            r"x .*float32; got torch.float64.*x\.to\(",
        ),
        (torch.ones(4, 2).long(), DtypeError, "x must have .*float32; got torch.int64"),
        ([[1.0, 1.0]], ShapeError, "x must be a torch.Tensor; got list"),
    ],
)
def test_an_input_that_does_not_fit(
    cell: Cell | ForeignCell, x: object, error: type[RequestError], words: str
) -> None:
    """Rank, width, rows, dtype and kind of x are checked, in words that name x."""
    with pytest.raises(error, match=words):
        cell.step(x, state_of(cell))


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ((torch.ones(4, 3),), ShapeError, r"state of a lstm.*\(h, c\): 2; got 1"),
        (torch.ones(4, 3), ShapeError, r"\(h, c\): 2; got a Tensor"),
        ((torch.ones(4, 3),) * 3, ShapeError, "2; got 3"),
        ((torch.ones(4, 3), torch.ones(4, 2)), ShapeError, "c must be 3 wide.*got 2"),
        ((torch.ones(4, 2), torch.ones(4, 3)), ShapeError, "h must be 3 wide.*got 2"),
        ((torch.ones(4, 3), torch.ones(2, 3)), ShapeError, "c must have as many.*4; got 2"),
        ((torch.ones(3), torch.ones(4, 3)), ShapeError, r"h must have 2 axes, \(batch, width\)"),
        ((torch.tensor(1.0), torch.ones(4, 3)), ShapeError, "h must have 2 axes.*got 0"),
        ((torch.ones(4, 3), torch.ones(4, 3).double()), DtypeError, "c must have the cell's dtype"),
        ((torch.ones(4, 3), None), ShapeError, "c must be a torch.Tensor; got NoneType"),
    ],
)
def test_a_state_that_does_not_fit(state: object, error: type[RequestError], words: str) -> None:
    """The number of parts, and each part by its name."""
    with pytest.raises(error, match=words):
        LSTM(2, 3).step(torch.ones(4, 2), state)


def test_parts_of_different_widths_are_checked_each_by_its_own() -> None:
    """A user's state may have parts of 3, 4 and 1 columns."""
    cell = ForeignCell(ThreeParts())
    fast, slow, count = state_of(cell)
    assert cell.step(torch.ones(4, 2), (fast, slow, count))["slow"].shape == (4, 4)
    with pytest.raises(ShapeError, match="fast must be 3 wide, as the cell is; got 4"):
        cell.step(torch.ones(4, 2), (slow, fast, count))
    with pytest.raises(ShapeError, match=r"\(fast, slow, count\): 3; got 2"):
        cell.step(torch.ones(4, 2), (fast, slow))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.kind)
def test_a_batch_of_one_row_and_of_none(cell: Cell | ForeignCell) -> None:
    """One row is a batch, and so is none."""
    for batch in (1, 0):
        step = cell.step(torch.ones(batch, 2), state_of(cell, batch))
        assert step["h"].shape == (batch, 3)


def test_the_call_form_checks_too() -> None:
    """cell(x, h) gives the same words as step."""
    with pytest.raises(ShapeError, match="h must be 3 wide"):
        GRU(2, 3)(torch.ones(4, 2), torch.ones(4, 5))
    with pytest.raises(ShapeError, match="x must be 2 wide"):
        ForeignCell(Plain(2, 3))(torch.ones(4, 3), torch.ones(4, 3))
