"""Parameter counts, work per step and matched widths, against torch and against brute force."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradflow.cells import LSTM, registry
from gradflow.cells.numpy_cells import NumpyGRU, NumpyLSTM, NumpyRNN
from gradflow.errors import SettingError, UnknownNameError
from gradflow.experiments.built_modules import built_parameters
from gradflow.experiments.parameter_counts import step_cost, total_parameters
from gradflow.experiments.params import count_networks, count_parameters, read_match
from gradflow.experiments.width_match import match_width
from gradflow.records.params import Architecture, ParamsResult, Workload
from tests.field_cases import field_case

CASE = field_case("parameter_counts")
SMALL_SIZES = st.integers(1, 12)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Draw any small architecture that torch can build."""
    cell = draw(st.sampled_from(["rnn", "gru", "lstm"]))
    hidden = draw(SMALL_SIZES)
    return Architecture(
        cell=cell,
        input_size=draw(SMALL_SIZES),
        hidden_size=hidden,
        layers=draw(st.integers(1, 3)),
        bidirectional=draw(st.booleans()),
        projection=draw(st.integers(0, hidden - 1)) if cell == "lstm" else 0,
        bias=draw(st.booleans()),
        output_size=draw(st.integers(0, 5)),
    )


# closed form


@pytest.mark.parametrize(("cell", "expected"), [("rnn", 40), ("gru", 120), ("lstm", 160)])
def test_one_bias_gives_the_textbook_count(cell: str, expected: int) -> None:
    """With one bias a cell has G (H I + H^2 + H) parameters: 40, 120 and 160 at I=5, H=4."""
    assert total_parameters(Architecture(cell, 5, 4), biases=1) == expected


@pytest.mark.parametrize(("cell", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_the_conventions_differ_by_one_vector_per_gate(cell: str, gates: int) -> None:
    """Two biases instead of one add G H numbers, and none where the cell has no bias."""
    wide = Architecture(cell, 7, 11)
    assert total_parameters(wide, biases=2) - total_parameters(wide, biases=1) == gates * 11
    bare = replace(wide, bias=False)
    assert total_parameters(bare, biases=2) == total_parameters(bare, biases=0)


def test_multiply_adds_are_the_weights() -> None:
    """Every weight is multiplied once per step: an LSTM of 128 units on 10 inputs does 70656."""
    cost = step_cost(Architecture("lstm", 10, 128, output_size=3))
    assert cost.multiply_adds == 4 * 128 * (10 + 128)
    assert cost.head_multiply_adds == 128 * 3
    assert cost.state_values == 2 * 128


# reference


@pytest.mark.parametrize("row", CASE.expected["rows"], ids=lambda row: str(row["two_biases"]))
def test_counts_equal_what_people_reported(row: dict[str, object]) -> None:
    """Both sides of each dispute between Keras and torch are right, in their own convention."""
    count = count_parameters(Architecture(**row["architecture"]))  # type: ignore[arg-type]
    assert (count.two_biases, count.one_bias) == (row["two_biases"], row["one_bias"])
    assert count.built == row["two_biases"]


@given(architectures())
@settings(deadline=None)
def test_the_formula_equals_the_built_module(architecture: Architecture) -> None:
    """Layers, directions, projection, bias and head: the formula counts what torch builds."""
    count = count_parameters(architecture)
    assert count.two_biases == count.built
    parts = sum(layer.weights + 2 * layer.bias for layer in count.layers)
    assert parts + count.head_weights + count.head_bias == count.built


@pytest.mark.parametrize(
    ("cell", "numpy_class"), [("rnn", NumpyRNN), ("gru", NumpyGRU), ("lstm", NumpyLSTM)]
)
def test_kept_values_are_what_a_backward_keeps(
    cell: str, numpy_class: type[NumpyRNN] | type[NumpyGRU] | type[NumpyLSTM]
) -> None:
    """The activation memory per step is the number of values that the hand-written BPTT stores."""
    step = numpy_class.random(5, 8).forward(np.ones((1, 1, 5))).steps[0]
    arrays = [step.x, *step.state, *step.gates.values(), step.candidate, *step.saved.values()]
    kept = {id(array): array.size for array in arrays}  # an RNN's candidate is its h: once
    assert step_cost(Architecture(cell, 5, 8)).kept_values == sum(kept.values())


def test_the_known_matches_are_found() -> None:
    """An LSTM of 128 on 10 inputs (71680) is matched by a GRU of 149 and an RNN of 262 units."""
    result = count_networks(Architecture("lstm", 10, 128), match="lstm:128")
    found = {
        match.architecture.cell: (match.architecture.hidden_size, match.parameters)
        for match in result.matches
        if match.biases == 2
    }
    assert found == {"rnn": (262, 71788), "gru": (149, 71967), "lstm": (128, 71680)}
    gru = next(match for match in result.matches if match.architecture.cell == "gru")
    assert gru.relative_difference == pytest.approx(287 / 71680)


def test_the_reported_matches_are_found() -> None:
    """82944 parameters on 32 inputs, as reported in the field, give an RNN of 272, a GRU of 150."""
    template = Architecture("rnn", 32, 1)
    for cell, width in CASE.expected["matched_to_82944"].items():
        found = match_width(82944, replace(template, cell=cell))
        assert found.architecture.hidden_size == width


@given(architectures(), st.integers(1, 20000), st.sampled_from([1, 2]))
@settings(deadline=None)
def test_no_width_is_nearer_than_the_match(
    template: Architecture, target: int, biases: int
) -> None:
    """Searching every width up to well past the target finds none nearer than bisection did."""
    found = match_width(target, template, biases=biases)
    totals = {
        width: total_parameters(replace(template, hidden_size=width), biases=biases)
        for width in range(template.projection + 1, 150)  # 150^2 > 20000
    }
    best = min(abs(total - target) for total in totals.values())
    assert abs(found.difference) == best
    assert found.parameters == totals[found.architecture.hidden_size]
    narrower = [width for width, total in totals.items() if abs(total - target) == best]
    assert found.architecture.hidden_size == narrower[0]


# edges


def test_a_tiny_target_gives_the_narrowest_network() -> None:
    """A target below every network is matched by one unit, or one more than the projection."""
    assert match_width(1, Architecture("gru", 10, 5)).architecture.hidden_size == 1
    projected = match_width(1, Architecture("lstm", 10, 9, projection=4))
    assert projected.architecture.hidden_size == 5
    assert projected.narrower is None


def test_without_bias_there_is_one_convention() -> None:
    """A network without bias is matched once, since both conventions are the same."""
    result = count_networks(Architecture("lstm", 4, 6, bias=False), ["gru"], match="lstm:6")
    assert [match.biases for match in result.matches] == [0]
    assert result.counts[0].one_bias == result.counts[0].two_biases


def test_a_very_wide_network_takes_no_memory() -> None:
    """Counting a million units builds no weights: 4 (H^2 + H I + 2 H) for I = 1 is exact."""
    assert built_parameters(Architecture("lstm", 1, 10**6)) == 4 * (10**12 + 10**6 + 2 * 10**6)


def test_a_registered_cell_is_counted_as_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell without a formula has the count of its module, and is matched by building it."""
    monkeypatch.setitem(registry._registered, "mine", lambda i, h, bias=True: LSTM(i, h, bias=bias))
    result = count_networks(Architecture("mine", 3, 5, layers=2), ["mine"], match="lstm:8")
    assert result.counts[0].two_biases is None
    torch_layers = nn.LSTM(3, 5, num_layers=2)
    assert result.counts[0].built == sum(p.numel() for p in torch_layers.parameters())
    assert [match.architecture.hidden_size for match in result.matches] == [8]


def test_memory_grows_with_batch_steps_and_bytes() -> None:
    """Activations are kept per sample and step, parameters once; both in the dtype's bytes."""
    one = count_parameters(Architecture("gru", 3, 4))
    more = count_parameters(Architecture("gru", 3, 4), Workload(batch=5, steps=7, value_bytes=8))
    assert one.activation_bytes is not None
    assert more.activation_bytes == one.activation_bytes * 5 * 7 * 2
    assert more.parameter_bytes == 2 * one.parameter_bytes


def test_a_result_survives_its_own_json() -> None:
    """A stored result read back is the result, checks and notes included."""
    template = Architecture("lstm", 10, 20, layers=2, bidirectional=True, projection=5)
    result = count_networks(template, match=5000)
    assert ParamsResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    assert result.passed
    assert "counted without it: rnn, gru" in result.notes[0]


# words


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1"),
        ({"layers": -1}, "layers must be at least 1"),
        ({"output_size": -2}, r"output_size must be 0 \(none\) or more; got -2"),
        ({"projection": 6}, "projection must be smaller than hidden_size 6"),
        ({"cell": "gru", "projection": 2}, "projection is for an LSTM only"),
        ({"hidden_size": 10**10}, "more than torch can index"),
    ],
)
def test_an_impossible_architecture_is_refused(change: dict[str, int], message: str) -> None:
    """A width that torch could not build is named, with the reason and what came."""
    with pytest.raises(SettingError, match=message):
        count_parameters(replace(Architecture("lstm", 4, 6), **change))


def test_a_match_that_cannot_be_read_is_refused() -> None:
    """A match is a cell and a width, or a number; anything else is told so with an example."""
    for text in ("lstm", "lstm:", ":128", "lstm:0", "-5", "lstm:1.5", ""):
        with pytest.raises(SettingError, match="such as lstm:128"):
            read_match(text)
    with pytest.raises(UnknownNameError, match="Did you mean 'lstm'"):
        count_networks(Architecture("lstm", 4, 6), match="lsmt:6")
    with pytest.raises(UnknownNameError, match="Did you mean 'gru'"):
        count_networks(Architecture("lstm", 4, 6), ["gruu"])
    with pytest.raises(SettingError, match="at least one cell"):
        count_networks(Architecture("lstm", 4, 6), [])
    with pytest.raises(SettingError, match="batch must be at least 1"):
        count_networks(Architecture("lstm", 4, 6), workload=Workload(batch=0))
