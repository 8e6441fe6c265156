"""Small faults rebuilt from the field, put to the engine."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gradflow.cells import LSTM
from gradflow.engine import jacobian_norms
from gradflow.engine.trajectory import zero_input
from tests import cases
from tests.engine.measuring import column, measure, silent
from tests.field_cases import field_case, lstm_cell_of
from tests.reference import closed_forms

LN10 = math.log(10.0)


@pytest.mark.parametrize("name", ["both_biases", "one_bias"])
def test_two_biases_of_one_decay_as_a_bias_of_two(name: str) -> None:
    """The norms are f^T with f the sigmoid of both biases' sum, 0.8808 and not 0.7311."""
    case = field_case("forget_bias_set_twice")
    expected = case.expected[name]
    cell = LSTM.from_torch(lstm_cell_of(case.weights(name)))
    generator = torch.Generator().manual_seed(0)
    x = zero_input(cell, 3, 10_000)
    draw = {"generator": generator, "dtype": torch.float64}
    state = tuple(torch.randn(3, cell.hidden_size, **draw) for _ in range(2))
    norms = jacobian_norms(cell, x, state, at=[*expected["steps"], 10_000])
    known = np.log(expected["norm"])
    for row in range(3):
        cases.assert_same_log_norm(norms.log_norm[:-1, row], known)
    trend = closed_forms.held_log_norm(expected["forget_gate"], 10_000, size=8)
    cases.assert_same_log_norm(norms.log_norm[-1], np.full(3, trend), tolerance=1e-11)
    for gate in (norms.keep_min, norms.keep_max):
        assert gate is not None
        assert gate[0].item() == pytest.approx(expected["forget_gate"], rel=1e-15)


@pytest.mark.parametrize("method", ["dense", "generic", "diagonal"])
def test_an_all_zero_float32_lstm_halves_for_ever(method: str) -> None:
    """The norm's log10 is T log10 0.5 at T = 200 and far beyond what float32 holds."""
    expected = field_case("float32_underflow").expected["float32"]
    setup = cases.Setup(input_size=2, hidden_size=4, batch=1, start="zero", dtype=torch.float32)
    subject = silent(cases.held_lstm(0.5, setup), 4000)
    assert all((tensor == 0).all() for tensor in subject.weights.values())
    points = [*expected["steps"], 1000, 4000]
    found = column(measure(subject, method=method, norm="frobenius", at=points)) / LN10
    known = np.array(expected["log10_norm"])
    # the case asks for the gradient of sum(c_T): four halves squared add up as four units do
    cases.assert_same_log_norm(found[: len(known)], known, tolerance=1e-14)
    cases.assert_same_log_norm(found - math.log10(2), np.array(points) * math.log10(0.5))


@pytest.mark.parametrize("name", ["small_recurrent", "large_recurrent"])
def test_the_whole_exceeds_the_product_of_forget_gates(name: str) -> None:
    """Full and direct norms are measured side by side, and differ as the case says."""
    case = field_case("direct_path_against_full")
    expected = case.expected[name]
    cell = LSTM.from_torch(lstm_cell_of(case.weights(name)))
    x = torch.tensor(case.arrays["inputs"])[:, None]
    at = expected["steps"]
    spectral, frobenius, joint = (
        jacobian_norms(cell, x, cell.initial_state(1), block, norm, at=at)
        for block, norm in (
            (("c", "c"), "spectral"),
            (("c", "c"), "frobenius"),
            ("joint", "spectral"),
        )
    )
    assert spectral.direct_log_norm is not None
    found = {
        "direct_max": spectral.direct_log_norm[:, 0],
        "full_spectral": column(spectral),
        "full_frobenius": column(frobenius),
        "joint_spectral": column(joint),
    }
    for key, values in found.items():
        cases.assert_same_log_norm(values, np.log(expected[key]))
