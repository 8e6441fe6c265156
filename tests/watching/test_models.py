"""Models that are compiled, checkpointed, normed, masked, differentiated twice, of one's own."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradflow.watching.faults import WatchWarning
from gradflow.watching.watch import watch
from tests.reference.per_step import PerStep
from tests.watching.measuring import (
    Reader,
    X,
    assert_same_curve,
    assert_same_profiles,
    last_output,
    layer_at,
    layer_of,
    one_update,
    twin_of,
)
from tests.watching.test_loops import CellLoop


def test_a_compiled_models_layers_are_seen():
    """torch.compile leaves torch's recurrent layers as calls, with their hooks."""
    torch._dynamo.reset()
    layer = layer_of("LSTM", 3, 5, 2)
    loss, twin = twin_of(layer)
    model = Reader(layer, last_output)
    compiled = torch.compile(model, backend="aot_eager")
    compiled(X)  # compiled before the watch
    assert_same_profiles(one_update(compiled, X), loss, twin)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_compiled_loop_over_a_cell_is_told(when: str):
    """Its steps are one traced graph without hooks: one clear word, and what to do."""
    torch._dynamo.reset()
    torch.manual_seed(4)
    model = CellLoop(nn.GRUCell(3, 5).double(), (6,))
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if when == "after":
        compiled(X).backward()
    flow = watch(compiled, every=1)

    def train() -> None:
        for _ in range(3):
            compiled(X).backward()
            optimizer.step()

    with pytest.warns(WatchWarning, match=r"torch\.compile traces, where a cell") as told:
        train()
    flow.close()
    assert (len(told), flow.samples) == (1, [])


def test_a_model_is_traced_as_if_it_were_not_watched():
    """torch.jit.trace runs a model several times and compares: no copy of ours may be in it."""
    layer = layer_of("LSTM", 3, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = torch.jit.trace(layer, X)
        with watch(layer, every=1):
            traced = torch.jit.trace(layer, X)
    one, other = (re.sub(r"___torch_mangle_\d+\.", "", str(x.graph)) for x in (traced, plain))
    assert one == other


def test_a_checkpointed_layer_is_measured_once():
    """What is run again in the backward pass is no second call."""
    layer = layer_of("LSTM", 3, 5, 2, dropout=0.3)

    def saved(rnn: Any, x: Tensor) -> Tensor:
        return checkpoint(rnn, x, use_reentrant=False)[0][-1].square().sum()

    other = layer_of("LSTM", 3, 5, 2, dropout=0.3)
    torch.manual_seed(6)
    plain = one_update(Reader(other, last_output), X)
    torch.manual_seed(6)
    found = one_update(Reader(layer, saved), X)
    assert [each.calls for each in found.layers] == [1, 1]
    for one, other in zip(found.layers, plain.layers, strict=True):
        assert_same_curve(one.log10_dL_dh, other.log10_dL_dh)


def test_weights_that_are_normed_are_those_of_the_step():
    """Spectral norm moves its vectors at every use in training: they are not asked for again."""

    def model() -> nn.Module:
        layer = layer_of("GRU", 3, 5)
        nn.utils.parametrizations.spectral_norm(layer, "weight_hh_l0")
        return Reader(layer, last_output)

    plain, watched = model(), model()
    for each in (plain, watched):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        flow = watch(each, every=1) if each is watched else None
        for _ in range(3):
            optimizer.zero_grad()
            each(X).backward()
            optimizer.step()
    assert flow is not None
    flow.close()
    states = zip(plain.state_dict().values(), watched.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in states)
    assert len(flow.samples) == 3
    assert not flow.samples[-1].layers[0].notes


def test_all_that_is_made_is_made_where_the_data_are():
    """With a default device that holds no numbers, any tensor made without a place would fail."""
    layer = layer_of("LSTM", 3, 5, 2, bidirectional=True, dropout=0.2)
    torch.manual_seed(6)
    expected = one_update(Reader(layer, last_output), X)
    layer = layer_of("LSTM", 3, 5, 2, bidirectional=True, dropout=0.2)
    torch.manual_seed(6)
    h = torch.zeros(4, 3, 5, dtype=torch.float64)
    model = Reader(layer, lambda rnn, x: rnn(x, (h, h))[0][-1].square().sum())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    flow = watch(model, every=1)
    loss = model(X)
    ones = torch.ones_like(loss)
    with torch.device("meta"):
        loss.backward(ones)
        optimizer.step()
    flow.close()
    for one, other in zip(flow.samples[0].layers, expected.layers, strict=True):
        assert_same_curve(one.log10_dL_dh, other.log10_dL_dh)


def test_a_second_order_pass_is_left_out():
    """A gradient penalty goes through the graph with create_graph=True: it is no training pass."""
    layer = layer_of("GRU", 3, 5)
    loss, twin = twin_of(layer)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    with watch(layer, every=1) as flow:
        found = last_output(layer, X)
        torch.autograd.grad(found, list(layer.parameters()), create_graph=True)
        found.backward()
        optimizer.step()
    (sample,) = flow.samples
    assert "create_graph=True" in sample.notes[0]
    assert_same_profiles(sample, loss, twin)


def test_a_layer_whose_output_is_not_used_has_no_gradient():
    """It was called and the loss does not depend on it: that is a finding, and no missing layer."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = layer_of("GRU", 3, 5), layer_of("GRU", 3, 4)

        def forward(self, x: Tensor) -> Tensor:
            self.unused(x)
            return last_output(self.used, x)

    model = Two()
    sample = one_update(model, X)
    used, unused = sample.layers
    assert (used.name, unused.name) == ("used", "unused")
    assert (unused.steps, unused.arrives, unused.log10_dL_dh) == (7, None, (None,) * 7)
    assert unused.horizon_reason == "no gradient"
    assert layer_at(sample).arrives == (0, 0)


@pytest.mark.parametrize("how", ["plain", "batch first", "alone", "alone, batch first"])
def test_an_output_that_is_written_into_is_no_other(how: str):
    """A mask or an inplace dropout on the output leaves the gradient of what the layer gave."""
    layer = layer_of("LSTM", 3, 5, batch_first=how.endswith("batch first"))
    x = X[:, 0] if how.startswith("alone") else X
    x = X.transpose(0, 1).contiguous() if how == "batch first" else x

    def written(rnn: Any, given: Tensor) -> Tensor:
        output = rnn(given)[0]
        output[1] = 0.0
        return output.mul_(2.0).square().sum()

    twin = PerStep(layer)
    loss = written(twin, x)
    assert_same_profiles(one_update(Reader(layer, written), x), loss, twin)


def test_a_subclass_with_another_answer_is_left_out():
    """What answers otherwise than torch's layers is told once; the others are watched."""

    class Outputs(nn.LSTM):
        def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x)[0]

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Outputs(3, 4, dtype=torch.float64), layer_of("GRU", 4, 5)

        def forward(self, x: Tensor) -> Tensor:
            return last_output(self.second, self.first(x))

    with pytest.warns(WatchWarning, match="leaves out first") as told:
        sample = one_update(Two(), X)
    assert len(told) == 1
    assert [layer.name for layer in sample.layers] == ["second"]
