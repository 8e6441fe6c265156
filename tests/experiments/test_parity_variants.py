"""The known variants: torch's cell among them, each unlike all others, each found again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradflow.checkpoints.sides import STANDARD_ORDER
from gradflow.experiments.parity.identify import (
    Trial,
    identify,
    nearest_variants,
    single_variants,
    undecided_variants,
)
from gradflow.experiments.parity.variants import (
    Numbers,
    Variant,
    combinations,
    partial_orders,
    usual_choices,
    variant_run,
)
from gradflow.experiments.parity.words import variant_cures, variant_name, variant_sentence
from tests import cases
from tests.reference.textbook_gru import TextbookGRUCell

KINDS = tuple(STANDARD_ORDER)
INPUT, HIDDEN, STEPS, ROWS = 3, 4, 4, 2


def trial_of(kind: str, variant: Variant, *, seed: int = 0, start: float = 1.0) -> Trial:
    """Return random weights and a run of a variant to be identified."""
    generator = np.random.default_rng(seed)
    rows = len(STANDARD_ORDER[kind]) * HIDDEN
    shapes = {
        "weight_ih": (rows, INPUT), "weight_hh": (rows, HIDDEN), "bias_ih": (rows,),
        "bias_hh": (rows,),
    }  # fmt: skip
    numbers = Numbers.of(kind, {name: generator.normal(size=s) for name, s in shapes.items()})
    xs = generator.normal(size=(STEPS, ROWS, INPUT))
    parts = 2 if kind == "lstm" else 1
    state = tuple(start * generator.normal(size=(ROWS, HIDDEN)) for _ in range(parts))
    return Trial(numbers, xs, state, variant_run(numbers, variant, xs, state))


# reference


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru-before", "rnn", "rnn-relu"])
def test_the_model_without_a_switch_is_torchs_cell(kind: str):
    """{} reproduces torch's cell, and one switch the two cells that torch has not."""
    subject = cases.random_subject(kind)
    variant = {"gru-before": {"reset": "before"}, "rnn-relu": {"candidate": "relu"}}.get(kind, {})
    state, expected = subject.state, []
    with torch.no_grad():
        for x in subject.inputs:
            new = subject.module(x, state if len(state) > 1 else state[0])
            state = new if isinstance(new, tuple) else (new,)
            expected.append(state[0])
    weights = {name: tensor.numpy() for name, tensor in subject.weights.items()}
    numbers = Numbers.of(kind.partition("-")[0], weights)
    start = tuple(part.numpy() for part in subject.state)
    found = variant_run(numbers, variant, subject.inputs.numpy(), start)["h"]
    # some ten roundings of numbers of order 1
    np.testing.assert_allclose(found, torch.stack(expected).numpy(), rtol=0, atol=2e-14)
    assert isinstance(subject.module, TextbookGRUCell) == (kind == "gru-before")


@pytest.mark.parametrize("kind", KINDS)
def test_every_single_variant_is_found_and_alone(kind: str):
    """Each of some dozens of habits and slips is told from all others by a few steps."""
    for variant in single_variants(trial_of(kind, {})):
        assert identify(trial_of(kind, variant)) == [variant]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_one_tensor_in_a_foreign_order_is_found(kind: str):
    """Its matrices, or its biases alone: every order of every tensor."""
    for variant in partial_orders(trial_of(kind, {}).numbers):
        assert identify(trial_of(kind, variant)) == [variant]


@settings(max_examples=12)  # an LSTM's three switches are found in half a second
@given(st.sampled_from(["lstm", "gru"]), st.integers(2, 3), st.data())
def test_habits_that_come_together_are_found_together(kind: str, count: int, data: st.DataObject):
    """Keras' GRU has another order, resets before and swaps nothing; combinations are found."""
    every = list(combinations(usual_choices(trial_of(kind, {}).numbers), count))
    variant = every[data.draw(st.integers(0, len(every) - 1))]
    assert variant in identify(trial_of(kind, variant, seed=data.draw(st.integers(0, 3))))


def test_h_alone_is_enough_for_a_recording():
    """Without c, the outputs of a few steps still tell."""
    trial = trial_of("lstm", {"shown": "c"})
    heard = Trial(trial.numbers, trial.xs, trial.state, {"h": trial.target["h"]})
    assert identify(heard) == [{"shown": "c"}]


# edges


def test_what_no_variant_does_fits_none():
    """Random outputs: nothing is claimed, the nearest is named with its distance."""
    trial = trial_of("gru", {})
    noise = np.random.default_rng(1).normal(size=trial.target["h"].shape)
    other = Trial(trial.numbers, trial.xs, trial.state, {"h": noise})
    assert identify(other) == []
    nearest = nearest_variants(other)
    assert len(nearest) == 5
    assert nearest[0][1] <= nearest[-1][1]
    assert nearest[0][1] > 0.5


def test_a_zero_state_hides_what_h_touches():
    """One step from h = 0: nothing that multiplies h is decided; a second step decides all."""
    whole = trial_of("gru", {}, start=0.0)
    short = Trial(whole.numbers, whole.xs[:1], whole.state, {"h": whole.target["h"][:1]})
    hidden = [variant_name(variant, "gru") for variant in undecided_variants(short, {})]
    assert "U transposed" in hidden
    assert "h of reset left out" in hidden
    assert "reset before the product" not in hidden  # b_hn, not zero, tells
    assert undecided_variants(whole, {}) == []


def test_zero_biases_hide_the_biases():
    """Without biases nobody can say how often they are added; those variants are not tried."""
    trial = trial_of("gru", {})
    bare = Numbers(
        "gru", trial.numbers.w, trial.numbers.u, 0 * trial.numbers.b_ih, 0 * trial.numbers.b_hh
    )
    target = variant_run(bare, {}, trial.xs, trial.state)
    singles = single_variants(Trial(bare, trial.xs, trial.state, target))
    assert not any("bias" in variant for variant in singles)


# words


@pytest.mark.parametrize("kind", KINDS)
def test_every_variant_has_words(kind: str):
    """A name of its own and a sentence that follows "the cell"."""
    singles = [*single_variants(trial_of(kind, {})), *partial_orders(trial_of(kind, {}).numbers)]
    names = [variant_name(variant, kind) for variant in singles]
    assert len(set(names)) == len(names)
    for variant in singles:
        sentence = variant_sentence(variant, kind)
        assert sentence.split()[0] in {
            "is", "has", "squashes", "does", "misses", "shows", "adds", "couples", "returns",
            "resets", "leaves", "applies", "multiplies",
        }  # fmt: skip
        assert not sentence.endswith(".")


def test_an_order_comes_with_its_cure():
    """Which blocks to take, or how to compare under it."""
    onnx = {"order": "input output forget candidate"}
    assert variant_cures(onnx, "lstm", own_weights=True) == [
        "For torch's order take its blocks of rows 0, 2, 3, 1 (counted from 0) of every tensor."
    ]
    assert "--gate-order iofg" in variant_cures(onnx, "lstm", own_weights=False)[0]
    alone = {"order": "update reset candidate in biases"}
    assert "of the biases." in variant_cures(alone, "gru", own_weights=False)[0]
