"""Biases tell a little of the order of gates: a suspicion, with how sure it is."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, RNN
from gradflow.checkpoints import from_torch
from gradflow.checkpoints.layers.gate_orders import (
    PROGRAMS,
    TORCH_ORDER,
    gate_orders_of,
    score_gate_orders,
)

ORDERS = {"lstm": 24, "gru": 6}


def biases(units: int = 16, seed: int = 0, **means: float) -> dict[str, Tensor]:
    """Return biases as torch draws them, moved to these means."""
    generator = torch.Generator().manual_seed(seed)

    def draw() -> Tensor:
        uniform = torch.rand(2, units, generator=generator, dtype=torch.float64)
        return ((2 * uniform - 1) / math.sqrt(units)).sum(dim=0)

    return {letter: draw() + means.get(letter, 0.0) for letter in "ifgo"}


def rows(blocks: dict[str, Tensor], order: str) -> Tensor:
    """Return blocks one after the other in some program's order."""
    return torch.cat([blocks[letter] for letter in order])


@pytest.mark.parametrize("kind", ORDERS)
def test_probabilities_are_of_all_orders_and_add_to_one(kind: str) -> None:
    """They are Bayes' rule over every permutation of the blocks."""
    scores = score_gate_orders(kind, torch.linspace(-1, 1, 8 * len(TORCH_ORDER[kind])))
    assert scores is not None
    assert len(scores.probabilities) == ORDERS[kind]
    assert sum(scores.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
    ranked = list(scores.probabilities.values())
    assert ranked == sorted(ranked, reverse=True)
    assert scores.likeliest == next(iter(scores.probabilities))


def test_equal_blocks_say_nothing() -> None:
    """With the same mean everywhere what was believed before is all there is."""
    scores = score_gate_orders("lstm", torch.full((32,), 2.0))
    assert scores is not None
    assert scores.torch_probability == pytest.approx(0.85, abs=1e-12)


HEALTHY = {
    "torch's own": {},
    "forget set to 1": {"f": 1.0},
    "forget set twice": {"f": 2.0},
    "forget set to 5": {"f": 5.0},
    "chrono": {"f": 3.4, "i": -3.4},
    "a writer that is shut": {"i": -2.0},
    "trained on a sine": {"i": 0.6, "f": -0.3, "o": 0.7},  # as measured
    "everything set to 1": {"i": 1.0, "f": 1.0, "g": 1.0, "o": 1.0},
}


@pytest.mark.parametrize("case", HEALTHY)
@pytest.mark.parametrize("units", [6, 8, 16, 64, 512])
def test_layers_in_torchs_order_are_not_suspected(case: str, units: int) -> None:
    """Whatever people do to biases on purpose, and whatever training did in our own runs."""
    for seed in range(20):
        scores = score_gate_orders("lstm", rows(biases(units, seed, **HEALTHY[case]), "ifgo"))
        assert scores is not None
        assert not scores.is_suspect


@pytest.mark.parametrize("order", ["iofg", "igfo"])
@pytest.mark.parametrize("forget", [1.0, 2.0, 3.0])
def test_a_keep_bias_among_the_candidates_rows_is_suspected(order: str, forget: float) -> None:
    """ONNX's and TensorFlow's order put the forget gate where torch has the candidate."""
    for seed in range(20):
        scores = score_gate_orders("lstm", rows(biases(32, seed, f=forget), order))
        assert scores is not None
        assert scores.is_likely
        assert scores.misplaced == ("forget", 2)


def test_what_cannot_be_told_is_not_claimed() -> None:
    """ONNX's and TensorFlow's order differ in gates that look alike: neither is sure."""
    scores = score_gate_orders("lstm", rows(biases(32, f=1.0), "iofg"))
    assert scores is not None
    assert 0.05 < scores.probabilities["igfo"] < 0.9
    assert 0.05 < scores.probabilities["iofg"] < 0.9


def test_a_foreign_order_without_a_trace_is_not_suspected() -> None:
    """With biases about 0 everywhere nothing can be seen, so nothing is said."""
    scores = score_gate_orders("lstm", rows(biases(32), "iofg"))
    assert scores is not None
    assert not scores.is_suspect


def test_a_grus_update_and_reset_gates_cannot_be_told_apart() -> None:
    """Either may have been set open, so Keras's order z, r, h leaves no trace in the biases."""
    bias = torch.cat([torch.full((16,), 1.0), torch.zeros(16), torch.zeros(16)])
    scores = score_gate_orders("gru", bias)
    assert scores is not None
    assert not scores.is_suspect
    swapped = score_gate_orders("gru", bias.roll(32))  # 1 where the candidate should be
    assert swapped is not None
    assert swapped.is_likely


@given(st.lists(st.floats(-4, 4), min_size=4, max_size=4), st.integers(0, 3))
def test_flipping_the_candidates_units_changes_nothing(means: list[float], seed: int) -> None:
    """The sign of a candidate's unit is a convention; a mean of either sign is judged alike."""
    blocks = biases(16, seed, **dict(zip("ifgo", means, strict=True)))
    one = score_gate_orders("lstm", rows(blocks, "ifgo"))
    other = score_gate_orders("lstm", rows(blocks | {"g": -blocks["g"]}, "ifgo"))
    assert one is not None
    assert other is not None
    assert one.errors == pytest.approx(other.errors)
    for order in ("ifgo",):
        ratio = one.probabilities[order] / one.probabilities["ofgi"]
        twin = other.probabilities[order] / other.probabilities["ofgi"]
        assert ratio == pytest.approx(twin, rel=1e-9)


def test_a_network_trained_with_a_forget_bias_of_two() -> None:
    """Read in ONNX's order, or with i and f swapped, it is suspected; in torch's it is not."""
    means = {"i": 0.104, "f": 1.981, "g": -0.086, "o": -0.268}  # of a network of six units
    trained = {letter: mean + 0.4 * torch.linspace(-1, 1, 6) for letter, mean in means.items()}
    scores = {order: score_gate_orders("lstm", rows(trained, order)) for order in ORDER_MEANINGS}
    found = {order: each and (each.is_suspect, each.misplaced) for order, each in scores.items()}
    assert found == ORDER_MEANINGS
    raw = scores["iofg"]
    assert raw is not None
    assert raw.is_likely


ORDER_MEANINGS = {
    "ifgo": (False, None),
    "iofg": (True, ("forget", 2)),
    "figo": (True, ("forget", 0)),
}


def test_where_biases_cannot_tell_nothing_is_returned() -> None:
    """No gates, no biases, too few units, or numbers that are not finite."""
    assert gate_orders_of(RNN(3, 8)) is None
    assert gate_orders_of(LSTM(3, 8, bias=False)) is None
    assert gate_orders_of(LSTM(3, 5)) is None
    assert score_gate_orders("lstm", torch.full((32,), math.nan)) is None
    assert gate_orders_of(from_torch(nn.LSTM(3, 8, proj_size=2))[0]) is None
    changed = GRU(3, 8)
    with torch.no_grad():
        changed.bias_ih.add_(0.5)
    assert gate_orders_of(changed) is not None


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_biases_as_torch_draws_them_tell_nothing(kind: type[LSTM | GRU]) -> None:
    """Of six units one layer in 150 would look foreign by chance; half precision rounds them."""
    torch.manual_seed(0)
    for _ in range(200):
        cell = kind(3, 6)
        assert gate_orders_of(cell) is None
        assert gate_orders_of(cell.bfloat16()) is None


def test_the_programs_orders_are_orders() -> None:
    """Each is a permutation of torch's letters, torch's own first."""
    for kind, programs in PROGRAMS.items():
        assert next(iter(programs)) == TORCH_ORDER[kind]
        assert {"".join(sorted(order)) for order in programs} == {
            "".join(sorted(TORCH_ORDER[kind]))
        }
