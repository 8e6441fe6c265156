"""Recurrent Jacobians by torch.autograd on torch's own cells: exact, slow, hard to get wrong."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tests.reference.subject import Block, State, Subject


def trajectory(subject: Subject) -> list[State]:
    """Return the states s_1 to s_T, one tuple of (batch, hidden) parts per step."""
    states = []
    state = subject.state
    with torch.no_grad():
        for x in subject.inputs:
            state = subject.advance(x, state)
            states.append(state)
    return states


def _one_row_per_output(subject: Subject, joint: Tensor) -> Tensor:
    """Repeat each row once per output unit: (batch, state) becomes (batch * state, state)."""
    return joint.detach().repeat_interleave(subject.state_size, dim=0).requires_grad_()


def _output_units(subject: Subject) -> Tensor:
    """Return the cotangents that ask copy number k of each row for output unit k."""
    return torch.eye(subject.state_size, dtype=subject.inputs.dtype).repeat(subject.batch, 1)


def jacobians(subject: Subject, *, block: Block = "joint") -> Tensor:
    """Return ds_T/ds_0 for every T from 1, as (time, batch, rows, columns).

    The cell is unrolled once from a leaf s_0. Every row of the batch stands in the unroll once
    per output unit, so that one backward pass for each T reads all rows of the Jacobian. The
    numbers are as they are: beyond some T they underflow, for which see `log_norms`.
    """
    size = subject.state_size
    start = _one_row_per_output(subject, torch.cat(subject.state, dim=1))
    rows, columns = subject.spans(block)
    joint, found = start, []
    for x in subject.inputs:
        joint = subject.advance_joint(x.repeat_interleave(size, dim=0), joint)
        (pulled,) = torch.autograd.grad(joint, start, _output_units(subject), retain_graph=True)
        found.append(pulled.reshape(subject.batch, size, size)[:, rows, columns])
    return torch.stack(found)


def step_jacobians(subject: Subject) -> Tensor:
    """Return ds_t/ds_{t-1} of the joint state at every step, (time, batch, state, state)."""
    size = subject.state_size
    state, found = torch.cat(subject.state, dim=1), []
    for x in subject.inputs:
        before = _one_row_per_output(subject, state)
        after = subject.advance_joint(x.repeat_interleave(size, dim=0), before)
        (pulled,) = torch.autograd.grad(after, before, _output_units(subject))
        found.append(pulled.reshape(subject.batch, size, size))
        state = after.detach()[::size]
    return torch.stack(found)


def matrix_norm(matrix: Tensor, norm: str) -> Tensor:
    """Return the spectral or the Frobenius norm over the last two axes."""
    order: Any = {"spectral": 2, "frobenius": "fro"}[norm]
    size: Tensor = torch.linalg.matrix_norm(matrix, ord=order)
    return size


def _powers_of_two(exponents: Tensor) -> Tensor:
    """Return 2**exponent exactly, in float64 (torch.ldexp takes its powers in float32)."""
    powers = [math.ldexp(1.0, power) for power in exponents.tolist()]
    return torch.tensor(powers, dtype=torch.float64)


def log_norms(subject: Subject, *, block: Block = "joint", norm: str = "spectral") -> Tensor:
    """Return ln ||ds_T/ds_0|| for every T from 1, (time, batch); -inf where it is zero.

    The product of the step Jacobians is scaled by a power of two after every step, which is
    exact, and the powers are summed as integers, so thousands of steps cost no accuracy but
    the rounding of the products themselves.
    """
    rows, columns = subject.spans(block)
    steps = step_jacobians(subject)
    product = torch.eye(subject.state_size, dtype=steps.dtype).expand_as(steps[0])
    exponent = torch.zeros(subject.batch, dtype=torch.int64)
    found = []
    for step in steps:
        product = step @ product
        shift = torch.frexp(product.abs().amax(dim=(1, 2))).exponent
        product = product * _powers_of_two(-shift)[:, None, None]
        exponent = exponent + shift
        scaled = matrix_norm(product[:, rows, columns], norm).log()
        found.append(scaled + exponent.double() * math.log(2))
    return torch.stack(found)
