"""The ways to the norms of a recurrent Jacobian that `gradflow speed` times side by side.

All of them measure ln ||ds_T/ds_0||, Frobenius, of the joint state of one cell on one input:

    restart     torch.autograd.functional.jacobian of the unroll, once for every T
    chain       torch.func.jacrev of one step at a time, chained with a running scale
    chain-vmap  the same step Jacobians in one vmapped call over the stored trajectory
    unroll      torch.func.jacrev of the whole unroll: the last T alone, and no scale
    gradflow    gradflow.jacobian_norms
    floor       no norm: the bare matrix products that an exact dense way cannot do without
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, RNN, Cell
from gradflow.cells.shapes import State
from gradflow.engine.autograd_check import call_module, independent_twin
from gradflow.engine.jacobian_norms import jacobian_norms
from gradflow.records.speed import SpeedCase

CELLS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU, "rnn": RNN}
INPUT_SIZE = 8
# Beyond these a restart at every T takes minutes.
RESTART_HIDDEN, RESTART_STEPS = 32, 50


class Subject:
    """One case: a random cell, torch's module with the same weights, an input and a first state."""

    def __init__(self, case: SpeedCase, *, device: str, seed: int) -> None:
        dtype = getattr(torch, case.dtype)
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            drawn = torch.randn(*shape, generator=generator, dtype=torch.float64)
            return drawn.to(dtype=dtype, device=device)

        self.case = case
        form = CELLS[case.cell]
        self.cell = form(INPUT_SIZE, case.hidden, dtype=dtype, device=device)
        with torch.no_grad():
            for parameter in self.cell.parameters():
                drawn = torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_((2 * drawn - 1) / math.sqrt(case.hidden))  # as torch draws them
        self.x = normal(case.steps, 1, INPUT_SIZE)
        self.state: State = tuple(normal(1, size) for size in self.cell.part_sizes)
        self.module: nn.Module = independent_twin(self.cell)[0].requires_grad_(False)
        self.widths = list(self.cell.part_sizes)

    @property
    def start(self) -> Tensor:
        """The joint state before the first step, (state,)."""
        return torch.cat(self.state, dim=-1)[0]

    def step(self, joint: Tensor, x: Tensor) -> Tensor:
        """Return the joint state after one step of torch's module, (state,)."""
        parts = tuple(part.unsqueeze(0) for part in joint.split(self.widths))
        return torch.cat(call_module(self.module, x.unsqueeze(0), parts), dim=-1)[0]

    def unroll(self, joint: Tensor, steps: int) -> Tensor:
        """Return the joint state after `steps` steps."""
        for t in range(steps):
            joint = self.step(joint, self.x[t, 0])
        return joint


@dataclass(frozen=True)
class Way:
    """A way to the norms: `run()` returns their natural logs for the last `points` prefixes.

    `sample` is what memory is measured of: a part that needs as much as the whole, where the
    whole would be too long to watch.
    """

    run: Callable[[], Tensor]
    points: int
    sample: Callable[[], object]


def way_of(method: str, subject: Subject) -> Way:
    """Return a method, ready to run on a subject; whatever can be prepared is."""
    steps = subject.case.steps
    if method == "restart":
        return Way(lambda: _restart(subject, 1), steps, lambda: _restart(subject, steps))
    if method == "floor":
        floor = _floor(subject)
        return Way(floor, 0, floor)
    run, points = {
        "chain": (lambda: _chain(subject), steps),
        "chain-vmap": (lambda: _chain_vmap(subject), steps),
        "unroll": (lambda: _unroll(subject), 1),
        "gradflow": (lambda: _gradflow(subject), steps),
    }[method]
    return Way(run, points, run)


def _restart(subject: Subject, first: int) -> Tensor:
    start, norms = subject.start, []
    for steps in range(first, subject.case.steps + 1):
        jacobian = torch.autograd.functional.jacobian(
            lambda joint, steps=steps: subject.unroll(joint, steps), start
        )
        norms.append(torch.linalg.matrix_norm(jacobian))
    return torch.stack(norms).double().log()


def _chain(subject: Subject) -> Tensor:
    derivative = torch.func.jacrev(subject.step)
    joint = subject.start
    product = torch.eye(len(joint), dtype=joint.dtype, device=joint.device)
    scale = torch.zeros((), dtype=torch.float64, device=joint.device)
    logs = []
    with torch.no_grad():
        for x in subject.x[:, 0]:
            product, scale = _scaled(derivative(joint, x) @ product, scale)
            logs.append(scale)
            joint = subject.step(joint, x)
    return torch.stack(logs)


def _chain_vmap(subject: Subject) -> Tensor:
    derivative = torch.func.vmap(torch.func.jacrev(subject.step))
    joints = [subject.start]
    with torch.no_grad():
        for x in subject.x[:-1, 0]:
            joints.append(subject.step(joints[-1], x))
        jacobians = derivative(torch.stack(joints), subject.x[:, 0])
        product = torch.eye(jacobians.shape[-1], dtype=jacobians.dtype, device=jacobians.device)
        scale = torch.zeros((), dtype=torch.float64, device=jacobians.device)
        logs = []
        for jacobian in jacobians:
            product, scale = _scaled(jacobian @ product, scale)
            logs.append(scale)
    return torch.stack(logs)


def _scaled(product: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return the product with norm 1, and the log of its whole norm."""
    size = torch.linalg.matrix_norm(product)
    return product / size, scale + size.double().log()


def _unroll(subject: Subject) -> Tensor:
    steps = subject.case.steps
    with torch.no_grad():
        jacobian = torch.func.jacrev(lambda joint: subject.unroll(joint, steps))(subject.start)
    norm: Tensor = torch.linalg.matrix_norm(jacobian)
    return norm.double().log().reshape(1)


def _gradflow(subject: Subject) -> Tensor:
    norms = jacobian_norms(subject.cell, subject.x, subject.state, "joint", "frobenius")
    return norms.log_norm[:, 0]


def _floor(subject: Subject) -> Callable[[], Tensor]:
    """Return T products of the shape that cannot be avoided: (2H, H) by (H, 2H) for an LSTM."""
    hidden, size = subject.case.hidden, sum(subject.widths)
    left = torch.full((size, hidden), 1.0 / hidden).to(subject.x)
    right = torch.ones(hidden, size).to(subject.x)
    out = torch.empty(size, size).to(subject.x)

    def products() -> Tensor:
        for _ in range(subject.case.steps):
            torch.mm(left, right, out=out)
        return subject.x.new_empty(0)

    return products
