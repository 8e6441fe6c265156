"""One step of an LSTM, GRU or RNN and its Jacobian at any precision, written from the formulas.

Vectors and matrices are NumPy arrays of mpmath numbers, so a formula reads as it is printed
(`*` is elementwise, `@` the matrix product) and every operation rounds at mpmath's precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.reference.textbook_gru import TextbookGRUCell

Exact = NDArray[np.object_]
"""An array of mpmath numbers."""
Elementwise = Callable[[Exact], Exact]
Stepped = tuple[Exact, Exact]
"""The joint state after a step, and its Jacobian by the joint state before it."""

_tanh: Elementwise = np.frompyfunc(mpmath.tanh, 1, 1)
_exp: Elementwise = np.frompyfunc(mpmath.exp, 1, 1)
_convert: Elementwise = np.frompyfunc(mpmath.mpf, 1, 1)


def exact(tensor: Tensor) -> Exact:
    """Take a tensor into mpmath without rounding: every float64 is a binary fraction."""
    return _convert(tensor.detach().double().numpy().astype(object))


@dataclass(frozen=True)
class Block:
    """The rows of one gate or of the candidate; torch's two biases are kept apart."""

    weight_ih: Exact
    weight_hh: Exact
    bias_ih: Exact
    bias_hh: Exact

    def driven(self, x: Exact) -> Exact:
        """Return W x + b."""
        rows: Exact = self.weight_ih @ x + self.bias_ih
        return rows

    def recurrent(self, h: Exact) -> Exact:
        """Return U h + d."""
        rows: Exact = self.weight_hh @ h + self.bias_hh
        return rows

    def total(self, x: Exact, h: Exact) -> Exact:
        """Return W x + b + U h + d."""
        rows: Exact = self.driven(x) + self.recurrent(h)
        return rows


def _sigmoid(value: Exact) -> Exact:
    gate: Exact = 1 / (1 + _exp(-value))
    return gate


def _by_rows(factor: Exact, matrix: Exact) -> Exact:
    """Return diag(factor) @ matrix."""
    product: Exact = factor[:, None] * matrix
    return product


def _diagonal(entries: Exact) -> Exact:
    matrix = np.full((len(entries), len(entries)), mpmath.mpf(0), dtype=object)
    np.fill_diagonal(matrix, entries)
    return matrix


def lstm_step(blocks: Sequence[Block], x: Exact, state: Exact) -> Stepped:
    """``c' = f * c + i * g`` and ``h' = o * tanh c'``, differentiated by the product rule."""
    h, c = np.split(state, 2)
    i, f, o = (_sigmoid(blocks[k].total(x, h)) for k in (0, 1, 3))
    g = _tanh(blocks[2].total(x, h))
    c_after = f * c + i * g
    squashed = _tanh(c_after)
    c_by_h = (
        _by_rows(g * i * (1 - i), blocks[0].weight_hh)
        + _by_rows(c * f * (1 - f), blocks[1].weight_hh)
        + _by_rows(i * (1 - g * g), blocks[2].weight_hh)
    )
    through_c = o * (1 - squashed * squashed)
    through_o = _by_rows(squashed * o * (1 - o), blocks[3].weight_hh)
    h_rows = np.hstack([_by_rows(through_c, c_by_h) + through_o, _diagonal(through_c * f)])
    c_rows = np.hstack([c_by_h, _diagonal(f)])
    return np.concatenate([o * squashed, c_after]), np.vstack([h_rows, c_rows])


def gru_step(blocks: Sequence[Block], x: Exact, h: Exact) -> Stepped:
    """Torch's GRU: ``n = tanh(W x + b + r * (U h + d))``, ``h' = z * h + (1 - z) * n``."""
    reset, _, candidate = blocks
    r = _sigmoid(reset.total(x, h))
    recurrent = candidate.recurrent(h)
    inside_by_h = _by_rows(recurrent * r * (1 - r), reset.weight_hh)
    inside_by_h = inside_by_h + _by_rows(r, candidate.weight_hh)
    return _mix(blocks, x, h, candidate.driven(x) + r * recurrent, inside_by_h)


def textbook_gru_step(blocks: Sequence[Block], x: Exact, h: Exact) -> Stepped:
    """Reset first: ``n = tanh(W x + b + U (r * h) + d)``, ``h' = z * h + (1 - z) * n``."""
    reset, _, candidate = blocks
    r = _sigmoid(reset.total(x, h))
    kept_by_h = _diagonal(r) + _by_rows(h * r * (1 - r), reset.weight_hh)
    return _mix(blocks, x, h, candidate.total(x, r * h), candidate.weight_hh @ kept_by_h)


def _mix(blocks: Sequence[Block], x: Exact, h: Exact, inside: Exact, inside_by_h: Exact) -> Stepped:
    """Mix old state and candidate ``tanh(inside)`` by the update gate: ``z * h + (1 - z) * n``."""
    z = _sigmoid(blocks[1].total(x, h))
    n = _tanh(inside)
    jacobian = (
        _diagonal(z)
        + _by_rows((h - n) * z * (1 - z), blocks[1].weight_hh)
        + _by_rows((1 - z) * (1 - n * n), inside_by_h)
    )
    return z * h + (1 - z) * n, jacobian


def tanh_rnn_step(blocks: Sequence[Block], x: Exact, h: Exact) -> Stepped:
    """``h' = tanh(W x + b + U h + d)``."""
    after = _tanh(blocks[0].total(x, h))
    return after, _by_rows(1 - after * after, blocks[0].weight_hh)


def relu_rnn_step(blocks: Sequence[Block], x: Exact, h: Exact) -> Stepped:
    """``h' = max(0, W x + b + U h + d)``, with slope 0 at 0 as in torch."""
    inside = blocks[0].total(x, h)
    alive = np.array([mpmath.mpf(int(value > 0)) for value in inside], dtype=object)
    return alive * inside, _by_rows(alive, blocks[0].weight_hh)


def exact_step(module: nn.Module) -> Callable[[Exact, Exact], Stepped]:
    """Return the step of a torch cell, its float64 weights taken exactly.

    The function takes the input and the joint state of one row and returns both the joint
    state after and the step Jacobian.
    """
    step, count = _step_of(module)
    tensors = dict(module.named_parameters())
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    cut = zip(*(tensors[name].chunk(count) for name in names), strict=True)
    blocks = [Block(*(exact(tensor) for tensor in rows)) for rows in cut]
    return lambda x, state: step(blocks, x, state)


def _step_of(module: nn.Module) -> tuple[Callable[[Sequence[Block], Exact, Exact], Stepped], int]:
    """Return the step's formula and the number of blocks of rows in the parameters."""
    if isinstance(module, nn.LSTMCell):
        return lstm_step, 4
    if isinstance(module, nn.GRUCell):
        return gru_step, 3
    if isinstance(module, TextbookGRUCell):
        return textbook_gru_step, 3
    if isinstance(module, nn.RNNCell):
        return (relu_rnn_step if module.nonlinearity == "relu" else tanh_rnn_step), 1
    raise TypeError(f"no exact formula for a {type(module).__name__}")
