"""A watched training is the same training: weights, random numbers, graph, memory, and faults."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.optimizer import _global_optimizer_post_hooks as after_steps

from gradflow.watching.capture.call import Call
from gradflow.watching.capture.hooks import Arrival
from gradflow.watching.watch import Watch, watch
from tests.data.inspected_models import OwnNet


class Tagger(nn.Module):
    """Two layers both ways with dropout, a cell in a loop, and dropout of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 5, 2, bidirectional=True, dropout=0.3)
        self.cell = nn.GRUCell(10, 4)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])
        h = x.new_zeros(x.shape[1], 4)
        for row in self.drop(output):
            h = self.cell(row, h)
        return self.head(h).square().mean()


def trained(make: Any, *, every: int | None, updates: int = 6) -> tuple[list[Tensor], Tensor, Any]:
    """Train from a seed; return all weights, the generator's state, and the samples."""
    torch.manual_seed(5)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    flow = None if every is None else watch(model, every=every)
    for _ in range(updates):
        optimizer.zero_grad()
        model(torch.randn(7, 4, 3), torch.tensor([3, 7, 5, 2])).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        with torch.no_grad():
            model(torch.randn(7, 4, 3), torch.tensor([3, 7, 5, 2]))
    if flow is not None:
        flow.close()
    weights = [parameter.detach().clone() for parameter in model.parameters()]
    return weights, torch.get_rng_state(), None if flow is None else flow.samples


class Own(nn.Module):
    """A user's cell in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.net = OwnNet()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.net(x).square().mean()


@pytest.mark.parametrize("make", [Tagger, Own])
@pytest.mark.parametrize("every", [1, 3])
def test_weights_and_random_numbers_are_the_same_bit_for_bit(make: Any, every: int):
    """Packed, dropped, stacked, looped, clipped: with a watch as without one."""
    plain, state, _ = trained(make, every=None)
    watched, state_watched, samples = trained(make, every=every)
    assert len(samples) == 6 // every
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    assert torch.equal(state, state_watched)


def small() -> tuple[nn.LSTM, torch.optim.Optimizer]:
    """Return a layer and its optimizer."""
    torch.manual_seed(0)
    layer = nn.LSTM(3, 5)
    return layer, torch.optim.SGD(layer.parameters(), lr=0.1)


def update(layer: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Do one update."""
    optimizer.zero_grad()
    layer(torch.randn(7, 4, 3))[0][-1].sum().backward()
    optimizer.step()


def watched_updates(
    layer: nn.Module, optimizer: torch.optim.Optimizer, count: int, *callbacks: Any
) -> Watch:
    """Do some updates under a watch that samples each."""
    with watch(layer, every=1) as flow:
        for callback in callbacks:
            flow.subscribe(callback)
        for _ in range(count):
            update(layer, optimizer)
    return flow


def alive(kind: type) -> int:
    """Count the objects of a kind, without collecting any."""
    return sum(issubclass(type(each), kind) for each in gc.get_objects())


def hooks_of(module: nn.Module) -> int:
    """Count all hooks on a module's parts and parameters."""
    found = 0
    for part in module.modules():
        found += len(part._forward_hooks) + len(part._forward_pre_hooks)
    for parameter in module.parameters():
        found += len(parameter._post_accumulate_grad_hooks or ())
    return found


def test_nothing_is_left_when_the_watch_is_closed():
    """Hooks on modules, parameters and optimizers go; close() may be called again."""
    before = len(after_steps)
    layer, optimizer = small()
    flow = watch(layer, every=2)
    update(layer, optimizer)
    assert hooks_of(layer) > 0
    assert len(after_steps) == before + 1
    flow.close()
    flow.close()
    assert hooks_of(layer) == 0
    assert len(after_steps) == before
    update(layer, optimizer)
    assert len(flow.samples) == 1


def test_hooks_go_when_the_loop_raises():
    """The error is the user's own, and the update that failed is no sample."""
    layer, optimizer = small()
    flow = watch(layer, every=1)

    def fails() -> None:
        with flow:
            update(layer, optimizer)
            layer(torch.randn(7, 4, 3))[0].sum().backward()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert hooks_of(layer) == 0
    assert [sample.update for sample in flow.samples] == [0]


def test_between_samples_parameters_and_graph_have_no_hooks():
    """Only the two hooks of the layer stay, which do nothing until a sample is due."""
    layer, optimizer = small()
    with watch(layer, every=3):
        assert hooks_of(layer) == 2 + len(list(layer.parameters()))
        update(layer, optimizer)
        assert hooks_of(layer) == 2
        before = alive(Arrival)
        answer = layer(torch.randn(7, 4, 3))
        assert alive(Arrival) == before
        del answer


def test_no_graph_and_no_tensor_stays_alive():
    """After an update whose loss is gone there is no tensor more than before."""
    layer, optimizer = small()
    update(layer, optimizer)
    gc.collect()
    before = alive(Tensor)
    with watch(layer, every=1) as flow:
        update(layer, optimizer)
        update(layer, optimizer)
        assert len(flow.samples) == 2
    assert alive(Tensor) == before


def test_a_loss_that_is_kept_keeps_no_copy():
    """Loops that append their losses keep the graphs, but none of what the watch had copied."""
    layer, optimizer = small()
    update(layer, optimizer)
    losses = []
    with watch(layer, every=1) as flow:
        for _ in range(3):
            optimizer.zero_grad()
            losses.append(layer(torch.randn(70, 40, 3))[0][-1].sum())
            losses[-1].backward()
            optimizer.step()
        sizes = [
            each.x.numel() + len(each.arrived) for each in gc.get_objects() if type(each) is Call
        ]
    assert len(flow.samples) == len(losses) == 3
    assert len(sizes) >= 3
    assert not any(sizes)


def test_a_pass_without_a_backward_one_is_let_go():
    """A validation that forgot no_grad keeps its calls no longer than its graph."""
    layer, optimizer = small()
    before = alive(Call)
    with watch(layer, every=1) as flow:
        answer = layer(torch.randn(7, 4, 3))
        assert alive(Call) == before + 1
        del answer
        assert alive(Call) == before
        update(layer, optimizer)
    (sample,) = flow.samples
    assert sample.layers[0].calls == 1


def test_evaluation_in_between_is_ignored():
    """Passes of model.eval() and under no_grad are no training, whatever they are fed."""
    layer, optimizer = small()
    with watch(layer, every=1) as flow:
        for _ in range(2):
            layer.eval()
            layer(torch.randn(9, 4, 3))
            with torch.no_grad():
                layer.train()(torch.randn(11, 4, 3))
            update(layer, optimizer)
    assert [[each.steps for each in sample.layers] for sample in flow.samples] == [[7], [7]]


def test_a_copied_or_stored_model_is_not_watched():
    """Averaged copies and whole models in files carry no hook that does anything."""
    layer, optimizer = small()
    with watch(layer, every=1) as flow:
        copied = copy.deepcopy(layer)
        stored = pickle.loads(pickle.dumps(layer))
        file = io.BytesIO()
        torch.save(layer, file)
        update(layer, optimizer)
        for other in (copied, stored):
            other(torch.randn(7, 4, 3))[0].sum().backward()
        assert len(flow.samples) == 1
    assert file.tell() < 20_000
