"""Windows of a stream, halves of a batch, two losses: several backward passes in an update."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.watching.watch import watch
from tests.cases import normal
from tests.reference.per_step import PerStep
from tests.watching.measuring import (
    Reader,
    assert_same_profiles,
    layer_at,
    layer_of,
    one_sample,
)


class Windows(nn.Module):
    """A language model's loop: windows of one stream, the state handed on without its graph."""

    def __init__(self, *, leaf: bool = False) -> None:
        super().__init__()
        self.rnn, self.state, self.leaf = layer_of("LSTM", 3, 5, 2), None, leaf

    def forward(self, x: Tensor) -> Tensor:
        output, state = self.rnn(x, self.state)
        self.state = tuple(part.detach().requires_grad_(self.leaf) for part in state)
        return (output[-1] * normal(3, 5, seed=1)).sum()


@pytest.mark.parametrize("leaf", [False, True], ids=["detached", "that asks for its gradient"])
def test_truncated_backpropagation_is_a_cut_at_the_window(leaf: bool):
    """The first window begins from nothing; from the second on a state is handed over: a cut."""
    model = Windows(leaf=leaf)
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


def test_a_learned_first_state_is_no_earlier_calls():
    """Two samples of one step each, which begin with other leaves, are two runs and no cut."""
    layer = layer_of("GRU", 3, 5)
    starts = [normal(1, 3, 5, seed=seed).requires_grad_() for seed in (1, 2)]

    def both(rnn: Any, x: Tensor) -> Tensor:
        return sum((rnn(x, start)[1].square().sum() for start in starts), torch.zeros(()))

    found = one_sample(Reader(layer, both), normal(1, 3, 3, seed=3)).layers
    assert [(each.call, each.steps, each.cut_at) for each in found] == [(0, 1, None), (1, 1, None)]


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
