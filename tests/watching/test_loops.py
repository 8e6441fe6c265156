"""Layers and cells called several times in an update: in loops, for two inputs, with cut states."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import GRU
from gradflow.watching.watch import watch
from tests.cases import normal
from tests.data.inspected_models import OwnNet
from tests.reference.per_step import PerStep
from tests.watching.measuring import (
    Reader,
    assert_same_curve,
    assert_same_profiles,
    layer_at,
    layer_of,
    one_sample,
)

Parts = tuple[Tensor, ...]
CELLS = {
    "LSTM": lambda: nn.LSTMCell(3, 5),
    "GRU": lambda: nn.GRUCell(3, 5),
    "RNN": lambda: nn.RNNCell(3, 5),
    "relu": lambda: nn.RNNCell(3, 5, nonlinearity="relu"),
    "own": lambda: OwnNet().cell,
    "gradflow": lambda: GRU(3, 5, reset="before"),
}


class CellLoop(nn.Module):
    """A loop over a cell; the loss reads h at `reads`, and the state is detached before `cut`."""

    def __init__(self, cell: nn.Module, reads: tuple[int, ...], cut: int | None = None) -> None:
        super().__init__()
        self.cell, self.reads, self.cut = cell, reads, cut
        self.visited: list[Parts] = []

    def forward(self, x: Tensor) -> Tensor:
        self.visited.clear()
        two = isinstance(self.cell, nn.LSTMCell)
        parts: Parts = (torch.zeros(x.shape[1], 5, dtype=x.dtype),) * (2 if two else 1)
        loss = torch.zeros((), dtype=x.dtype)
        for t, row in enumerate(x):
            if t == self.cut:
                parts = tuple(part.detach() for part in parts)
            new = self.cell(row, parts if two else parts[0])
            parts = tuple(new) if two else (new,)
            self.visited.append(parts)
            if t in self.reads:
                loss = loss + (parts[0] * normal(*parts[0].shape, seed=t)).sum()
        return loss


def loop_curves(model: CellLoop, x: Tensor) -> list[list[float]]:
    """Return log10 of each part's gradient by distance from the end, by plain autograd."""
    loss = model(x)
    nodes = [part for state in model.visited for part in state]
    gradients = torch.autograd.grad(loss, nodes, allow_unused=True)
    logs = [-math.inf if g is None else float(g.norm().log10()) for g in gradients]
    count = len(model.visited[0])
    return [logs[part::count][::-1] for part in range(count)]


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("reads", [(6,), (0, 3, 6)], ids=["the last step", "three steps"])
def test_a_loop_over_a_cell_is_one_run(kind: str, reads: tuple[int, ...]):
    """torch's cells, gradflow's and a user's: a call a step, and one profile of them all."""
    torch.manual_seed(4)
    model = CellLoop(CELLS[kind]().double(), reads)
    x = normal(7, 3, 3, seed=9)
    curves = loop_curves(model, x)
    (layer,) = one_sample(model, x).layers
    assert_same_curve(layer.log10_dL_dh, curves[0])
    if len(curves) == 2:
        assert_same_curve(layer.log10_dL_dc, curves[1])
    assert (layer.steps, layer.calls, layer.cut_at) == (7, 1, None)
    if kind in ("LSTM", "GRU", "RNN", "relu"):
        assert layer.arrives == (0, 6 - min(reads))


@pytest.mark.parametrize("kind", ["LSTM", "own"])
def test_a_detached_state_in_a_loop_is_a_cut(kind: str):
    """Before the cut every gradient is exactly zero, and no number underflowed."""
    torch.manual_seed(4)
    model = CellLoop(CELLS[kind]().double(), (6,), cut=4)
    x = normal(7, 3, 3, seed=9)
    curves = loop_curves(model, x)
    (layer,) = one_sample(model, x).layers
    assert_same_curve(layer.log10_dL_dh, curves[0])
    assert layer.log10_dL_dh[3:] == (None,) * 4
    assert (layer.steps, layer.cut_at) == (7, 3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN_TANH"])
def test_a_layer_called_for_one_step_at_a_time(kind: str):
    """Such a decoder's calls go on from each other: the profile is that of one long call."""
    layer = layer_of(kind, 3, 5, 2)
    x = normal(7, 3, 3, seed=9)

    def stepwise(rnn: Any, given: Tensor) -> Tensor:
        state, outputs = None, []
        for row in given:
            output, state = rnn(row.unsqueeze(0), state)
            outputs.append(output)
        return (torch.cat(outputs)[-2:] * normal(2, 3, 5, seed=1)).sum()

    twin = PerStep(layer)
    loss = (twin(x)[0][-2:] * normal(2, 3, 5, seed=1)).sum()
    sample = one_sample(Reader(layer, stepwise), x)
    assert_same_profiles(sample, loss, twin)
    assert {each.arrives for each in sample.layers} == {(0, 1)}
    assert {each.calls for each in sample.layers} == {1}


def test_two_inputs_through_one_layer_are_two_calls():
    """A layer that reads two sequences (as siamese networks do) has a profile for each."""
    layer = layer_of("GRU", 3, 5)

    def both(rnn: Any, given: tuple[Tensor, Tensor]) -> Tensor:
        one, other = (rnn(x)[1] for x in given)
        return (one * other).sum()

    pair = normal(7, 3, 3, seed=1), normal(4, 3, 3, seed=2)
    twin = PerStep(layer)
    loss = both(twin, pair)
    sample = one_sample(Reader(layer, both), pair)
    assert_same_profiles(sample, loss, twin, call=0)
    assert_same_profiles(sample, loss, twin, call=1)
    assert [(each.call, each.calls, each.steps) for each in sample.layers] == [(0, 2, 7), (1, 2, 4)]


def test_a_layer_on_top_of_another_call_of_itself():
    """The second call reads the first one's output: gradients come by both."""
    layer = layer_of("RNN_TANH", 5, 5)

    def twice(rnn: Any, x: Tensor) -> Tensor:
        return (rnn(rnn(x)[0])[0] * normal(7, 3, 5, seed=3)).sum()

    twin = PerStep(layer)
    x = normal(7, 3, 5, seed=1)
    loss = twice(twin, x)
    sample = one_sample(Reader(layer, twice), x)
    for call in (0, 1):
        assert_same_profiles(sample, loss, twin, call=call)


class Windows(nn.Module):
    """A language model's loop: windows of one stream, the state handed on without its graph."""

    def __init__(self, *, detach: bool = True) -> None:
        super().__init__()
        self.rnn, self.state, self.detach = layer_of("LSTM", 3, 5, 2), None, detach

    def forward(self, x: Tensor) -> Tensor:
        output, state = self.rnn(x, self.state)
        self.state = tuple(part.detach() for part in state)
        return (output[-1] * normal(3, 5, seed=1)).sum()


def test_truncated_backpropagation_is_a_cut_at_the_window():
    """The first window begins from nothing; from the second on a state is handed over: a cut."""
    model = Windows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, every=1) as flow:
        for seed in range(3):
            optimizer.zero_grad()
            model(normal(6, 3, 3, seed=seed)).backward()
            optimizer.step()
    cuts = [[layer.cut_at for layer in sample.layers] for sample in flow.samples]
    assert cuts == [[None, None], [6, 6], [6, 6]]
    assert flow.samples[1].layers[0].steps == 6


@pytest.mark.parametrize(("every", "cuts"), [(1, [None, 6, 6, 6]), (2, [None, 6]), (3, [None, 6])])
def test_a_state_that_goes_on_is_known_whatever_is_sampled(every: int, cuts: list[int | None]):
    """The update before a sampled one is looked at for its last states, and nothing else."""
    model = Windows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, every=every) as flow:
        for seed in range(4):
            model(normal(6, 3, 3, seed=seed)).backward()
            optimizer.step()
    assert [sample.layers[0].cut_at for sample in flow.samples] == cuts


def test_a_first_state_of_ones_own_is_no_cut():
    """Random numbers to begin with carry nothing over."""
    layer = layer_of("GRU", 3, 5)
    model = Reader(layer, lambda rnn, x: rnn(x, torch.randn(1, 3, 5).double())[0][-1].sum())
    sample = one_sample(model, normal(7, 3, 3, seed=1), steps=3)
    assert sample.layers[0].cut_at is None


def test_windows_within_one_update_are_measured_each_from_its_own_end():
    """Three windows, three backward passes, one step: a profile of one window's length."""
    model = Windows()
    twin, state, squares = PerStep(model.rnn), None, []
    windows = [normal(6, 3, 3, seed=seed) for seed in range(3)]
    for index, x in enumerate(windows):
        output, last = twin(x, state)
        state = tuple(part.detach() for part in last)
        loss = (output[-1] * normal(3, 5, seed=1)).sum()
        nodes = [run[-1] for run in twin.calls[index][1, 0]]
        squares.append(
            sum(g.square().sum() for g in torch.autograd.grad(loss, [n[0] for n in nodes]))
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, every=1) as flow:
        for x in windows:
            model(x).backward()
        optimizer.step()
    (sample,) = flow.samples
    top = layer_at(sample, 1)
    assert (top.steps, top.cut_at, top.calls) == (6, 6, 1)
    assert top.log10_dL_dh[0] == pytest.approx(0.5 * math.log10(float(sum(squares))), abs=1e-12)


def test_accumulated_gradients_are_one_update():
    """Two halves of a batch, two backward passes, one step: the numbers of the whole batch."""
    layer = layer_of("GRU", 3, 5)

    def read(rnn: Any, x: Tensor) -> Tensor:
        return rnn(x)[0][-1].square().sum()

    x = normal(7, 6, 3, seed=1)
    twin = PerStep(layer)
    loss = read(twin, x)
    model = Reader(layer, read)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, every=1) as flow:
        for half in (x[:, :2], x[:, 2:]):
            model(half).backward()
        norm = math.log10(math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters())))
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    (sample,) = flow.samples
    assert_same_profiles(sample, loss, twin)
    assert sample.log10_parameter_gradient_norm == pytest.approx(norm, abs=1e-12)


def test_two_losses_through_one_graph_add_up():
    """A graph that is kept for a second backward pass brings a second gradient."""
    layer = layer_of("LSTM", 3, 5)
    x = normal(7, 3, 3, seed=1)
    twin = PerStep(layer)
    output = twin(x)[0]
    loss = output[-1].sum() + output[2].square().sum()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    with watch(layer, every=1) as flow:
        output = layer(x)[0]
        output[-1].sum().backward(retain_graph=True)
        output[2].square().sum().backward()
        optimizer.step()
    assert_same_profiles(flow.samples[0], loss, twin)


def test_a_clipped_gradient_is_seen_clipped():
    """A user's hook on the output changes what reaches the layer; that is what is measured."""
    layer = layer_of("LSTM", 3, 5)
    x = normal(7, 3, 3, seed=1)

    def clipped(rnn: Any, given: Tensor) -> Tensor:
        output = rnn(given)[0]
        output.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        return (output[-1] * normal(3, 5, seed=1)).sum()

    twin = PerStep(layer)
    loss = clipped(twin, x)
    assert_same_profiles(one_sample(Reader(layer, clipped), x), loss, twin)
