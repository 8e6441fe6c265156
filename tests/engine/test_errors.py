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


@pytest.mark.parametrize("at", [[True], [1.5], ["one"], torch.tensor([1j]), [float("nan")]])
def test_what_counts_no_steps_is_refused(at: Any) -> None:
    """True is no step 1, and 1.5 is none either."""
    assert "from 1 to 6" in _refusal(ShapeError, at=at)


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
        (None, 9, {}, SubjectError, ["step(x, state)", "got NoneType"]),
        (torch.nn.LSTM(3, 4), X, {}, SubjectError, ["whole layer LSTM", "from_torch"]),
        (CELL, None, {}, ShapeError, ["whole number", "got None"]),
        (CELL, True, {}, ShapeError, ["whole number", "got True"]),
        (CELL, X.numpy(), {}, ShapeError, ["torch.Tensor", "a ndarray"]),
        (CELL, X.to_sparse(), {}, ShapeError, ["layout torch.sparse_coo"]),
        (CELL, 9, {"count": 1.5}, ShapeError, ["8 numbers", "count 1.5"]),
        (CELL, 9, {"count": True}, ShapeError, ["8 numbers", "count True"]),
        (CELL, 9, {"blocks": 0}, ShapeError, ["blocks of steps", "got blocks 0"]),
        (CELL, 9, {"blocks": None}, ShapeError, ["blocks of steps", "got blocks None"]),
        (CELL, 9, {"warmup": True}, ShapeError, ["warmup True and 9 steps"]),
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


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        (torch.zeros(0), ShapeError, ["at least one number", "[(0,)]"]),
        (torch.zeros(0, 2), ShapeError, ["batch rows, one or more", "[(0, 2)]"]),
        ((torch.zeros(1, 2), torch.zeros(3, 2)), ShapeError, ["same batch rows", "(3, 2)"]),
        (torch.zeros(1, 1, 2), ShapeError, ["(batch, width)", "[(1, 1, 2)]"]),
        ((), ShapeError, ["(batch, width)", "[]"]),
        (torch.zeros(2, dtype=torch.long), DtypeError, ["floating-point", "torch.int64"]),
    ],
)
def test_a_state_that_no_function_can_step_is_refused(
    state: Any, error: type[GradflowError], words: list[str]
) -> None:
    """A state without numbers or rows has no exponents."""
    measure = inspect.unwrap(lyapunov_spectrum)
    with pytest.raises(error) as caught:
        measure(lambda _, given: given, state, 9, None, 1)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (None, DtypeError, ["like the one it was given", "got NoneType"]),
        (1.0, DtypeError, ["got float"]),
        ("s", DtypeError, ["got str"]),
        (torch.zeros(2, dtype=torch.long), DtypeError, ["got torch.int64"]),
        (torch.zeros(3), ShapeError, ["[(3,)] for [(2,)]"]),
    ],
)
def test_a_function_that_returns_no_state_is_named(
    returned: Any, error: type[GradflowError], words: list[str]
) -> None:
    """What it returned stands in the message; numbers that are whole have no derivative."""
    measure = inspect.unwrap(lyapunov_spectrum)
    with pytest.raises(error) as caught:
        measure(lambda *_: returned, torch.zeros(2), 9, None, 1)
    for word in words:
        assert word in str(caught.value)


def test_an_input_without_steps_is_refused_in_either_form() -> None:
    """A single number is no series, whether the state has a batch axis or not."""
    measure = inspect.unwrap(lyapunov_spectrum)
    for state in (torch.zeros(2), torch.zeros(1, 2)):
        with pytest.raises(ShapeError, match=r"first axis; got shape \(\)"):
            measure(lambda _, given: given, state, torch.tensor(3.0), None, 0)


@pytest.mark.parametrize("measurement", [jacobian_norms, path_norms])
def test_an_empty_name_is_no_default(measurement: Any) -> None:
    """Only None asks for the kept state's own block."""
    for block in ("", (), 0):
        assert "a block is 'joint'" in _refusal(UnknownNameError, measurement, block=block)
    listed = inspect.unwrap(measurement)(CELL, X, CELL.initial_state(2), block=["h", "c"])
    assert listed.block == ("h", "c")


def test_what_names_no_gate_is_refused() -> None:
    """`cut` is a collection of names, or one name."""
    assert "'cut' names gates" in _refusal(UnknownNameError, path_norms, cut=5)
    assert "no gate 5" in _refusal(UnknownNameError, path_norms, cut=[5])


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
