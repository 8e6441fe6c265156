"""A layer unrolled in time equals the fused one, and its states have their true gradients."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from gradflow.cells.torch_layers import cells_of_layer
from gradflow.engine.state_gradients import state_gradients
from gradflow.engine.unrolled import CellTrace, UnrolledLayer

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


def unrolled(layer: nn.RNNBase) -> UnrolledLayer:
    """The twin of a layer, in its own dtype."""
    directions = 2 if layer.bidirectional else 1
    cells = cells_of_layer(layer)
    return UnrolledLayer(cells, directions=directions, batch_first=layer.batch_first)


def fused(kind: str, seed: int = 0, **options: object) -> nn.RNNBase:
    """A layer of torch's with random weights, in float64."""
    torch.manual_seed(seed)
    return KINDS[kind](3, 5, **options).double()


def flat(state: object) -> Tensor:
    """All parts of a state in one row."""
    parts = [state] if isinstance(state, Tensor) else list(state)
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize(
    ("kind", "layers", "both", "batch_first"),
    list(itertools.product(KINDS, (1, 2), (False, True), (False, True))),
)
def test_the_twin_equals_the_fused_layer(kind: str, layers: int, both: bool, batch_first: bool):
    """Same output and last states, to rounding, in either layout and from any first state."""
    layer = fused(kind, num_layers=layers, bidirectional=both, batch_first=batch_first)
    x = torch.randn(4, 4, 3).double()
    _, begin = layer(torch.randn(4, 4, 3).double())
    for start in (None, begin):
        output, state = layer(x, start)
        mine, last = unrolled(layer)(x, start)
        assert torch.allclose(mine, output, rtol=0, atol=1e-14)
        assert torch.allclose(flat(last), flat(state), rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_sequence_comes_back_packed(kind: str):
    """Samples of different lengths, in any order, in both directions."""
    layer = fused(kind, num_layers=2, bidirectional=True)
    packed = pack_padded_sequence(torch.randn(6, 3, 3).double(), [2, 6, 4], enforce_sorted=False)
    (output, state), (mine, last) = layer(packed), unrolled(layer)(packed)
    assert torch.allclose(pad_packed_sequence(mine)[0], pad_packed_sequence(output)[0], atol=1e-14)
    assert torch.allclose(flat(last), flat(state), atol=1e-14)


def test_a_projection_and_one_sequence_without_a_batch_axis_are_taken():
    """The projected h is narrower than c; a single sequence has no batch axis in its answer."""
    layer = fused("lstm", proj_size=2, num_layers=2)
    x = torch.randn(7, 3).double()
    (output, state), (mine, last) = layer(x), unrolled(layer)(x)
    assert mine.shape == output.shape == (7, 2)
    assert torch.allclose(flat(last), flat(state), atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_narrow_layer_is_met_within_a_few_of_its_roundings(dtype: torch.dtype):
    """The float64 twin of a float32 or bfloat16 layer differs by that format's rounding alone."""
    layer = fused("gru").to(dtype)
    x = torch.randn(20, 2, 3).to(dtype)
    wide = UnrolledLayer([c.double() for c in cells_of_layer(layer)], directions=1)
    gap = (wide(x)[0] - layer(x)[0].double()).abs().max().item()
    assert 0 < gap < 8 * torch.finfo(dtype).eps


def by_hand(layer: nn.RNNBase, x: Tensor, kind: str) -> list[tuple[Tensor, ...]]:
    """The gradient of the last h's sum at each part of each state, by torch's own cell."""
    cell = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}[kind](3, 5).double()
    cell.load_state_dict({n.removesuffix("_l0"): p for n, p in layer.state_dict().items()})
    state: object = None
    visited: list[tuple[Tensor, ...]] = []
    for row in x:
        state = cell(row, state)
        visited.append((state,) if isinstance(state, Tensor) else tuple(state))
    return [torch.autograd.grad(visited[-1][0].sum(), s, retain_graph=True) for s in visited[:-1]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_a_state_is_not_the_gradient_of_the_output(kind: str):
    """The fused output reads 0 at every step but the last; the states have the true gradient."""
    layer, x = fused(kind), torch.randn(9, 4, 3).double()
    output, _ = layer(x)
    output.retain_grad()
    output[-1].sum().backward()
    assert output.grad[:-1].abs().max() == 0.0
    twin = unrolled(layer)
    found = state_gradients(twin(x)[0][-1].sum(), twin.calls[0])[0]
    for part, total in enumerate(found.total):
        for t, gradient in enumerate(by_hand(layer, x, kind)):
            right = gradient[part].norm().item()
            # two different sums of the same numbers, in float64
            assert total[t].item() == pytest.approx(math.log10(right), abs=1e-9)


def test_gradients_below_the_smallest_float64_are_seen():
    """0.5^1500 is 10^-451: zero in float64, and still no zero."""
    layer = nn.LSTM(1, 2).double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    twin = unrolled(layer)
    output, (_, c) = twin(torch.zeros(1500, 1, 1).double())
    found = state_gradients(c.sum(), twin.calls[0])[0]
    wanted = 1499 * math.log10(0.5) + 0.5 * math.log10(2.0)
    assert found.total[1][0].item() == pytest.approx(wanted, abs=1e-9)
    # h is read by nothing here: its weights are zero
    assert found.total[0][0].item() == -math.inf
    assert output.shape == (1500, 1, 2)


def test_padding_has_no_state_and_no_gradient():
    """A padded position is nan: a sample that ended has no state there."""
    layer = fused("lstm", bidirectional=True)
    twin = unrolled(layer)
    output = twin.run(torch.randn(6, 2, 3).double(), torch.tensor([6, 2]))
    for found in state_gradients(output.sum(), twin.calls[0]):
        assert torch.isnan(found.by_sample[0][2:, 1]).all()
        assert torch.isfinite(found.by_sample[0][:, 0]).all()
        assert torch.isfinite(found.total[0]).all()


def test_the_state_before_a_position_is_the_one_that_was_read_from():
    """Forward it stands one position earlier, reversed one position later."""
    layer = fused("gru", bidirectional=True)
    twin = unrolled(layer)
    twin(torch.randn(5, 2, 3).double())
    forward, reverse = twin.calls[0]
    assert isinstance(forward, CellTrace)
    assert torch.equal(forward.before[0][1], forward.states[0][0])
    assert torch.equal(reverse.before[0][1], reverse.states[2][0])
    assert torch.equal(reverse.before[0][4], reverse.start[0])


def test_a_loss_that_does_not_read_a_layer_is_told():
    """No path in the graph: not a small gradient but none."""
    layer, x = fused("rnn"), torch.randn(4, 1, 3).double()
    twin = unrolled(layer)
    output, _ = twin(x)
    other = torch.ones((), dtype=torch.float64, requires_grad=True)
    found = state_gradients(other * output.detach().sum(), twin.calls[0])[0]
    assert not found.connected
    assert torch.isneginf(found.total[0]).all()
