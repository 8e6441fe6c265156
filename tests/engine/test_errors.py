"""Wrong requests to the engine: each message names what is wrong, what came and the way out."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from gradflow.cells import GRU, LSTM, RNN, Cell
from gradflow.engine import jacobian_norms, path_norms
from gradflow.engine.lyapunov import lyapunov_spectrum
from gradflow.errors import (
    DtypeError,
    GradflowError,
    ShapeError,
    SubjectError,
    UnknownNameError,
)

CELL = LSTM(3, 4, dtype=torch.float64)
X = torch.zeros(6, 2, 3, dtype=torch.float64)


def _refusal(error: type[GradflowError], measurement: Any = jacobian_norms, **changes: Any) -> str:
    given = {"cell": CELL, "x": X, "state": CELL.initial_state(2), **changes}
    # without the tests' own type checks, which would refuse an unknown name before we can
    measure = inspect.unwrap(measurement)
    with pytest.raises(error) as caught:
        measure(given.pop("cell"), given.pop("x"), given.pop("state"), **given)
    message = str(caught.value)
    assert len(message.splitlines()) <= 3
    return message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"norm": "spectrl"}, ["no norm 'spectrl'", "Did you mean 'spectral'?", "frobenius"]),
        ({"norm": "nuclear"}, ["no norm 'nuclear'", "Known: frobenius, spectral"]),
        ({"method": "dens"}, ["no method 'dens'", "Did you mean 'dense'?", "diagonal"]),
        ({"block": ("c", "d")}, ["no part 'd'", "Known: c, h, joint"]),
        ({"block": ("z", "c")}, ["no part 'z'"]),
        ({"block": ("c", "c"), "cell": RNN(3, 4, dtype=torch.float64)}, ["no part 'c'", "h"]),
        ({"method": "diagonal"}, ["recurrent weights are all zero", "'dense' or 'auto'"]),
    ],
)
def test_a_name_that_does_not_exist_is_named(changes: dict[str, Any], words: list[str]) -> None:
    """The nearest known name is offered, and all of them are listed."""
    if isinstance(changes.get("cell"), RNN):
        changes = {**changes, "state": changes["cell"].initial_state(2)}
    message = _refusal(UnknownNameError, **changes)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((6, 3), ["(time, batch, input)", "(6, 3)"]),
        ((0, 2, 3), ["at least one step", "(0, 2, 3)"]),
        ((6, 1, 3), ["(time, 2, 3)", "as many rows as the state", "(6, 1, 3)"]),
        ((6, 2, 5), ["(time, 2, 3)", "wide as the cell's input", "(6, 2, 5)"]),
    ],
)
def test_an_input_that_does_not_fit_shows_both_sides(
    shape: tuple[int, ...], words: list[str]
) -> None:
    """Rank, length, rows and width of x are checked before the first step."""
    message = " ".join(_refusal(ShapeError, x=torch.zeros(shape, dtype=torch.float64)).split())
    for word in words:
        assert word in message


@pytest.mark.parametrize("at", [[], [0], [-1, 2], [7], [1, 6, 70]])
def test_steps_outside_the_run_are_refused(at: list[int]) -> None:
    """Steps count from 1 to the length of x; none at all is no request."""
    message = _refusal(ShapeError, at=at)
    assert "from 1 to 6" in message
    assert str(sorted(at)) in message


def test_a_dtype_that_is_not_the_cells_is_refused() -> None:
    """x and state must have the cell's dtype: nothing is converted behind one's back."""
    assert "float64" in _refusal(DtypeError, x=X.float())
    single = tuple(part.float() for part in CELL.initial_state(2))
    message = _refusal(DtypeError, state=single)
    assert "h must have the cell's dtype torch.float64; got torch.float32" in message


def test_a_state_that_does_not_fit_is_refused() -> None:
    """The number of parts, their width and their rows are checked by name."""
    h, c = CELL.initial_state(2)
    assert "(h, c): 2; got 1" in _refusal(ShapeError, state=(h,))
    assert "c must be 4 wide" in _refusal(ShapeError, state=(h, c[:, :2]))
    assert "c must have as many batch rows" in _refusal(ShapeError, state=(h, c[:1]))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"cell": torch.nn.LSTMCell(3, 4)}, SubjectError, ["LSTMCell", "gradflow.from_torch"]),
        ({"cell": torch.nn.LSTM(3, 4)}, SubjectError, ["torch module LSTM.", "ForeignCell"]),
        ({"cell": None}, SubjectError, ["measured of a cell", "a NoneType"]),
        ({"x": None}, ShapeError, ["torch.Tensor", "NoneType"]),
        ({"x": X.numpy()}, ShapeError, ["ndarray", "torch.as_tensor"]),
        ({"x": X.to_sparse()}, DtypeError, ["plain tensor", "x.to_dense()"]),
        ({"x": X.to("meta")}, DtypeError, ["on cpu", "got meta", "x.to('cpu')"]),
        ({"x": X[:, :0], "state": CELL.initial_state(0)}, ShapeError, ["one batch row", "(0, 4)"]),
        ({"state": None}, ShapeError, ["(h, c)", "NoneType"]),
        ({"state": CELL.initial_state(2)[0]}, ShapeError, ["(h, c)", "a Tensor"]),
        ({"method": None}, UnknownNameError, ["no method None", "auto"]),
        ({"norm": 2}, UnknownNameError, ["no norm 2", "spectral"]),
    ],
)
@pytest.mark.parametrize("measurement", [jacobian_norms, path_norms])
def test_what_is_no_cell_input_or_state_is_named(
    measurement: Any, changes: dict[str, Any], error: type[GradflowError], words: list[str]
) -> None:
    """No attribute error of torch's or ours reaches the person who passed the wrong thing."""
    if measurement is path_norms and "method" in changes:
        changes = {"norm": "euclid"}
        words = ["no norm 'euclid'", "spectral"]
    message = _refusal(error, measurement, **changes)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("step", "x", "options", "error", "words"),
    [
        (None, 9, {}, SubjectError, ["step(x, state)", "a NoneType"]),
        (torch.nn.LSTM(3, 4), X, {}, SubjectError, ["whole layer LSTM", "from_torch"]),
        (CELL, None, {}, ShapeError, ["whole number", "got None"]),
        (CELL, True, {}, ShapeError, ["whole number", "got True"]),
        (CELL, X.numpy(), {}, ShapeError, ["torch.Tensor", "a ndarray"]),
        (CELL, X.to_sparse(), {}, ShapeError, ["layout torch.sparse_coo"]),
        (CELL, 9, {"count": 1.5}, ShapeError, ["8 numbers", "count 1.5"]),
        (CELL, 9, {"warmup": None}, ShapeError, ["warmup None and 9 steps"]),
        (CELL, 9, {"warmup": 9}, ShapeError, ["warmup 9 and 9 steps"]),
    ],
)
def test_a_spectrum_of_something_else_is_refused(
    step: Any, x: Any, options: dict[str, Any], error: type[GradflowError], words: list[str]
) -> None:
    """What steps, what is fed and how much of it: each with what came."""
    measure = inspect.unwrap(lyapunov_spectrum)
    with pytest.raises(error) as caught:
        measure(step, CELL.initial_state(2), x, **{"warmup": 1, **options})
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("form", [LSTM, GRU, RNN])
def test_a_step_is_linearized_where_gradients_are_recorded(form: type[Cell]) -> None:
    """In a training script, outside of no_grad, the step Jacobians are the same numbers."""
    cell = form(3, 4, dtype=torch.float64)
    states = tuple(torch.ones(6, 2, size, dtype=torch.float64) for size in cell.part_sizes)
    with torch.no_grad():
        quiet = cell.linearize(cell.drive(X), states)
    recording = cell.linearize(cell.drive(X.clone().requires_grad_()), states)
    assert torch.equal(recording.dense(2), quiet.dense(2))
    assert torch.equal(recording.factors(0, 6).matrix, quiet.factors(0, 6).matrix)
    assert not recording.dense(2).requires_grad
