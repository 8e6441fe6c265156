"""Gradient flow through time and depth in stacks whose answer is known: formulas, zeros, words."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gradflow.cells import GRU, Dropout, DropoutMasks, Stack, hold_
from gradflow.engine.depth import depth_norms
from gradflow.errors import CellLoadError, DivergenceError, ShapeError, UnknownNameError
from tests.cases import assert_same_log_norm
from tests.cells.layers import inputs, torch_layer


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
    """0.1^699 and 3^699 are beyond any float; their logarithms are exact to 12 digits."""
    for keep in (0.1, 3.0):
        stack = Stack.build("rnn", 2, 2, layers=2, dtype=torch.float64)
        for cell in stack.cells:  # a state of 0 stays 0, where the slope of tanh is 1
            for name, parameter in cell.named_parameters():
                factor = {"weight_hh": keep, "weight_ih": 1e-3}.get(name, 0.0)
                with torch.no_grad():
                    parameter.copy_(factor * torch.eye(2).double() if factor else torch.zeros(2))
        norms = depth_norms(stack, torch.zeros(700, 1, 2).double(), at=[1, 700])
        line = 699 * math.log(keep)
        expected = [[line + math.log(1e-3) + math.log(700.0), math.log(1e-3)], [line, 0.0]]
        assert_same_log_norm(norms.log_norm[:, 0, :, 0], expected)
        assert norms.positions.tolist() == [1, 700]


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
    """130 steps are pulled in three chunks; each position is what a shorter run would give."""
    stack = Stack.from_torch(torch_layer("lstm", layers=2))
    x = inputs(steps=130, batch=1).detach()
    seen: list[tuple[int, int]] = []
    norms = depth_norms(stack, x, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (260, 260)
    later = stack.run(x[:40])
    rest = depth_norms(stack, stack.run(x[40:], later.final))
    assert_same_log_norm(norms.log_norm[:, :, 40:], rest.log_norm)
    # below the last layer, a state at step 40 also goes up at that very step
    assert_same_log_norm(norms.log_norm[1, :, 39], rest.start_log_norm[1])


def test_a_state_that_grows_beyond_all_floats_is_told() -> None:
    """3^1000 is no float: the layer and the position are named, and nothing is made up."""
    stack = identity_stack(3.0, 0.1, layers=2)
    with pytest.raises(DivergenceError, match=r"layer 1 is no longer finite at position 64\d of"):
        depth_norms(stack, torch.ones(1000, 1, 2).double())


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


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("given", [nn.GRU(3, 4), GRU(3, 4), None])
def test_what_is_no_stack_is_told(given: object) -> None:
    """And how to make one of a layer or a cell."""
    with pytest.raises(CellLoadError, match=r"Stack\.from_torch\(layer\)"):
        depth_norms(given, torch.zeros(2, 1, 3))


@pytest.mark.usefixtures("unchecked")
def test_a_run_must_be_the_stacks_own() -> None:
    """Of as many layers and as wide; a packed sequence is no run."""
    stack = Stack.build("gru", 3, 4, layers=2)
    for other in (Stack.build("gru", 3, 4), Stack.build("lstm", 3, 4, layers=2)):
        with pytest.raises(ShapeError, match=r"this stack's own, stack\.run\(x\)"):
            depth_norms(stack, other.run(torch.zeros(2, 1, 3)))
    packed = nn.utils.rnn.pack_sequence([torch.zeros(2, 3)])
    with pytest.raises(ShapeError, match="give pad_packed_sequence"):
        depth_norms(stack, packed)
