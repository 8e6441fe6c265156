"""Gradient flow through time and depth, against autograd on torch's cells and closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import Dropout, ForeignCell, Stack
from gradflow.engine import jacobian_norms
from gradflow.engine.depth import DepthNorms, depth_norms
from gradflow.engine.depth_autograd import autograd_depth_log_norms
from tests.cases import assert_same_log_norm
from tests.cells.layers import each_direction, each_layer, inputs, torch_layer
from tests.reference.unrolled_stack import TwinStack, Unrolled, jacobians, torch_cells, unroll

LENGTHS = [3, 5, 1]
# Plain autograd computes slopes as 1 - tanh^2 and keeps no scale; the rest is round-off.
AUTOGRAD = 1e-10


def log_norm(matrix: Tensor, norm: str) -> float:
    """Return ln of a norm; -inf for a matrix of zeros."""
    order: Any = {"spectral": 2, "frobenius": "fro"}[norm]
    size = torch.linalg.matrix_norm(matrix, ord=order).item()
    return math.log(size) if size > 0 else -math.inf


def span(cell: nn.Module, part: str) -> slice:
    """Return where a part stands in a cell's joint state."""
    size = cell.hidden_size
    return {"joint": slice(None), "h": slice(0, size), "c": slice(size, 2 * size)}[part]


def target_of(twin: TwinStack, ran: Unrolled, read: str, row_part: str) -> Tensor:
    """Return what is read of one sample's run, (rows,)."""
    direction, _, what = read.rpartition(" ")
    numbers = [("forward", "reverse").index(direction)] if direction else range(twin.directions)
    if what == "output":
        shares = ran.output[-1].chunk(twin.directions)
        return torch.cat([shares[number] for number in numbers])
    top = len(twin.cells) - twin.directions
    return torch.cat([ran.finals[top + n][span(twin.cells[top + n], row_part)] for n in numbers])


def assert_is_autograds(norms: DepthNorms, twin: TwinStack, x: Tensor) -> None:
    """Assert every log norm of every sample against its own unrolled run."""
    row_part, part = ("joint", "joint") if norms.block == "joint" else norms.block
    for b, length in enumerate(norms.lengths.tolist()):
        own = replace(
            twin,
            between={k: m[:length, b] for k, m in twin.between.items()},
            recurrent={k: m[:length, b] for k, m in twin.recurrent.items()},
        )
        sample = x[:length, b].detach().clone().requires_grad_()
        ran = unroll(own, sample)
        target = target_of(own, ran, norms.read, row_part)
        matrices = jacobians(target, [*ran.nodes.values(), *ran.starts.values(), sample])
        whole = matrices.pop().reshape(len(target), length, -1)
        for place, matrix in zip([*ran.nodes, *ran.starts], matrices, strict=True):
            columns = span(twin.cells[place[0] * twin.directions + place[1]], part)
            found = norms.log_norm if len(place) == 3 else norms.start_log_norm
            expected = log_norm(matrix[:, columns], norms.norm)
            assert_same_log_norm(found[(*place, b)], expected, tolerance=AUTOGRAD)
        of_inputs = [log_norm(whole[:, t], norms.norm) for t in range(length)]
        assert_same_log_norm(norms.input_log_norm[:length, b], of_inputs, tolerance=AUTOGRAD)
        assert bool(norms.log_norm[:, :, length:, b].isnan().all())
        assert bool(torch.isneginf(norms.input_log_norm[length:, b]).all())


@each_layer
@each_direction
@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
def test_every_norm_is_autograds(kind: str, bidirectional: bool, residual: bool) -> None:
    """Three layers, samples of 3, 5 and 1 steps, each against its own unrolled run."""
    layer = torch_layer(kind, layers=3, bidirectional=bidirectional)
    plain, x = Stack.from_torch(layer), inputs(steps=5)
    stack = Stack(plain.all_cells(), bidirectional=bidirectional, residual=residual)
    norms = depth_norms(stack, stack.run(x, lengths=LENGTHS))
    assert norms.method == "closed form"
    assert_is_autograds(norms, TwinStack(torch_cells(layer), stack.directions, residual), x)


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
@pytest.mark.parametrize("block", [("c", "c"), ("h", "c"), ("c", "h"), "joint"])
def test_every_block_and_norm_is_autograds(block: Any, norm: Any) -> None:
    """The part that is read at the top and the part that is varied below, in two directions."""
    layer = torch_layer("lstm", bidirectional=True)
    stack, x = Stack.from_torch(layer), inputs(steps=5)
    norms = depth_norms(stack, stack.run(x, lengths=LENGTHS), block, norm)
    assert_is_autograds(norms, TwinStack(torch_cells(layer), 2), x)


@pytest.mark.parametrize("what", ["state", "output"])
@pytest.mark.parametrize("direction", ["", "forward ", "reverse "])
def test_everything_that_can_be_read_is_autograds(what: str, direction: str) -> None:
    """Final states and last outputs, of both directions and of one, with residual links."""
    layer = torch_layer("gru", hidden_size=2, input_size=4, layers=3, bidirectional=True)
    x = inputs(steps=5, width=4)
    stack = Stack(Stack.from_torch(layer).all_cells(), bidirectional=True, residual=True)
    read: Any = direction + what
    norms = depth_norms(stack, stack.run(x, lengths=LENGTHS), read=read)
    assert_is_autograds(norms, TwinStack(torch_cells(layer), 2, residual=True), x)


@each_layer
@pytest.mark.parametrize("masks", ["step", "sequence"])
def test_every_norm_under_dropout_is_autograds(kind: str, masks: Any) -> None:
    """Between layers and in time, fresh or one mask per sequence: the masks that were drawn."""
    layer = torch_layer(kind, layers=2, bidirectional=True)
    stack, x = Stack.from_torch(layer), inputs(steps=5)
    generator = torch.Generator().manual_seed(3)
    drawn = stack.draw_masks(
        5, 3, generator=generator, dropout=Dropout(between=0.3, recurrent=0.3, masks=masks)
    )
    norms = depth_norms(stack, stack.run(x, lengths=LENGTHS, masks=drawn))
    twin = TwinStack(
        torch_cells(layer),
        2,
        between={1: drawn.between[1].expand(5, -1, -1)},
        recurrent={k: mask.expand(5, -1, -1) for k, mask in enumerate(drawn.recurrent)},
    )
    assert_is_autograds(norms, twin, x)


@each_layer
def test_without_a_closed_form_the_norms_are_the_same(kind: str) -> None:
    """torch.func on the cells' steps, with recurrent masks and padding too."""
    stack, x = Stack.from_torch(torch_layer(kind, bidirectional=True)), inputs(steps=3)
    for masks in (None, Dropout(0.3, 0.3)):
        generator = torch.Generator().manual_seed(1)
        drawn = masks and stack.draw_masks(3, 3, generator=generator, dropout=masks)
        run = stack.run(x, lengths=[3, 1, 2], masks=drawn)
        own, generic = depth_norms(stack, run), depth_norms(stack, run, method="generic")
        assert generic.method == "generic"
        inside = ~own.log_norm.isnan()
        assert_same_log_norm(own.log_norm[inside], generic.log_norm[inside])
        assert_same_log_norm(own.input_log_norm, generic.input_log_norm)
        assert_same_log_norm(own.start_log_norm, generic.start_log_norm)


def test_a_users_module_is_measured_among_built_in_cells() -> None:
    """torch's own GRU cell as a user's module, on one of ours: two ways in one pull."""
    layer = torch_layer("gru")
    cells, x = torch_cells(layer), inputs(steps=5)
    stack = Stack([Stack.from_torch(layer).cell(0), ForeignCell(cells[1])])
    norms = depth_norms(stack, stack.run(x, lengths=LENGTHS))
    assert norms.method == "closed form and generic"
    assert_is_autograds(norms, TwinStack(cells), x)


@each_layer
def test_one_layer_is_the_instrument_for_one_cell(kind: str) -> None:
    """ds_T/ds_0 of a stack of one cell is what `jacobian_norms` measures from the other end."""
    stack, x = Stack.from_torch(torch_layer(kind, layers=1)), inputs(steps=40).detach()
    cell = stack.cell(0)
    state = cell.initial_state(3)
    expected = jacobian_norms(cell, x, state, "joint").log_norm[-1]
    assert_same_log_norm(depth_norms(stack, x).start_log_norm[0, 0], expected)


@each_layer
@pytest.mark.parametrize("read", ["state", "output", "reverse output"])
def test_the_independent_check_agrees_where_its_numbers_are_normal(kind: str, read: Any) -> None:
    """The command's own twin, with both ends, links, masks and lengths at once."""
    layer = torch_layer(kind, input_size=8, bidirectional=True)
    plain, x = Stack.from_torch(layer), inputs(steps=5, width=8)
    stack = Stack(plain.all_cells(), bidirectional=True, residual=True)
    generator = torch.Generator().manual_seed(2)
    for rates in (None, Dropout(0.2, 0.2)) if read == "state" else (Dropout(0.2, 0.2),):
        drawn = rates and stack.draw_masks(5, 3, generator=generator, dropout=rates)
        run = stack.run(x, lengths=LENGTHS, masks=drawn)
        norms = depth_norms(stack, run, "joint", "frobenius", read=read)
        for row, length in enumerate(LENGTHS):
            positions = list(range(1, length + 1))
            twin = autograd_depth_log_norms(
                stack, run, row, positions=positions, block="joint", norm="frobenius", read=read
            )
            assert_same_log_norm(norms.log_norm[:, :, :length, row], twin, tolerance=AUTOGRAD)
