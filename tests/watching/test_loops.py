"""Layers and cells called several times in an update: in loops, for two inputs, with cut states."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import GRU
from tests.cases import normal
from tests.data.inspected_models import OwnNet
from tests.reference.per_step import PerStep
from tests.watching.measuring import (
    Reader,
    assert_same_curve,
    assert_same_profiles,
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


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_cell_without_a_batch_has_the_gradients_of_a_batch_of_one(kind: str):
    """dL/dc_t holds what goes by h_t, though the c that torch returns then is a view of c."""
    torch.manual_seed(4)
    model = CellLoop(CELLS[kind]().double(), (3, 6))
    x = normal(7, 1, 3, seed=9)
    curves = loop_curves(model, x)

    def alone(cell: Any, rows: Tensor) -> Tensor:
        state, loss = None, torch.zeros((), dtype=rows.dtype)
        for t, row in enumerate(rows):
            state = cell(row, state)
            h = state[0] if kind == "LSTM" else state
            loss = loss + (h * normal(1, 5, seed=t)[0]).sum() * (t in model.reads)
        return loss

    (layer,) = one_sample(Reader(model.cell, alone), x[:, 0]).layers
    assert_same_curve(layer.log10_dL_dh, curves[0])
    if kind == "LSTM":
        assert_same_curve(layer.log10_dL_dc, curves[1])


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


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "own"])
def test_two_masked_runs_of_one_cell_are_two(kind: str):
    """A cell that reads two sentences, whose state a mask keeps where a sentence has ended."""
    torch.manual_seed(4)
    cell, two = CELLS[kind]().double(), kind == "LSTM"
    keep = torch.tensor([[1.0], [0.0]], dtype=torch.float64)

    def run(x: Tensor) -> list[Parts]:
        parts: Parts = (torch.zeros(2, 5, dtype=x.dtype),) * (1 + two)
        visited = []
        for t, row in enumerate(x):
            new = cell(row, parts if two else parts[0])
            visited.append(tuple(new) if two else (new,))
            pairs = zip(visited[-1], parts, strict=True)
            parts = tuple(keep * n + (1.0 - keep) * old if t > 1 else n for n, old in pairs)
        return visited

    def both(_: Any, given: tuple[Tensor, Tensor]) -> Tensor:
        one, other = (run(x) for x in given)
        visits.append((one, other))
        return (one[-1][0] * other[-1][0]).sum()

    visits: list[tuple[list[Parts], ...]] = []
    given = normal(6, 2, 3, seed=1), normal(4, 2, 3, seed=2)
    loss = both(cell, given)
    nodes = [[state[0] for state in each] for each in visits[0]]
    found = torch.autograd.grad(loss, [h for each in nodes for h in each])
    sample = one_sample(Reader(cell, both), given)
    assert [(x.call, x.steps, x.cut_at) for x in sample.layers] == [(0, 6, None), (1, 4, None)]
    for layer, own in zip(sample.layers, (found[:6], found[6:]), strict=True):
        assert_same_curve(layer.log10_dL_dh, [float(g.norm().log10()) for g in own][::-1])


def test_many_calls_of_one_layer_are_shown_as_one():
    """Nine windows of their own through one layer: one profile, which says so."""
    layer = layer_of("GRU", 3, 5)

    def windows(rnn: Any, x: Tensor) -> Tensor:
        return sum((rnn(x[:, k : k + 1])[0][-1].square().sum() for k in range(9)), torch.zeros(()))

    x = normal(7, 9, 3, seed=1)
    twin = PerStep(layer)
    loss = twin(x)[0][-1].square().sum()
    sample = one_sample(Reader(layer, windows), x)
    assert_same_profiles(sample, loss, twin)
    (found,) = sample.layers
    assert "9 calls in a pass are shown as one." in found.notes
