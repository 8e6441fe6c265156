"""The subjects that tests share: small cells with weights, inputs and states worth testing on.

Everything here is plain torch: random cells that no symmetry flatters, cells whose gates are
held by their weights, and what "the same log norm" means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.reference.subject import State, Subject
from tests.reference.textbook_gru import TextbookGRUCell

SUBJECT_KINDS = ("lstm", "gru", "gru-before", "rnn", "rnn-relu")
each_kind = pytest.mark.parametrize("kind", SUBJECT_KINDS)
"""Run a test once for every kind of cell; the test takes an argument `kind`."""


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Return standard normal float64 numbers of this shape, the same ones for one seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@dataclass(frozen=True)
class Setup:
    """Sizes, seed, start ("random" or "zero") and dtype of a subject."""

    input_size: int = 3
    hidden_size: int = 5
    batch: int = 3
    steps: int = 6
    seed: int = 0
    start: str = "random"
    dtype: torch.dtype = torch.float64

    def generator(self) -> torch.Generator:
        """Return a fresh generator of the set-up's seed."""
        return torch.Generator().manual_seed(self.seed)


DEFAULT = Setup()


def random_subject(kind: str, setup: Setup = DEFAULT, *, weight_scale: float = 1.0) -> Subject:
    """Return a cell with random weights, two different non-zero biases, inputs and states.

    Weights are normal with deviation ``weight_scale / sqrt(hidden)``, biases with deviation
    1/2 (those of a relu RNN are positive, or its units die and its Jacobian is zero). Below a
    scale of about 1 the states forget (leading exponent negative), so that two computations of
    one trajectory stay together over thousands of steps.
    """
    generator = setup.generator()
    module = empty_cell(kind, setup)
    deviation = weight_scale / math.sqrt(setup.hidden_size)
    for name, tensor in module.named_parameters():
        spread = deviation if name.startswith("weight") else 0.5
        drawn = spread * _normal(setup, generator, *tensor.shape)
        if kind == "rnn-relu" and name.startswith("bias"):
            drawn = drawn.abs() + 0.5
        _fill(tensor, drawn)
    return _start(module, setup, generator)


def held_lstm(
    forget: float,
    setup: Setup = DEFAULT,
    *,
    input_gate: float | None = None,
    output_gate: float = 0.5,
    candidate_gain: float = 0.0,
) -> Subject:
    """Return an LSTM whose gates are constant; the input gate is 1 - forget when not given.

    A gate's bias is the logit of its value, all other weights are zero, but for the candidate's
    recurrent matrix: an orthogonal one times the gain.
    """
    write = 1 - forget if input_gate is None else input_gate
    biases = [logit(write), logit(forget), 0.0, logit(output_gate)]
    return _held("lstm", setup, biases=biases, gain=candidate_gain)


def held_gru(
    update: float,
    setup: Setup = DEFAULT,
    *,
    reset: float = 0.5,
    place: str = "after",
    candidate_gain: float = 0.0,
) -> Subject:
    """Return a GRU whose gates are constant, with the reset gate before or after the product."""
    kind = {"after": "gru", "before": "gru-before"}[place]
    return _held(kind, setup, biases=[logit(reset), logit(update), 0.0], gain=candidate_gain)


def gain_rnn(gain: float, setup: Setup = DEFAULT, *, nonlinearity: str = "tanh") -> Subject:
    """Return an RNN with W = gain times an orthogonal matrix and all else zero."""
    kind = {"tanh": "rnn", "relu": "rnn-relu"}[nonlinearity]
    return _held(kind, setup, biases=[0.0], gain=gain)


def candidate_recurrent(subject: Subject) -> NDArray[np.float64]:
    """Return U, the candidate's rows of weight_hh (an RNN is all candidate)."""
    matrix = subject.weights["weight_hh"]
    size = subject.hidden_size
    first = candidate_row(matrix.shape[0] // size) * size
    rows: NDArray[np.float64] = matrix[first : first + size].double().numpy()
    return rows


def candidate_row(blocks: int) -> int:
    """Return which block of rows is the candidate: torch has i, f, g, o and r, z, n."""
    return {4: 2, 3: 2, 1: 0}[blocks]


def orthogonal(size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return a random orthogonal matrix, by QR of a Gaussian one with R's signs taken out."""
    gaussian = torch.randn(size, size, generator=generator, dtype=torch.float64)
    factor, triangle = torch.linalg.qr(gaussian)
    signed: Tensor = factor * triangle.diagonal().sign()
    return signed.to(dtype)


def logit(value: float) -> float:
    """Return ln(v / (1 - v)), the bias that holds a sigmoid gate at v."""
    return math.log(value / (1 - value))


def assert_same_log_norm(found: object, expected: object, *, tolerance: float = 1e-12) -> None:
    """Assert |difference| <= tolerance * max(1, |ln norm|), and that zeros (-inf) coincide.

    The default is for up to about 1000 steps: the rounding of a float64 product grows with
    them, so longer runs take 1e-11.
    """
    one, other = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert one.shape == other.shape, f"shapes differ: {one.shape} and {other.shape}"
    zero = np.isneginf(other)
    np.testing.assert_array_equal(np.isneginf(one), zero)
    off = np.abs(one[~zero] - other[~zero]) / np.maximum(1.0, np.abs(other[~zero]))
    worst = float(off.max(initial=0.0))
    assert worst <= tolerance, f"log norms differ by {worst:.3g} of max(1, |ln norm|)"


def empty_cell(kind: str, setup: Setup = DEFAULT) -> nn.Module:
    """Return the torch cell of a kind, its weights still whatever torch drew."""
    sizes = (setup.input_size, setup.hidden_size)
    if kind == "lstm":
        return nn.LSTMCell(*sizes, dtype=setup.dtype)
    if kind == "gru":
        return nn.GRUCell(*sizes, dtype=setup.dtype)
    if kind == "gru-before":
        return TextbookGRUCell(*sizes, dtype=setup.dtype)
    nonlinearity = {"rnn": "tanh", "rnn-relu": "relu"}[kind]
    return nn.RNNCell(*sizes, nonlinearity=nonlinearity, dtype=setup.dtype)


def _held(kind: str, setup: Setup, *, biases: list[float], gain: float) -> Subject:
    """Zero a cell, set one bias per block of rows in bias_ih, and give the candidate its matrix."""
    generator = setup.generator()
    module = empty_cell(kind, setup)
    weights = dict(module.named_parameters())
    size = setup.hidden_size
    for tensor in weights.values():
        _fill(tensor, torch.zeros_like(tensor))
    _fill(weights["bias_ih"], torch.tensor(biases, dtype=setup.dtype).repeat_interleave(size))
    first = candidate_row(len(biases)) * size
    matrix = gain * orthogonal(size, generator, setup.dtype)
    _fill(weights["weight_hh"][first : first + size], matrix)
    return _start(module, setup, generator)


def _fill(tensor: Tensor, values: Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(values)


def _normal(setup: Setup, generator: torch.Generator, *shape: int) -> Tensor:
    """Draw in float64 whatever the dtype, so that one seed is one subject in every precision."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(setup.dtype)


def _start(module: nn.Module, setup: Setup, generator: torch.Generator) -> Subject:
    """Draw the inputs and the first state."""
    inputs = _normal(setup, generator, setup.steps, setup.batch, setup.input_size)
    parts = 2 if isinstance(module, nn.LSTMCell) else 1
    scale = 0.0 if setup.start == "zero" else 1.0
    state: State = tuple(
        scale * _normal(setup, generator, setup.batch, setup.hidden_size) for _ in range(parts)
    )
    return Subject(module, inputs, state)
