"""Huge numbers in gates, inputs and states: where they are put, and what is read off the run."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gradflow.cells import ForeignCell, State
from gradflow.engine.saturation.measure import (
    Feed,
    largest,
    mean_gradients,
    measure,
    root_of_largest,
    rounded,
)
from gradflow.engine.saturation.places import gate_places, load, open_places
from gradflow.engine.saturation.subjects import Subject, user_subject
from gradflow.engine.threads import threads_for
from tests.engine.saturating import BUILT_IN, built_in, feed_of, hand_written, loaded, place

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_kind = pytest.mark.parametrize("kind", BUILT_IN)
GATED = {"lstm": ["input", "forget", "output"], "gru": ["reset", "update"]}


def test_a_gate_whose_pre_activation_is_1e4_is_exactly_shut_or_open():
    """sigmoid(-1e4) is 0 and sigmoid(1e4) is 1: all of the gate's derivatives are zero."""
    for value in (1e4, -1e4):
        subject = built_in("lstm")
        measured = measure(subject, loaded(subject, "forget gate", value))
        assert measured.all_finite
        assert measured.gates_in_range
        assert measured.zero_slope_fraction("forget") == 1.0
        assert measured.zero_slope_fraction("input") == 0.0
        assert measured.zero_slope_fraction(None) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("dtype", "shut"), [(torch.float64, 0.0), (torch.float32, 1.0)])
def test_a_shut_gate_keeps_its_slope_as_long_as_its_exponential_fits(
    dtype: torch.dtype, shut: float
):
    """sigmoid(-100) is 3.7e-44 in float64 and 1 / (1 + inf) = 0 in float32; sigmoid(100) is 1."""
    found = []
    for value in (-100.0, 100.0):
        subject = built_in("gru", dtype)
        measured = measure(subject, loaded(subject, "update gate", value))
        found.append(measured.zero_slope_fraction("update"))
    assert found == [shut, 1.0]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("name", ["input", "state"])
def test_torchs_gates_are_read_off_its_graph(kind: str, name: str):
    """torch's module shows no gate, its graph does: the same counts as our cell, gate by gate."""
    counts = []
    for by in ("gradflow", "torch"):
        subject = built_in(kind, torch.float32, by=by)
        counts.append(measure(subject, loaded(subject, name, -100.0)).zero_slopes)
    assert counts[0] == counts[1]
    assert set(counts[0]) == {*GATED[kind], "candidate"}


def test_a_gate_outside_of_0_and_1_is_seen():
    """A module whose gate is 1.5 sigmoid(v) says so by gate_values, and is told so."""
    subject = hand_written("gate_out_of_range")
    assert measure(subject, loaded(subject, "input", 1e2)).gates_in_range is False
    assert measure(hand_written("unbiased"), feed_of(subject)).gates_in_range is True


def test_gates_that_nobody_shows_are_unknown():
    """A sigmoid that is written out leaves no sigmoid in the graph."""
    subject = hand_written("naive_sigmoid")
    measured = measure(subject, feed_of(subject))
    assert measured.gates_in_range is None
    assert measured.zero_slope_fraction(None) is None


@each_dtype
def test_the_mean_of_the_largest_numbers_has_finite_gradients(dtype: torch.dtype):
    """The sum of N largest numbers is no number; the gradient of their mean is 1/N."""
    weight = torch.full((3, 4), largest(dtype), dtype=dtype, requires_grad=True)
    states = [(torch.zeros(3, 4, dtype=dtype),), (weight * 1,), (weight * 1,)]
    _, gradients = mean_gradients(states, {"weight": weight})
    expected = torch.full((3, 4), 2 * torch.tensor(1 / 24, dtype=dtype).item())
    assert torch.isinf(torch.stack([state[0] for state in states[1:]]).sum())
    torch.testing.assert_close(gradients["weight"].float(), expected)


def unrolled(subject: Subject, feed: Feed) -> list[State]:
    """Return the states of a run, the first a leaf."""
    states: list[State] = [tuple(part.clone().requires_grad_() for part in feed.start)]
    for x in feed.xs:
        states.append(subject.step(x, states[-1])[0])
    return states


@each_kind
def test_the_gradients_are_those_of_the_mean(kind: str):
    """Where the mean itself is harmless, backward through it gives the same."""
    subject = built_in(kind)
    feed = feed_of(subject)
    by_state, by_parameter = mean_gradients(unrolled(subject, feed), subject.parameters)
    states = unrolled(subject, feed)
    mean = torch.stack([state[0] for state in states[1:]]).mean()
    leaves = [part for state in states for part in state]
    expected = torch.autograd.grad(mean, [*leaves, *subject.parameters.values()], allow_unused=True)
    found = [*by_state, *by_parameter.values()]
    for one, other in zip(found, [g for g in expected if g is not None], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-15)


@each_kind
def test_every_gate_has_a_place_and_an_lstms_input_gate_is_not_its_input(kind: str):
    """The bias of the gate called input is filled, and x stays what it was."""
    subject = built_in(kind)
    names = [place.name for place in gate_places(subject)]
    assert len(names) == len(subject.gates)
    if kind == "lstm":
        assert names == ["input gate", "forget gate", "output gate", "candidate"]
        feed = feed_of(subject)
        fed = load(subject, place(subject, "input gate"), 7.0, feed)
        assert torch.equal(fed.xs, feed.xs)
        assert subject.parameters["bias_ih"][:4].tolist() == [7.0] * 4
        assert subject.parameters["bias_hh"][:4].tolist() == [0.0] * 4


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before", "rnn"])
@pytest.mark.parametrize("name", ["input", "state"])
def test_the_identity_carries_the_number_to_every_gate_once(kind: str, name: str):
    """With all else zero, the pre-activation of each gate is the number: a gate at logit(0.9).

    A plain RNN has no gate, and its candidate is tanh of the number.
    """
    subject = built_in(kind)
    with torch.no_grad():
        for parameter in subject.parameters.values():
            parameter.zero_()
    value = torch.tensor(0.9).logit().item()
    feed = loaded(subject, name, value, steps=1)
    other = Feed(torch.zeros_like(feed.xs), feed.start) if name == "state" else feed
    zero = tuple(torch.zeros_like(part) for part in feed.start)
    state = feed.start if name == "state" else zero
    _, shown = subject.step(other.xs[0], state)
    held = {gate.name: 0.9 for gate in subject.gates if gate.role != "candidate"}
    for gate, number in (held or {"candidate": math.tanh(value)}).items():
        assert shown[gate].flatten().tolist() == pytest.approx([number] * shown[gate].numel())


def test_a_users_weights_are_left_as_they_are():
    """Nobody knows which of them read the input: the number goes in as x, and that is all."""
    subject = hand_written("sound")
    before = {name: weight.clone() for name, weight in subject.parameters.items()}
    fed = loaded(subject, "input", 1e4)
    assert [p.path for p in open_places(subject, beyond=True)] == ["weights", "weights"]
    assert torch.equal(fed.xs, torch.full_like(fed.xs, 1e4))
    assert all(torch.equal(weight, before[name]) for name, weight in subject.parameters.items())


def test_a_stacked_bias_that_no_gate_claims_is_taken_in_pieces():
    """Four gates in one bias are four places; a bias of one gate is one; a gain is none."""
    assert [p.name for p in gate_places(hand_written("sound"))] == [
        "lin.bias[0:4]", "lin.bias[4:8]", "lin.bias[8:12]", "lin.bias[12:16]",
    ]  # fmt: skip
    assert [p.name for p in gate_places(hand_written("separate_layers"))] == ["wz.bias", "wn.bias"]
    assert [p.name for p in gate_places(hand_written("layer_norm"))] == ["lin.bias", "norm.bias"]


@each_dtype
def test_the_square_of_the_root_is_finite_and_of_the_next_number_is_not(dtype: torch.dtype):
    """root_of_largest is the last number whose square the dtype holds, to one unit."""
    root = torch.tensor(root_of_largest(dtype), dtype=dtype)
    assert torch.isfinite(root * root)
    beyond = root * (1 + 2 * torch.finfo(dtype).eps)
    assert torch.isinf(beyond * beyond)


def test_a_magnitude_is_the_dtypes_own_number():
    """bfloat16 has 9984 for 1e4, float16 has nothing for 1e8."""
    assert rounded(1e4, torch.bfloat16) == 9984.0
    assert rounded(1e8, torch.float16) is None
    assert rounded(65504.0, torch.float16) == 65504.0


def test_small_matrices_run_on_one_thread_and_the_number_of_threads_comes_back():
    """Inside the block one thread, and after an error in it what was before."""
    seen = []

    def fail_inside(multiplications: int) -> None:
        with threads_for(multiplications):
            seen.append(torch.get_num_threads())
            raise KeyError

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for multiplications in (1000, 10**9):
            with pytest.raises(KeyError):
                fail_inside(multiplications)
            seen.append(torch.get_num_threads())
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 2, 2, 2]


def test_a_module_that_detaches_its_state_has_no_gradient():
    """There is nothing to be finite: the answer is none, not yes."""

    class Detached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input_size = self.hidden_size = 2
            self.lin = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.lin(x + h)).detach()

    cell = ForeignCell(Detached())
    subject = user_subject("detached", cell, cell)
    measured = measure(subject, feed_of(subject))
    assert measured.all_finite
    assert measured.parameter_gradients_finite is None
