"""dL/dh_t and dL/dc_t of a fused layer in training, against torch's cells unrolled step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from gradflow.watching.watch import watch
from tests.cases import normal
from tests.reference.per_step import PerStep
from tests.watching.measuring import Read, Reader, assert_same_profiles, layer_of, one_sample

KINDS = ("LSTM", "GRU", "RNN_TANH", "RNN_RELU")


def _data(output: Any) -> Tensor:
    return output.data if isinstance(output, PackedSequence) else output


def _weighed(values: Tensor, seed: int) -> Tensor:
    return (values * normal(*values.shape, seed=seed)).sum()


def read_outputs(rnn: Any, x: Any) -> Tensor:
    """Every output has a say."""
    return _weighed(_data(rnn(x)[0]), 1)


def read_last_output(rnn: Any, x: Any) -> Tensor:
    """The last output, both halves."""
    output = rnn(x)[0]
    return _weighed(output[:, -1] if rnn_of(rnn).batch_first else output[-1], 2)


def read_states(rnn: Any, x: Any) -> Tensor:
    """Only the final states, of all levels and directions."""
    last = rnn(x)[1]
    parts = last if isinstance(last, tuple) else (last,)
    return sum((_weighed(part, seed) for seed, part in enumerate(parts)), torch.zeros(()))


def read_top_state(rnn: Any, x: Any) -> Tensor:
    """h_n of the last level's last direction."""
    last = rnn(x)[1]
    return _weighed(last[0][-1] if isinstance(last, tuple) else last[-1], 3)


def read_cell_state(rnn: Any, x: Any) -> Tensor:
    """c_n alone."""
    return _weighed(rnn(x)[1][1], 4)


def read_both(rnn: Any, x: Any) -> Tensor:
    """Outputs, states, and a state of one's own to begin with."""
    layer = rnn_of(rnn)
    cells = layer.num_layers * (2 if layer.bidirectional else 1)
    h = normal(cells, 3, layer.proj_size or layer.hidden_size, seed=5)
    c = normal(cells, 3, layer.hidden_size, seed=6)
    output, last = rnn(x, (h, c) if isinstance(layer, nn.LSTM) else h)
    parts = last if isinstance(last, tuple) else (last,)
    return _weighed(_data(output), 7) + sum(part.square().sum() for part in parts)


def rnn_of(rnn: Any) -> nn.RNNBase:
    """Return torch's layer, of itself or of its unrolled twin."""
    return rnn.layer if isinstance(rnn, PerStep) else rnn


def check(layer: nn.RNNBase, read: Read, x: Any, tolerance: float = 1e-10) -> None:
    """Assert that a sample of a training step is what the unrolled twin's graph gives."""
    twin = PerStep(layer)
    loss = read(twin, x)
    assert_same_profiles(one_sample(Reader(layer, read), x), loss, twin, tolerance=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, False), (2, True)], ids=["plain", "stacked both ways"])
@pytest.mark.parametrize("read", [read_outputs, read_last_output, read_states, read_both])
def test_every_layer_and_loss_as_unrolled(kind: str, shape: tuple[int, bool], read: Read):
    """The closed forms are the gradients of the unrolled graph, whatever the loss reads."""
    levels, both = shape
    layer = layer_of(kind, 3, 5, levels, bidirectional=both)
    check(layer, read, normal(7, 3, 3, seed=9))


@pytest.mark.parametrize("read", [read_top_state, read_cell_state])
def test_a_loss_on_one_state_alone(read: Read):
    """h_n of the top or c_n of all: no gradient comes by the output."""
    check(layer_of("LSTM", 3, 5, 2), read, normal(7, 3, 3, seed=9))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("sorted_", [True, False])
@pytest.mark.parametrize("read", [read_outputs, read_states, read_both])
def test_packed_sequences(kind: str, sorted_: bool, read: Read):
    """Distances count from each sample's own end, whatever order the batch is packed in."""
    lengths = torch.tensor([7, 4, 2] if sorted_ else [2, 7, 4])
    packed = pack_padded_sequence(normal(7, 3, 3, seed=9), lengths, enforce_sorted=sorted_)
    check(layer_of(kind, 3, 5, 2, bidirectional=True), read, packed)


@pytest.mark.parametrize("read", [read_outputs, read_last_output])
def test_batch_first(read: Read):
    """The layout of the data is the layer's own."""
    check(layer_of("GRU", 3, 5, 2, batch_first=True), read, normal(3, 7, 3, seed=9))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("read", [read_outputs, read_states])
def test_one_sequence_without_a_batch(kind: str, batch_first: bool, read: Read):
    """(time, input) is a batch of one, wherever the layer puts its batch."""
    check(
        layer_of(kind, 3, 5, bidirectional=True, batch_first=batch_first),
        read,
        normal(7, 3, seed=9),
    )


@pytest.mark.parametrize("options", [{"bias": False}, {"proj_size": 2}])
def test_without_bias_and_with_a_projection(options: dict[str, Any]):
    """h is narrower than c with a projection, and both have their gradient."""
    check(layer_of("LSTM", 3, 5, 2, bidirectional=True, **options), read_both, normal(7, 3, 3))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("how", ["plain", "batch first", "packed"])
def test_dropout_between_layers_has_the_very_masks_of_the_step(kind: str, how: str):
    """The masks are drawn again from where the generator stood, so the numbers are the step's."""
    layer = layer_of(kind, 3, 5, 3, bidirectional=True, dropout=0.4, batch_first=how != "plain")
    x = normal(*((7, 3) if how == "plain" else (3, 7)), 3, seed=9)
    given: Any = x
    if how == "packed":
        lengths = torch.tensor([4, 7, 2])
        given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    # the twin drops by torch's own dropout, level after level, from the same seed
    torch.manual_seed(11)
    ones = torch.ones(*((13,) if how == "packed" else (7, 3)), 10, dtype=torch.float64)
    twin = PerStep(layer, {level: nn.functional.dropout(ones, 0.4) for level in (1, 2)})
    loss = read_outputs(twin, given)
    torch.manual_seed(11)
    torch.testing.assert_close(loss, read_outputs(layer, given), rtol=1e-12, atol=1e-12)
    torch.manual_seed(11)
    sample = one_sample(Reader(layer, read_outputs), given)
    assert_same_profiles(sample, loss, twin)
    assert not [note for each in sample.layers for note in each.notes if "differs" in note]


def test_weights_are_those_of_the_forward_pass():
    """An optimizer that moves far does not move the numbers of the step that it ends."""
    layer = layer_of("LSTM", 3, 5)
    x = normal(7, 3, 3, seed=9)
    twin = PerStep(layer)
    model = Reader(layer, read_outputs)
    before = layer.weight_hh_l0.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=100.0)
    with watch(model, every=1) as flow:
        model(x).backward()
        optimizer.step()
    assert (layer.weight_hh_l0 - before).abs().max() > 10.0
    assert_same_profiles(flow.samples[0], read_outputs(twin, x), twin)
