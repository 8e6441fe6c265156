"""What people asked of padded and bidirectional layers, and of batches on the wrong axis."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import Stack
from gradflow.engine.depth import depth_norms
from gradflow.engine.last_output import last_output
from gradflow.engine.masks import align_by_lag, padding_share
from gradflow.engine.sample_gradients import gradient_by_step, sample_influence
from gradflow.errors import DtypeError, SettingError, ShapeError
from tests.field_cases import FieldCase, field_case

LAST, MIXED, PADDED = map(
    field_case, ("bidirectional_last_output", "time_batch_mixup", "padding_gradient")
)
ENDS = ("forward half of the last output", "reverse half of the last output", "reverse final state")


def assert_agrees(found: Tensor, expected: object, case: FieldCase) -> None:
    """Assert equality within the case's tolerance."""
    wanted = torch.tensor(np.asarray(expected, dtype=np.float64))
    torch.testing.assert_close(found.detach(), wanted, rtol=0.0, atol=case.tolerance)


def bidirectional_lstm(name: str, layers: int) -> nn.LSTM:
    """Return the layer of the case."""
    layer = nn.LSTM(3, 4, num_layers=layers, bidirectional=True, dtype=torch.float64)
    weights = {key: torch.tensor(value) for key, value in LAST.weights(name).items()}
    layer.load_state_dict(weights)
    return layer


def test_the_reverse_half_of_the_last_output_is_no_dead_layer() -> None:
    """Gradient by step of both halves and of the reversed final state, torch's and the stack's."""
    layer, x = bidirectional_lstm("one_layer", 1), torch.tensor(LAST.arrays["x"])
    for run in (layer, Stack.from_torch(layer)):
        leaf = x.clone().requires_grad_()
        output, (h, _) = run(leaf)
        for end, target in zip(ENDS, (output[-1, :, :4], output[-1, :, 4:], h[-1]), strict=True):
            by_step = torch.linalg.vector_norm(gradient_by_step(target, leaf), dim=1)
            assert_agrees(by_step, LAST.expected["by_step"][end], LAST)


def test_the_reverse_half_has_read_one_step_and_its_state_all() -> None:
    """Exact zeros, told from the structure; for each sample at its own last step."""
    layer, x = bidirectional_lstm("one_layer", 1), torch.tensor(LAST.arrays["x"])
    lengths = LAST.arrays["lengths"].tolist()
    found = last_output(layer, x, lengths=lengths)
    assert found.steps_read.tolist() == [1, 1]
    assert torch.isfinite(found.reverse_output).nonzero().tolist() == [[5, 1], [9, 0]]
    assert torch.isfinite(found.reverse_state).sum(dim=0).tolist() == lengths
    assert torch.isfinite(found.forward_output).sum(dim=0).tolist() == lengths
    assert torch.equal(found.exact, torch.isneginf(found.reverse_output))
    deep = last_output(bidirectional_lstm("two_layer", 2), x, lengths=lengths)
    assert deep.steps_read.tolist() == lengths  # the layer below has read everything for it


def test_the_rows_of_h_n_are_layers_and_directions() -> None:
    """The last two: forward, the last output; reversed, the first one."""
    layer, x = bidirectional_lstm("two_layer", 2), torch.tensor(LAST.arrays["x"])
    stack = Stack.from_torch(layer)
    output, (h, _) = stack(x)
    assert torch.equal(h[-2], output[-1, :, :4])
    assert torch.equal(h[-1], output[0, :, 4:])
    off = (h[-1] - output[-1, :, 4:]).abs().max()
    assert_agrees(off, LAST.expected["largest_difference_of_reverse_state_and_last_output"], LAST)


def test_the_final_state_of_a_short_sample_is_that_of_its_own_run() -> None:
    """Read on into the padding it is another one, by 0.34; with lengths, h_n stands in output."""
    layer, x = bidirectional_lstm("one_layer", 1), torch.tensor(LAST.arrays["x"])
    stack, lengths = Stack.from_torch(layer), LAST.arrays["lengths"].tolist()
    _, (unpacked, _) = stack(x)
    output, (h, _) = stack(x, lengths=lengths)
    assert torch.equal(h[0, 1], output[lengths[1] - 1, 1, :4])
    assert torch.equal(h[1], output[0, :, 4:])
    off = (h - unpacked)[:, 1].abs().max()
    assert_agrees(off, LAST.expected["unpacked_state_of_the_short_sample_differs_by"], LAST)


class Forecaster(nn.Module):
    """A GRU and a head; which axis is time is what the case is about."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.rnn = nn.GRU(3, 6, batch_first=name == "right", dtype=torch.float64)
        self.out = nn.Linear(6, 1, dtype=torch.float64)
        weights = {key: torch.tensor(value) for key, value in MIXED.weights(name).items()}
        self.load_state_dict(weights)

    def forward(self, x: Tensor) -> Tensor:
        """Read (batch, time, 3): rightly, along the batch, or after a view that is no transpose."""
        if self.name == "viewed":
            batch, time, width = x.shape
            return self.out(self.rnn(x.view(time, batch, width))[0][-1])
        return self.out(self.rnn(x)[0][:, -1])


@pytest.mark.parametrize("name", ["right", "wrong", "viewed"])
def test_a_batch_on_the_wrong_axis_shows_between_samples(name: str) -> None:
    """Cross-sample gradient 0 where right; own gradient at one step only where wrong."""
    found = sample_influence(Forecaster(name), torch.tensor(MIXED.arrays["x"]))
    expected = MIXED.expected[name]
    assert_agrees(found.influence, expected["influence"], MIXED)
    assert_agrees(found.own_by_step, expected["own_by_step"], MIXED)
    assert found.largest_cross == pytest.approx(expected["largest_cross"], abs=MIXED.tolerance)
    assert (found.largest_cross == 0.0) == (name == "right")
    assert (found.largest_pair is None) == (name == "right")
    steps = {"right": [8] * 5, "wrong": [1] * 5, "viewed": [2, 1, 2, 1, 2]}[name]
    assert found.steps_with_gradient.tolist() == steps


def test_the_largest_pair_is_named() -> None:
    """Which output is moved by whose input, most of all; some outputs are enough to tell."""
    found = sample_influence(Forecaster("wrong"), torch.tensor(MIXED.arrays["x"]))
    assert found.largest_pair == (2, 1)
    assert_agrees(found.own, np.diagonal(MIXED.expected["wrong"]["influence"]), MIXED)
    two = sample_influence(Forecaster("wrong"), torch.tensor(MIXED.arrays["x"]), outputs=2)
    assert two.outputs == (0, 1)
    assert two.largest_pair == (1, 0)


def test_axes_and_outputs_of_other_forms_are_read() -> None:
    """Time first; an output for every step; a tuple; one sample alone has no neighbour."""
    layer = nn.GRU(3, 4, dtype=torch.float64)
    x = torch.tensor(MIXED.arrays["x"]).transpose(0, 1)
    found = sample_influence(layer, x, batch_axis=1, time_axis=0)
    assert found.influence.shape == (5, 5)
    assert found.largest_cross == 0.0
    assert found.steps_with_gradient.tolist() == [8] * 5
    assert sample_influence(layer, x[:, :1], batch_axis=1, time_axis=0).largest_cross == 0.0


@pytest.mark.parametrize(
    ("model", "x", "error", "words"),
    [
        (nn.Identity(), torch.zeros(2, 3, dtype=torch.int64), DtypeError, "floating.*embedding"),
        (lambda x: x.sum(), torch.zeros(2, 3), ShapeError, r"each of the 2 samples, on axis 0"),
        (lambda x: x.sum(0), torch.zeros(2, 3), ShapeError, "Say where the batch is"),
        (lambda x: "no", torch.zeros(2, 3), ShapeError, "got a str"),
        (lambda x: (), torch.zeros(2, 3), ShapeError, "got a tuple"),
        # zeros between samples would call such a model right
        (lambda x: x.detach(), torch.zeros(2, 3), DtypeError, "no gradient at all"),
        (lambda x: x.argmax(1), torch.zeros(2, 3), DtypeError, "the choice was made from"),
        (nn.Identity(), torch.zeros(3), ShapeError, "time_axis=1 is no axis of x"),
        (nn.Identity(), torch.zeros(0, 3), ShapeError, "a batch axis with a sample"),
    ],
)
def test_a_model_that_cannot_be_asked_is_told_why(model, x, error, words: str) -> None:
    """The rule, what came, the way out."""
    with pytest.raises(error, match=words):
        sample_influence(model, x)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"outputs": 0}, SettingError, "at least 1; got 0"),
        ({"batch_axis": 5}, ShapeError, "batch_axis=5 is no axis"),
        ({"batch_axis": 1}, ShapeError, "another axis for time"),
        ({"batch_axis": -1, "time_axis": 1}, ShapeError, "another axis for time"),
    ],
)
def test_axes_that_are_none_are_told(options: dict, error: type[Exception], words: str) -> None:
    """Which, and of what shape."""
    with pytest.raises(error, match=words):
        sample_influence(nn.Identity(), torch.zeros(2, 3), **options)


def test_axes_count_from_the_end_too() -> None:
    """As everywhere in torch."""
    layer, x = nn.GRU(2, 3), torch.ones(4, 2, 2)
    front = sample_influence(lambda x: layer(x)[0][-1], x, batch_axis=1, time_axis=0,
                             output_batch_axis=0)  # fmt: skip
    back = sample_influence(lambda x: layer(x)[0][-1], x, batch_axis=-2, time_axis=-3,
                            output_batch_axis=-2)  # fmt: skip
    assert torch.equal(front.influence, back.influence)


def test_a_layer_that_reads_one_way_has_no_reversed_half() -> None:
    """There is nothing to ask."""
    with pytest.raises(ShapeError, match="forward only"):
        last_output(nn.GRU(2, 3), torch.zeros(4, 1, 2))


def test_what_does_not_depend_on_the_input_has_no_gradient() -> None:
    """Zeros, and no error: what was varied does not reach it."""
    x = torch.ones(3, 2, 4, requires_grad=True)
    assert not torch.any(gradient_by_step(torch.ones(2), x))


def test_a_model_may_overwrite_what_it_reads() -> None:
    """As `x.mul_(2)` does, and no leaf of a graph allows."""
    found = sample_influence(lambda x: x.mul_(2.0).sum(1), torch.ones(2, 3))
    assert found.influence.tolist() == pytest.approx(np.eye(2) * math.sqrt(12.0))


def padded_lstm() -> nn.LSTM:
    """Return the layer of the padding case."""
    layer = nn.LSTM(3, 5, batch_first=True, dtype=torch.float64)
    layer.load_state_dict({k: torch.tensor(v) for k, v in PADDED.weights("layer").items()})
    return layer


def test_padding_that_is_read_carries_nearly_all_of_a_short_samples_gradient() -> None:
    """0.976 and 0.995 of it unpacked, exactly 0 with lengths; final states differ by up to 0.18."""
    layer, lengths = padded_lstm(), PADDED.arrays["lengths"].tolist()
    stack, x = Stack.from_torch(layer), torch.tensor(PADDED.arrays["x"])
    gradients, finals = {}, {}
    for name, given in (("unpacked", None), ("packed", lengths)):
        leaf = x.clone().requires_grad_()
        _, (h, c) = stack(leaf, lengths=given)
        gradients[name] = gradient_by_step(h, leaf, batch_axis=0, time_axis=1)
        finals[name] = torch.cat([h, c]).transpose(0, 1).flatten(1)
        assert_agrees(gradients[name].T, PADDED.expected[name], PADDED)
    assert_agrees(
        padding_share(gradients["unpacked"], lengths), PADDED.expected["share_on_padding"], PADDED
    )
    assert padding_share(gradients["packed"], lengths).tolist() == [0.0, 0.0, 0.0]
    outside = torch.arange(12).unsqueeze(1) >= torch.tensor(lengths)
    assert not torch.any(gradients["packed"][outside])


def test_curves_align_at_each_samples_own_end_and_say_how_many() -> None:
    """By time step the mean has a cliff where samples end; by lag it falls, with n beside it."""
    packed = torch.tensor(PADDED.expected["packed"], dtype=torch.float64).T
    lengths = PADDED.arrays["lengths"].tolist()
    aligned = align_by_lag(packed, lengths)
    assert aligned.count.tolist() == PADDED.expected["count_by_lag"]
    assert_agrees(aligned.mean(), PADDED.expected["mean_by_lag"], PADDED)
    assert_agrees(packed.mean(dim=1), PADDED.expected["naive_mean_by_step"], PADDED)
    assert bool((aligned.mean().diff() < 0).all())
    assert not bool((packed.mean(dim=1).diff() > 0).all())


def test_the_exact_norm_is_zero_beyond_a_samples_end_and_nowhere_else() -> None:
    """||dh_n/dx_t|| of the stack: -inf with an exact reason in the padding, finite before it."""
    stack, lengths = Stack.from_torch(padded_lstm()), PADDED.arrays["lengths"].tolist()
    run = stack.run(torch.tensor(PADDED.arrays["x"]).transpose(0, 1), lengths=lengths)
    norms = depth_norms(stack, run, ("h", "h"))
    own = torch.arange(12).unsqueeze(1) < torch.tensor(lengths)
    assert torch.equal(torch.isfinite(norms.input_log_norm), own)
    assert torch.equal(norms.input_exact, ~own)
