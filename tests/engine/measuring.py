"""The shared test subjects, measured by the engine."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, RNN, Cell
from gradflow.engine import JacobianNorms, jacobian_norms
from tests import cases
from tests.reference.subject import Subject
from tests.reference.textbook_gru import TextbookGRUCell

PARTS = {"lstm": ("h", "c"), "gru": ("h",), "gru-before": ("h",), "rnn": ("h",), "rnn-relu": ("h",)}
EVERY_BLOCK = [
    (kind, block)
    for kind, parts in PARTS.items()
    for block in ["joint", *((row, column) for row in parts for column in parts)]
]


def cell_of(module: nn.Module) -> Cell:
    """Return the cell under test that has this torch module's weights."""
    if isinstance(module, nn.LSTMCell):
        return LSTM.from_torch(module)
    if isinstance(module, nn.GRUCell):
        return GRU.from_torch(module)
    if isinstance(module, nn.RNNCell):
        return RNN.from_torch(module)
    assert isinstance(module, TextbookGRUCell)
    sizes = (module.input_size, module.hidden_size)
    cell = GRU(*sizes, reset="before", dtype=module.weight_hh.dtype)
    cell.load_state_dict(module.state_dict())
    return cell


def measure(subject: Subject, **options: Any) -> JacobianNorms:
    """Return the engine's norms of a subject."""
    return jacobian_norms(cell_of(subject.module), subject.inputs, subject.state, **options)


def silent(subject: Subject, steps: int) -> Subject:
    """Return the subject under zero input that costs no memory, for long runs."""
    zeros = torch.zeros_like(subject.inputs[:1]).expand(steps, -1, -1)
    return Subject(subject.module, zeros, subject.state)


def relu_at_rest(gain: float, *, dtype: torch.dtype = torch.float64) -> Subject:
    """Return a relu RNN whose Jacobian is `gain` times I at every step, whatever the gain.

    W = gain I and b = 1 - gain keep h at 1 for ever (exactly, for a gain that is a small whole
    number or a power of two): the state neither grows nor dies, and every unit stays open.
    """
    setup = cases.Setup(hidden_size=2, batch=1, dtype=dtype)
    subject = cases.gain_rnn(1.0, setup, nonlinearity="relu")
    weights = dict(subject.module.named_parameters())
    with torch.no_grad():
        weights["weight_hh"].copy_(gain * torch.eye(2))
        weights["bias_ih"].fill_(1 - gain)
    ones = torch.ones(1, 2, dtype=dtype)
    return Subject(subject.module, subject.inputs, (ones,))


def saturated_rnn(bias: float, *, dtype: torch.dtype = torch.float64) -> Subject:
    """Return a tanh RNN with W = I whose units all sit near tanh(bias)."""
    setup = cases.Setup(hidden_size=2, batch=1, start="zero", dtype=dtype)
    subject = cases.gain_rnn(1.0, setup)
    weights = dict(subject.module.named_parameters())
    with torch.no_grad():
        weights["weight_hh"].copy_(torch.eye(2))
        weights["bias_ih"].fill_(bias)
    return subject


def column(norms: JacobianNorms, row: int = 0) -> Tensor:
    """Return the log norms of one batch row, (points,)."""
    return norms.log_norm[:, row]
