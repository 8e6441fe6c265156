"""The NumPy cells: values and hand-written derivatives against closed forms, torch, differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from gradflow.cells.numpy_cells import NumpyGRU, NumpyLSTM, NumpyRNN
from tests.cases import Setup, each_kind, held_gru, held_lstm, random_subject
from tests.cells.numpy_twins import MAKERS, numpy_twin, pull_back, start_of
from tests.cells.unrolled_autograd import Loss, autograd_gradients, random_loss

# Both sides round in float64; sums of some 100 terms of order 1 agree to about 1e-14.
AGREEMENT = 1e-12
SMALL = Setup(input_size=2, hidden_size=3, batch=2, steps=4, seed=1)

# closed form


def test_a_held_lstm_returns_the_product_of_its_forget_gate() -> None:
    """With constant gates and a dead candidate, dL/dc_0 is f^T times dL/dc_T."""
    subject = held_lstm(0.9, Setup(steps=30))
    cell = numpy_twin("lstm", subject)
    ones = np.ones((subject.batch, subject.hidden_size))
    gradients = pull_back(cell, subject, Loss(np.zeros((30, *ones.shape)), (0 * ones, ones)))
    np.testing.assert_allclose(gradients.initial_state[1], 0.9**30, rtol=1e-13)
    np.testing.assert_array_equal(gradients.initial_state[0], 0)


def test_a_held_gru_returns_the_product_of_its_update_gate() -> None:
    """With constant gates and a dead candidate, dL/dh_0 is z^T times dL/dh_T."""
    for place in ("after", "before"):
        subject = held_gru(0.8, Setup(steps=30), place=place)
        cell = numpy_twin({"after": "gru", "before": "gru-before"}[place], subject)
        ones = np.ones((subject.batch, subject.hidden_size))
        gradients = pull_back(cell, subject, Loss(np.zeros((30, *ones.shape)), (ones,)))
        np.testing.assert_allclose(gradients.initial_state[0], 0.8**30, rtol=1e-13)


def test_a_scalar_tanh_rnn_returns_the_chain_rule() -> None:
    """For one unit, dh_T/dh_0 is the product over t of u (1 - h_t^2)."""
    cell = NumpyRNN([[0.3]], [[1.2]])
    trace = cell.forward(np.ones((7, 1, 1)))
    gradients = cell.backward(trace, final_gradient=(np.ones((1, 1)),))
    expected = np.prod(1.2 * (1 - trace.hidden**2))
    assert gradients.initial_state[0].item() == pytest.approx(expected, rel=1e-14)


def test_with_every_gate_cut_the_direct_path_remains() -> None:
    """With all four ways into h_{t-1} closed, dc_T/dc_0 is the product of realised forget gates."""
    subject = random_subject("lstm")
    cell = numpy_twin("lstm", subject)
    trace = cell.forward(subject.inputs.numpy(), start_of(subject))
    ones = np.ones((subject.batch, subject.hidden_size))
    gradients = cell.backward(trace, final_gradient=(0 * ones, ones), cut=cell.gate_order)
    expected = trace.gate("forget").prod(axis=0)
    np.testing.assert_allclose(gradients.initial_state[1], expected, rtol=1e-13)


@each_kind
def test_the_ways_back_of_one_step_add_up(kind: str) -> None:
    """Over one step, what each gate alone tells h_{t-1} sums to the whole less the direct path."""
    subject = random_subject(kind, Setup(steps=1))
    cell, loss = numpy_twin(kind, subject), random_loss(subject)
    trace = cell.forward(subject.inputs.numpy(), start_of(subject))

    def to_hidden(cut: set[str]) -> NDArray[np.floating]:
        return cell.backward(trace, loss.own, cut=cut).initial_state[0]

    gates = set(cell.gate_order)
    direct = to_hidden(gates)
    shares = sum(to_hidden(gates - {gate}) - direct for gate in gates)
    np.testing.assert_allclose(shares, to_hidden(set()) - direct, atol=AGREEMENT)


# reference


@each_kind
def test_states_equal_the_torch_cell(kind: str) -> None:
    """The NumPy recurrence and torch's cell reach the same states from the same weights."""
    subject = random_subject(kind)
    trace = numpy_twin(kind, subject).forward(subject.inputs.numpy(), start_of(subject))
    expected = autograd_gradients(subject, random_loss(subject))
    np.testing.assert_allclose(trace.hidden, expected.hidden, atol=AGREEMENT)


@each_kind
@pytest.mark.parametrize("steps", [1, 40])
def test_every_gradient_equals_autograd(kind: str, steps: int) -> None:
    """Parameters, inputs, first state and every dL/dh_t and dL/dc_t agree with torch.autograd."""
    subject = random_subject(kind, Setup(steps=steps))
    loss = random_loss(subject)
    found = pull_back(numpy_twin(kind, subject), subject, loss)
    expected = autograd_gradients(subject, loss)
    assert set(found.parameters) == set(expected.parameters)
    for name, gradient in expected.parameters.items():
        np.testing.assert_allclose(found.parameters[name], gradient, atol=AGREEMENT * steps)
    np.testing.assert_allclose(found.inputs, expected.inputs, atol=AGREEMENT)
    for part, name in enumerate(subject.parts):
        np.testing.assert_allclose(found.states[name], expected.states[name], atol=AGREEMENT)
        start = expected.initial_state[part]
        np.testing.assert_allclose(found.initial_state[part], start, atol=AGREEMENT)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_gradients_equal_the_fused_layer(kind: str, bias: bool) -> None:
    """Trained layers of torch, with biases or without, give the same parameters' gradients."""
    torch.manual_seed(3)
    layer_class = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind]
    layer = layer_class(4, 6, bias=bias, dtype=torch.float64)
    inputs = torch.randn(9, 3, 4, dtype=torch.float64)
    (layer(inputs)[0] ** 2).sum().backward()
    makers = {"lstm": NumpyLSTM, "gru": NumpyGRU, "rnn": NumpyRNN}
    cell = makers[kind].from_parameters(layer.state_dict(), suffix="_l0")
    trace = cell.forward(inputs.numpy())
    gradients = cell.backward(trace, 2 * trace.hidden)
    assert len(gradients.parameters) == (4 if bias else 2)
    for name, parameter in layer.named_parameters():
        found = gradients.parameters[name.removesuffix("_l0")]
        np.testing.assert_allclose(found, parameter.grad, atol=1e-11)


@each_kind
def test_every_gradient_equals_a_central_difference(kind: str) -> None:
    """Nudging any one number of the weights, inputs or first state moves the loss as predicted."""
    subject = random_subject(kind, SMALL)
    cell, loss = numpy_twin(kind, subject), random_loss(subject)
    inputs, start = subject.inputs.numpy().copy(), tuple(part.copy() for part in start_of(subject))
    found = pull_back(cell, subject, loss)

    def value() -> float:
        trace = cell.forward(inputs, start)
        ends = zip(loss.final, trace.final_state, strict=True)
        return float((loss.own * trace.hidden).sum() + sum((a * b).sum() for a, b in ends))

    pairs = [(cell.parameters[name], gradient) for name, gradient in found.parameters.items()]
    pairs += [(inputs, found.inputs), *zip(start, found.initial_state, strict=True)]
    for array, gradient in pairs:
        # A step of 1e-5 leaves an error of about 1e-10 (its square) and as much of rounding.
        np.testing.assert_allclose(gradient, difference(array, value, 1e-5), atol=2e-8)


def difference(
    array: NDArray[np.floating], value: Callable[[], float], step: float
) -> NDArray[np.float64]:
    """Return the central difference of `value` by every entry of `array`, which it nudges."""
    slopes = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        kept = array[index]
        array[index] = kept + step
        above = value()
        array[index] = kept - step
        slopes[index] = (above - value()) / (2 * step)
        array[index] = kept
    return slopes


@each_kind
def test_deltas_are_the_gradients_of_the_pre_activations(kind: str) -> None:
    """Where weight_ih is the identity, x_t is the pre-activation, so its gradient is delta_t."""
    subject = random_subject(kind, SMALL)
    weights = {name: tensor.numpy() for name, tensor in subject.weights.items()}
    rows = weights["weight_ih"].shape[0]
    cell = MAKERS[kind](weights | {"weight_ih": np.eye(rows)})
    inputs = np.random.default_rng(2).normal(size=(4, 2, rows))
    trace = cell.forward(inputs)
    gradients = cell.backward(trace, np.ones_like(trace.hidden))
    joined = np.concatenate([gradients.deltas[gate] for gate in cell.gate_order], axis=2)
    np.testing.assert_array_equal(joined, gradients.inputs)
