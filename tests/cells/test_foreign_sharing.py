"""A wrapper and the module in it are one: names, weights, copies, dtype, gradients."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import ForeignCell
from tests import cases
from tests.cells.user_modules import (
    Plain,
)


def test_parameters_have_the_users_names_and_are_shared() -> None:
    """A wrapper adds no prefix, and a change of one is a change of the other."""
    module = Plain()
    cell = ForeignCell(module)
    assert list(cell.state_dict()) == list(module.state_dict()) == ["lin.weight", "lin.bias"]
    with torch.no_grad():
        cell.get_parameter("lin.bias").fill_(3.0)
    assert torch.all(module.lin.bias == 3.0)
    cell.double()
    assert cell.dtype == module.lin.weight.dtype == torch.float64
    cell.train()
    assert module.training
    cell.eval()
    assert not module.lin.training


def test_functional_call_takes_the_users_names() -> None:
    """torch.func can put other weights in the place of the module's."""
    cell = ForeignCell(Plain().double())
    zeros = {name: torch.zeros_like(value) for name, value in cell.named_parameters()}
    arguments = (cases.normal(2, 2), cases.normal(2, 3))
    assert not torch.any(torch.func.functional_call(cell, zeros, arguments))
    assert torch.any(cell(*arguments))


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_copy_is_a_cell_of_its_own(way: str) -> None:
    """Copies share their registers with their own module, and nothing with the first."""
    cell = ForeignCell(nn.LSTMCell(2, 3))
    twin = copy.deepcopy(cell) if way == "deepcopy" else pickle.loads(pickle.dumps(cell))
    hold_weight = twin.get_parameter("weight_hh")
    with torch.no_grad():
        hold_weight.zero_()
    twin.half()
    assert not torch.any(twin.module.weight_hh)
    assert twin.module.weight_hh.dtype == twin.dtype == torch.float16
    assert torch.any(cell.module.weight_hh)
    assert cell.dtype == torch.float32
    assert (twin.form, twin.notes, twin.kept_part) == (cell.form, cell.notes, cell.kept_part)


def test_a_module_that_moves_tensors_of_its_own_is_asked_to() -> None:
    """`to` goes through the module, whose own `_apply` may convert a plain attribute."""

    class Carrying(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.constant = torch.ones(3)

        def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
            self.constant = fn(self.constant)
            return super()._apply(fn, recurse)

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return self.mix(x, h) * self.constant

    cell = ForeignCell(Carrying()).double()
    assert cell.step(cases.normal(2, 2), cell.initial_state(2))["h"].dtype == torch.float64


def test_wrapping_leaves_no_trace() -> None:
    """Trials run on a copy and outside of the global generator."""

    class Counting(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            self.calls += 1
            return self.mix(x, h)

    module = Counting()
    torch.manual_seed(0)
    expected = torch.get_rng_state()
    ForeignCell(module)
    assert module.calls == 0
    assert torch.equal(torch.get_rng_state(), expected)


def test_gradients_reach_the_parameters() -> None:
    """A step is differentiable by the user's weights and by the state."""
    cell = ForeignCell(Plain().double())
    h = cases.normal(2, 3).requires_grad_()
    cell.step(cases.normal(2, 2), (h,))["h"].sum().backward()
    assert torch.any(h.grad)
    assert all(torch.any(parameter.grad) for parameter in cell.parameters())


def test_a_compiled_module_is_measured_uncompiled() -> None:
    """torch.compile wraps a module and prefixes its names; the one inside is measured."""

    class Compiled(nn.Module):  # as torch.compile's own wrapper, which takes seconds to import
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self._orig_mod = module

    module = Plain()
    cell = ForeignCell(Compiled(module))
    assert cell.module is module
    assert list(cell.state_dict()) == ["lin.weight", "lin.bias"]


def test_weights_save_and_load() -> None:
    """A state_dict saved from the module loads into the wrapper."""
    buffer = io.BytesIO()
    module = Plain()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    cell = ForeignCell(Plain())
    cell.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(cell.module.lin.weight, module.lin.weight)
