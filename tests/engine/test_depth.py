"""Gradient flow through time and depth, against autograd on torch's cells and closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import Dropout, DropoutMasks, ForeignCell, Stack, hold_
from gradflow.engine import jacobian_norms
from gradflow.engine.depth import DepthNorms, depth_norms
from gradflow.engine.depth_autograd import autograd_depth_log_norms
from gradflow.errors import ShapeError, UnknownNameError
from tests.cases import assert_same_log_norm
from tests.cells.layers import each_direction, each_layer, inputs, torch_layer
from tests.reference.unrolled_stack import TwinStack, Unrolled, jacobian, torch_cells, unroll

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
        for layer in range(norms.log_norm.shape[0]):
            for direction in range(norms.log_norm.shape[1]):
                columns = span(twin.cells[layer * twin.directions + direction], part)
                expected = [
                    log_norm(
                        jacobian(target, ran.nodes[layer, direction, t])[:, columns], norms.norm
                    )
                    for t in range(length)
                ]
                found = norms.log_norm[layer, direction, :, b]
                assert_same_log_norm(found[:length], expected, tolerance=AUTOGRAD)
                assert bool(found[length:].isnan().all())
                start = log_norm(
                    jacobian(target, ran.starts[layer, direction])[:, columns], norms.norm
                )
                assert_same_log_norm(
                    norms.start_log_norm[layer, direction, b], start, tolerance=AUTOGRAD
                )
        whole = jacobian(target, sample).reshape(len(target), length, -1)
        expected = [log_norm(whole[:, t], norms.norm) for t in range(length)]
        assert_same_log_norm(norms.input_log_norm[:length, b], expected, tolerance=AUTOGRAD)
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


def identity_stack(
    keep: float, up: float, *, layers: int, residual: bool = False, width: int = 2
) -> Stack:
    """Return relu layers h = relu(keep * h + up * x) in which every unit is for itself."""
    stack = Stack.build(
        "rnn",
        width,
        width,
        layers=layers,
        residual=residual,
        nonlinearity="relu",
        dtype=torch.float64,
    )
    unit = torch.eye(width, dtype=torch.float64)
    with torch.no_grad():
        for cell in stack.cells:
            cell.weight_hh.copy_(keep * unit)
            cell.weight_ih.copy_(up * unit)
            cell.bias_ih.fill_(0.5)
            cell.bias_hh.fill_(0.5)
    return stack


def log_binomial(n: int, k: int) -> float:
    """Return ln of n over k."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def test_the_norm_counts_the_paths_through_time_and_depth() -> None:
    """keep^(T-t) up^(L-l) times (T-t+L-l over L-l), the number of ways to go so far up and on."""
    layers, steps = 4, 12
    stack = identity_stack(0.5, 0.7, layers=layers)
    norms = depth_norms(stack, torch.ones(steps, 1, 2).double())
    for layer in range(layers):
        for t in range(1, steps + 1):
            on, up = steps - t, layers - 1 - layer
            expected = on * math.log(0.5) + up * math.log(0.7) + log_binomial(on + up, up)
            assert_same_log_norm(norms.log_norm[layer, 0, t - 1, 0], expected)


def test_a_residual_link_lets_a_path_leave_layers_out() -> None:
    """Going up in j leaps: (L-l-1 over j-1) choices of layers, each path keep^(T-t) up^j."""
    layers, steps = 4, 12
    stack = identity_stack(0.5, 0.7, layers=layers, residual=True)
    norms = depth_norms(stack, torch.ones(steps, 1, 2).double())
    for layer in range(layers):
        for t in range(1, steps + 1):
            on, up = steps - t, layers - 1 - layer
            paths = sum(
                math.comb(up - 1, leaps - 1) * math.comb(on + leaps, leaps) * 0.7**leaps
                for leaps in range(1, up + 1)
            )
            expected = on * math.log(0.5) + math.log(paths if up else 1.0)
            assert_same_log_norm(norms.log_norm[layer, 0, t - 1, 0], expected)


def test_nothing_under_or_overflows() -> None:
    """0.1^999 and 3^999 are beyond any float; their logarithms are exact to 12 digits."""
    for keep in (0.1, 3.0):
        stack = Stack.build("rnn", 2, 2, layers=2, dtype=torch.float64)
        for cell in stack.cells:  # a state of 0 stays 0, where the slope of tanh is 1
            for name, parameter in cell.named_parameters():
                factor = {"weight_hh": keep, "weight_ih": 1e-3}.get(name, 0.0)
                with torch.no_grad():
                    parameter.copy_(factor * torch.eye(2).double() if factor else torch.zeros(2))
        norms = depth_norms(stack, torch.zeros(1000, 1, 2).double(), at=[1, 1000])
        line = 999 * math.log(keep)
        expected = [[line + math.log(1e-3) + math.log(1000.0), math.log(1e-3)], [line, 0.0]]
        assert_same_log_norm(norms.log_norm[:, 0, :, 0], expected)
        assert norms.positions.tolist() == [1, 1000]


def test_float32_keeps_the_scale_too() -> None:
    """In float32 a norm of 10^-45 is zero already; here 10^-200 is read to 5 digits."""
    stack = hold_stack(0.1, layers=1).to(torch.float32)
    norms = depth_norms(stack, torch.zeros(200, 1, 1), ("c", "c"))
    assert norms.start_log_norm.item() / math.log(10.0) == pytest.approx(-200.0, rel=1e-5)


def hold_stack(forget: float, *, layers: int) -> Stack:
    """Return LSTMs whose gates are held and whose layers do not see each other."""
    stack = Stack.build("lstm", 1, 3, layers=layers, dtype=torch.float64)
    for cell in stack.cells:
        hold_(cell, forget=forget)
    return stack


def test_an_exact_zero_is_told_from_an_underflow() -> None:
    """No weight leads up: exact. A gate whose slope rounds to zero: a path, but no number."""
    apart = depth_norms(hold_stack(0.5, layers=2), torch.zeros(4, 1, 1).double())
    assert bool(torch.isneginf(apart.log_norm[0]).all())
    assert bool(apart.exact[0].all())
    assert not bool(apart.exact[1].any())
    shut = Stack.from_torch(torch_layer("lstm", layers=2))
    with torch.no_grad():
        for cell in shut.cells:
            cell.bias_ih[4:8] = -1e4  # the forget gate: sigmoid(-10000) is 0 in float64
            cell.bias_ih[12:16] = -1e4  # and so is the output gate
    norms = depth_norms(shut, inputs(steps=4).detach())
    assert bool(torch.isneginf(norms.log_norm[:, :, :2]).all())
    assert not bool(norms.exact.any())
    assert not bool(norms.input_exact.any())


@pytest.mark.parametrize("lengths", [[4], [3]])
def test_the_reverse_half_of_the_last_output_has_read_one_step(lengths: list[int]) -> None:
    """Its gradient to every earlier input is exactly 0 by construction; h_n's is not."""
    layer = torch_layer("lstm", layers=1, bidirectional=True)
    stack = Stack.from_torch(layer)
    run = stack.run(inputs(steps=4, batch=1), lengths=lengths)
    last = lengths[0] - 1
    half = depth_norms(stack, run, read="reverse output")
    assert torch.isfinite(half.input_log_norm[last])
    earlier = [t for t in range(4) if t != last]
    assert bool(torch.isneginf(half.input_log_norm[earlier]).all())
    assert bool(half.input_exact[earlier].all())
    whole = depth_norms(stack, run, read="reverse state")
    assert bool(torch.isfinite(whole.input_log_norm[: last + 1]).all())


def test_one_mask_lets_through_for_ever_what_fresh_masks_cut_off() -> None:
    """A unit survives T fresh masks with (1-p)^T; one mask for the sequence lets it live."""
    steps, rate = 40, 0.5
    stack = identity_stack(0.5, 0.7, layers=1, width=8)
    x = torch.ones(steps, 1, 8).double()
    found = {}
    for kind in ("step", "sequence"):
        generator = torch.Generator().manual_seed(0)
        rates = Dropout(recurrent=rate, masks=kind)
        masks = stack.draw_masks(steps, 1, generator=generator, dropout=rates)
        found[kind] = depth_norms(stack, stack.run(x, masks=masks))
        factors = masks.recurrent[0].expand(steps, -1, -1)[:, 0]
        # in each of the last `on` steps unit i is multiplied by 0.5 and by its mask
        expected = [(0.5 * factors[t + 1 :]).prod(dim=0).max().log().item() for t in range(steps)]
        assert_same_log_norm(found[kind].log_norm[0, 0, :, 0], expected)
    assert found["sequence"].start_log_norm.item() == pytest.approx(0.0, abs=1e-12)
    assert bool(found["step"].exact[0, 0, 0, 0])
    assert not bool(found["sequence"].exact.any())


def test_a_layer_that_is_dropped_whole_is_an_exact_zero() -> None:
    """Nothing of the lower layer is left where the mask between the layers is all zeros."""
    stack, x = Stack.from_torch(torch_layer("gru")), inputs(steps=3, batch=1)
    masks = DropoutMasks((None, torch.zeros(1, 1, 4).double()), (None, None))
    norms = depth_norms(stack, stack.run(x, masks=masks))
    assert bool(norms.exact[0].all())
    assert bool(torch.isfinite(norms.log_norm[1]).all())


def test_the_mode_of_the_stack_does_not_matter_to_an_input_alone() -> None:
    """With x alone nothing is dropped, also in training mode; a run keeps its own masks."""
    stack, x = Stack.from_torch(torch_layer("gru", dropout=0.5)), inputs(steps=4).detach()
    resting = depth_norms(stack, x)
    stack.train()
    assert torch.equal(depth_norms(stack, x).log_norm, resting.log_norm)
    run = stack.run(x)
    assert run.masks is not None
    assert torch.equal(depth_norms(stack, run).log_norm, depth_norms(stack, run).log_norm)
    assert not torch.equal(depth_norms(stack, run).log_norm, resting.log_norm)


def test_chunks_of_time_do_not_show() -> None:
    """150 steps are pulled in three chunks; each position is what a shorter run would give."""
    stack = Stack.from_torch(torch_layer("lstm", layers=2))
    x = inputs(steps=150, batch=2).detach()
    seen: list[tuple[int, int]] = []
    norms = depth_norms(stack, x, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (300, 300)
    later = stack.run(x[:40])
    rest = depth_norms(stack, stack.run(x[40:], later.final))
    assert_same_log_norm(norms.log_norm[:, :, 40:], rest.log_norm)
    # below the last layer, a state at step 40 also goes up at that very step
    assert_same_log_norm(norms.log_norm[1, :, 39], rest.start_log_norm[1])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"read": "stat"}, UnknownNameError, "Did you mean 'state'"),
        ({"read": "reverse state"}, UnknownNameError, "reads forward only.*Use 'state'"),
        ({"norm": "nuclear"}, UnknownNameError, "no norm 'nuclear'"),
        ({"block": ("c", "c")}, UnknownNameError, "no part 'c'"),
        ({"method": "dense"}, UnknownNameError, "no method 'dense'"),
        ({"at": [0]}, ShapeError, "steps from 1 to 2"),
    ],
)
def test_what_does_not_exist_is_told(changes: dict, error: type[Exception], words: str) -> None:
    """The rule, what came, and the nearest name."""
    stack = Stack.build("gru", 3, 4, layers=2, dtype=torch.float64)
    with pytest.raises(error, match=words):
        depth_norms(stack, torch.zeros(2, 1, 3).double(), **changes)


@each_layer
@pytest.mark.parametrize("read", ["state", "output", "reverse output"])
def test_the_independent_check_agrees_where_its_numbers_are_normal(kind: str, read: Any) -> None:
    """The command's own twin, with both ends, links, masks and lengths at once."""
    layer = torch_layer(kind, input_size=8, bidirectional=True)
    plain, x = Stack.from_torch(layer), inputs(steps=5, width=8)
    stack = Stack(plain.all_cells(), bidirectional=True, residual=True)
    generator = torch.Generator().manual_seed(2)
    for rates in (None, Dropout(0.2, 0.2)):
        drawn = rates and stack.draw_masks(5, 3, generator=generator, dropout=rates)
        run = stack.run(x, lengths=LENGTHS, masks=drawn)
        norms = depth_norms(stack, run, "joint", "frobenius", read=read)
        for row, length in enumerate(LENGTHS):
            positions = list(range(1, length + 1))
            twin = autograd_depth_log_norms(
                stack, run, row, positions=positions, block="joint", norm="frobenius", read=read
            )
            assert_same_log_norm(norms.log_norm[:, :, :length, row], twin, tolerance=AUTOGRAD)
