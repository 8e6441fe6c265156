"""The textbook GRU is the formula, and differs from torch's exactly where it should."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tests import cases
from tests.reference.subject import Subject
from tests.reference.textbook_gru import TextbookGRUCell


def _pair(setup: cases.Setup = cases.DEFAULT) -> tuple[Subject, nn.GRUCell]:
    subject = cases.random_subject("gru-before", setup)
    after = nn.GRUCell(setup.input_size, setup.hidden_size, dtype=setup.dtype)
    after.load_state_dict(subject.module.state_dict())
    return subject, after


def _set(module: nn.Module, name: str, rows: slice, value: float) -> None:
    with torch.no_grad():
        dict(module.named_parameters())[name][rows] = value


def test_one_unit_by_hand() -> None:
    """One unit with r = 1/4, z = 3/4, h = 2: the candidate sees r * h = 1/2, not 2."""
    cell = TextbookGRUCell(1, 1)
    values: dict[str, Any] = {
        "weight_ih": [[0.0], [0.0], [0.3]],
        "weight_hh": [[0.0], [0.0], [0.8]],
        "bias_ih": [cases.logit(0.25), cases.logit(0.75), 0.1],
        "bias_hh": [0.0, 0.0, -0.2],
    }
    as_float64 = partial(torch.tensor, dtype=torch.float64)
    cell.load_state_dict({name: as_float64(value) for name, value in values.items()})
    after = cell(torch.ones(1, 1).double(), torch.full((1, 1), 2.0).double())
    expected = 0.75 * 2 + 0.25 * math.tanh(0.3 + 0.1 + 0.8 * 0.5 - 0.2)
    assert math.isclose(after.item(), expected, rel_tol=1e-15)


def test_an_open_reset_gate_gives_torchs_gru() -> None:
    """With r = 1 there is nothing to place before or after: both GRUs are the same map."""
    subject, after = _pair()
    size = subject.hidden_size
    for module in (subject.module, after):
        _set(module, "bias_ih", slice(0, size), 50.0)
    x, (h,) = subject.inputs[0], subject.state
    assert torch.allclose(subject.module(x, h), after(x, h), rtol=1e-14, atol=1e-15)


def test_a_closing_reset_gate_tells_the_two_apart() -> None:
    """From a non-zero state the two places of the reset gate give different states."""
    subject, after = _pair()
    x, (h,) = subject.inputs[0], subject.state
    assert (subject.module(x, h) - after(x, h)).abs().max() > 0.01


def test_the_zero_state_cannot_tell_the_two_apart() -> None:
    """From h = 0 with a zero candidate bias the wrong GRU passes: a known trap of parity."""
    subject, after = _pair()
    size = subject.hidden_size
    for module in (subject.module, after):
        _set(module, "bias_hh", slice(2 * size, None), 0.0)
    x, h = subject.inputs[0], torch.zeros_like(subject.state[0])
    assert torch.allclose(subject.module(x, h), after(x, h), rtol=1e-14, atol=1e-15)


def test_autograd_agrees_with_finite_differences() -> None:
    """The cell is differentiable in its input, its state and every parameter."""
    subject = cases.random_subject("gru-before", cases.Setup(input_size=2, hidden_size=3))
    names, tensors = zip(*subject.module.named_parameters(), strict=True)

    def call(x: Tensor, h: Tensor, *weights: Tensor) -> Any:
        weights_by_name = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(subject.module, weights_by_name, (x, h))

    leaves = [subject.inputs[0], subject.state[0], *(tensor.detach() for tensor in tensors)]
    assert torch.autograd.gradcheck(call, [leaf.clone().requires_grad_() for leaf in leaves])
