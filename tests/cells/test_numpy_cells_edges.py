"""The NumPy cells at the ends of the number line, in single precision, and given what is wrong."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradflow.cells import numpy_cells
from gradflow.cells.numpy_cells import NumpyGRU, NumpyLSTM, NumpyRNN, sigmoid
from gradflow.errors import ShapeError, UnknownNameError
from tests.cases import Setup, each_kind, random_subject
from tests.cells.numpy_twins import MAKERS, numpy_twin, pull_back, start_of
from tests.cells.unrolled_autograd import random_loss

SMALL = Setup(input_size=2, hidden_size=3, batch=2, steps=4, seed=1)

# edges


def test_sigmoid_holds_at_both_ends_of_float64() -> None:
    """No overflow at +-1e308 or infinity, and the left tail keeps its relative accuracy."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        ends = sigmoid(np.array([-np.inf, -1e308, 1e308, np.inf]))
        tail = sigmoid(np.array([-700.0, -40.0]))
    np.testing.assert_array_equal(ends, [0, 0, 1, 1])
    np.testing.assert_allclose(tail, np.exp([-700.0, -40.0]), rtol=1e-15)
    assert np.isnan(sigmoid(np.array(np.nan)))


@given(st.floats(-1e308, 1e308))
def test_sigmoid_is_symmetric_and_equals_torch(value: float) -> None:
    """sigmoid(v) + sigmoid(-v) = 1, and torch's own sigmoid agrees to one rounding."""
    both = sigmoid(np.array([value, -value]))
    assert both.sum() == pytest.approx(1, abs=3e-16)
    expected = torch.sigmoid(torch.tensor(value, dtype=torch.float64)).item()
    assert both[0] == pytest.approx(expected, rel=1e-13, abs=1e-300)


@each_kind
def test_gates_that_are_shut_hard_give_finite_gradients(kind: str) -> None:
    """At biases of -1e300 and 1e300 gates are exactly 0 and 1 and no gradient is NaN."""
    subject = random_subject(kind, SMALL)
    for bias in (-1e300, 1e300):
        cell = numpy_twin(kind, subject)
        assert cell.bias_ih is not None
        cell.bias_ih[:] = bias if kind != "rnn-relu" else -abs(bias)
        found = pull_back(cell, subject, random_loss(subject))
        assert all(np.isfinite(gradient).all() for gradient in found.parameters.values())


@each_kind
def test_single_precision_stays_single(kind: str) -> None:
    """A float32 cell computes states and gradients in float32, near those of float64."""
    subject = random_subject(kind, Setup(dtype=torch.float32))
    single = numpy_twin(kind, subject)
    trace = single.forward(subject.inputs.numpy(), start_of(subject))
    gradients = single.backward(trace, np.ones_like(trace.hidden))
    double = MAKERS[kind]({k: v.astype(np.float64) for k, v in single.parameters.items()})
    twin = double.forward(subject.inputs.numpy(), start_of(subject))
    expected = double.backward(twin, np.ones_like(twin.hidden))
    for name, gradient in gradients.parameters.items():
        assert gradient.dtype == np.float32
        np.testing.assert_allclose(gradient, expected.parameters[name], atol=2e-5)


def test_a_cell_owns_its_numbers() -> None:
    """Changing the arrays that a cell was built from does not change the cell."""
    weight_ih, weight_hh = np.ones((3, 2), int), np.ones((3, 3))
    cell = NumpyRNN(weight_ih, weight_hh)
    weight_ih[:], weight_hh[:] = 7, 7
    assert cell.weight_ih.dtype == np.float64
    assert cell.weight_ih.max() == cell.weight_hh.max() == 1


def test_nothing_but_numpy_is_needed() -> None:
    """The NumPy cells import the standard library, numpy, gradflow.errors and one another."""
    allowed = {"__future__", "collections", "dataclasses", "typing", "numpy"}
    folder = Path(numpy_cells.__file__).parent
    found = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
    ours = {name for name in found if name.startswith("gradflow.")}
    assert ours, "no import was read"
    assert all(
        name == "gradflow.errors" or name.startswith("gradflow.cells.numpy_cells") for name in ours
    )
    assert {name.split(".")[0] for name in found - ours} <= allowed


# words


def test_what_does_not_fit_is_refused_in_words() -> None:
    """A wrong shape or name says which argument, what was needed and what came."""
    cell = NumpyLSTM.random(2, 3)
    trace = cell.forward(np.zeros((4, 1, 2)))
    with pytest.raises(ShapeError, match=r"inputs must be \(time, batch, input\).*\(4, 2\)"):
        cell.forward(np.zeros((4, 2)))
    with pytest.raises(ShapeError, match=r"state must be a tuple of 2 part"):
        cell.forward(np.zeros((4, 1, 2)), (np.zeros((1, 3)),))
    with pytest.raises(ShapeError, match=r"hidden_gradient must be .*\(4, 1, 3\)"):
        cell.backward(trace, np.zeros((4, 3)))
    with pytest.raises(ShapeError, match=r"weight_hh must be \(4 \* hidden, hidden\)"):
        NumpyLSTM(np.zeros((12, 2)), np.zeros((9, 3)))
    with pytest.raises(ShapeError, match=r"bias_hh must be"):
        NumpyRNN(np.zeros((3, 2)), np.zeros((3, 3)), bias_hh=np.zeros(4))
    with pytest.raises(UnknownNameError, match="Did you mean 'forget'"):
        cell.backward(trace, cut=["forgett"])
    with pytest.raises(UnknownNameError, match="Did you mean 'before'"):
        NumpyGRU.random(2, 3, reset="befor")
    with pytest.raises(UnknownNameError, match="weight_ih_l0"):
        NumpyLSTM.from_parameters(cell.parameters, suffix="_l0")
    with pytest.raises(UnknownNameError, match="Did you mean 'forget'"):
        trace.gate("forge")
