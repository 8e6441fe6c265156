"""`gradflow decay`: the curves, their numbers and what they are compared with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from gradflow.experiments.decay import run_decay
from gradflow.experiments.held_cells import held_cells
from gradflow.settings import DecaySettings
from tests import cases
from tests.experiments.decay_curves import SMALL, curve, one, run
from tests.reference import closed_forms

STEPS = np.arange(1, 41)
GATES = (0.1, 0.5, 0.9)
each_gated = pytest.mark.parametrize("cell", ["lstm", "gru"])
each_norm = pytest.mark.parametrize("norm", ["spectral", "frobenius"])


def _candidate_matrix(cell: str, **settings: Any) -> Any:
    """Return the U that the experiment draws for these settings, as NumPy."""
    drawn = DecaySettings(**{**SMALL, "cell": cell, **settings})
    (held,) = held_cells(cell, drawn)
    weight = held.cell.get_parameter("weight_hh").detach()
    size = held.cell.hidden_size
    first = cases.candidate_row(len(weight) // size) * size
    return weight[first : first + size].numpy()


def test_every_cell_gate_gain_and_path_has_its_curve() -> None:
    """Two cells, three gates, two gains, two paths: 24 curves, the full path before the direct."""
    result = run(hidden=3, steps=5)
    found = [
        (c.cell, c.gate_name, c.candidate_gain, c.gate_value, c.path, c.state)
        for c in result.curves
    ]
    assert found == [
        (cell, name, gain, gate, path, state)
        for cell, name, state in (("lstm", "forget", "c"), ("gru", "update", "h"))
        for gain in (0.0, 1.0)
        for gate in GATES
        for path in ("full", "direct")
    ]
    assert all(c.steps.tolist() == [1, 2, 3, 4, 5] for c in result.curves)
    assert result.passed


@each_gated
@each_norm
def test_at_gain_zero_the_curve_lies_on_the_trend(cell: str, norm: str) -> None:
    """f^T, z^T from a random state: at every T, as a rate, a factor and a half-life."""
    result = run(cell=cell, candidate_gain=0, norm=norm)
    size = 0.0 if norm == "spectral" else math.log10(6) / 2
    for gate in GATES:
        for path in ("full", "direct"):
            found = curve(result, gate_value=gate, path=path)
            assert found.trend_log10 is not None
            cases.assert_same_log_norm(found.log10_norm, STEPS * math.log10(gate) + size)
            cases.assert_same_log_norm(found.trend_log10, STEPS * math.log10(gate))
            assert found.rate == pytest.approx(math.log(gate), rel=1e-12)
            assert found.factor_per_step == pytest.approx(gate, rel=1e-12)
            assert found.trend_rate == math.log(gate)
            assert found.departure == pytest.approx(0.0, abs=1e-12)
            assert found.half_life == pytest.approx(closed_forms.half_life(gate), rel=1e-12)
            assert found.gate_min == found.gate_max == pytest.approx(gate, rel=1e-14)
            assert found.norm == norm
            assert found.method == "diagonal"


@each_gated
def test_at_gain_one_the_trend_is_not_the_truth(cell: str) -> None:
    """A live candidate departs from f^T, most where the gate is small; the direct path stays."""
    result = run(cell=cell, candidate_gain=1, start="zero")
    for gate in GATES:
        full, direct = (curve(result, gate_value=gate, path=path) for path in ("full", "direct"))
        assert full.departure is not None
        assert full.departure > 0.05
        cases.assert_same_log_norm(direct.log10_norm, STEPS * math.log10(gate))
        assert full.log10_norm[-1] > direct.log10_norm[-1] + 0.5
        assert full.gate_min == full.gate_max == pytest.approx(gate, rel=1e-14)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    ("given", "write", "output"),
    [({}, None, 0.5), ({"input_gate": 0.3}, 0.3, 0.5), ({"output_gate": 0.8}, None, 0.8)],
    ids=["coupled", "input", "output"],
)
def test_a_live_lstm_has_the_rate_of_its_matrix(
    gate: float, given: dict[str, float], write: float | None, output: float
) -> None:
    """At the zero state the rate is ln rho(f I + i o U), with i = 1 - f unless it is given."""
    settings = {"cell": "lstm", "gate": gate, "candidate_gain": 1, "start": "zero", **given}
    recurrent = _candidate_matrix(**settings)
    matrix = closed_forms.lstm_live_matrix(
        recurrent, forget=gate, write=1 - gate if write is None else write, output=output
    )
    found = one(**settings)
    expected = closed_forms.normal_power_log_norm(matrix, STEPS - 1) + math.log(gate)
    cases.assert_same_log_norm(found.log10_norm, expected / math.log(10))
    assert found.rate == pytest.approx(closed_forms.log_spectral_radius(matrix), rel=1e-10)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("reset", [0.5, 0.2])
@pytest.mark.parametrize("gain", [1.0, 1.7])
def test_a_live_gru_has_the_rate_of_its_matrix(place: str, reset: float, gain: float) -> None:
    """At h = 0 the rate is ln rho(z I + (1 - z) r U), wherever the reset gate stands."""
    settings = {"cell": "gru", "gate": 0.5, "candidate_gain": gain, "start": "zero"}
    settings |= {"reset": place, "reset_gate": reset}
    matrix = closed_forms.gru_live_matrix(_candidate_matrix(**settings), update=0.5, reset=reset)
    found = one(**settings)
    assert found.rate == pytest.approx(closed_forms.log_spectral_radius(matrix), rel=1e-10)
    expected = closed_forms.normal_power_log_norm(matrix, STEPS) / math.log(10)
    cases.assert_same_log_norm(found.log10_norm, expected)


def test_a_held_reset_gate_stands_where_it_likes() -> None:
    """With r constant, U (r h) is r (U h): from any state both places give one curve."""
    before, after = (
        one(cell="gru", gate=0.5, candidate_gain=1, reset=place) for place in ("before", "after")
    )
    cases.assert_same_log_norm(before.log10_norm, after.log10_norm)


def test_the_place_of_a_reset_gate_matters_once_the_gate_moves() -> None:
    """With gates that read the state the two GRUs are two cells."""
    before, after = (
        one(cell="gru", gate=0.5, candidate_gain=1, gate_weights=0.5, reset=place)
        for place in ("before", "after")
    )
    assert abs(before.log10_norm[-1] - after.log10_norm[-1]) > 0.01


def test_a_live_candidate_may_grow_under_a_forget_gate_of_nine_tenths() -> None:
    """f = 0.9, i = o = 0.5, U = 1 (one unit) grows 1.15 a step; U = -1 shrinks by 0.65."""
    factors = set()
    for seed in range(4):
        settings = {"cell": "lstm", "gate": 0.9, "input_gate": 0.5, "candidate_gain": 1}
        settings |= {"hidden": 1, "start": "zero", "seed": seed}
        sign = float(_candidate_matrix(**settings)[0, 0])
        found = one(**settings)
        assert found.factor_per_step == pytest.approx(0.9 + 0.25 * sign, rel=1e-12)
        factors.add(round(0.9 + 0.25 * sign, 12))
        assert (found.half_life is None) == (sign > 0)
    assert factors == {1.15, 0.65}


@each_norm
@pytest.mark.parametrize("gate", GATES)
def test_the_joint_state_departs_by_a_factor_and_not_by_a_rate(gate: float, norm: str) -> None:
    """Joint: f^T sqrt(1 + o^2 max sech^4 c_T), from the random c_0 of the seed."""
    settings = {"cell": "lstm", "gate": gate, "candidate_gain": 0, "state": "joint", "norm": norm}
    found = one(**settings, output_gate=0.7)
    generator = torch.Generator().manual_seed(0)
    _, start = (torch.randn(1, 6, dtype=torch.float64, generator=generator) for _ in range(2))
    states = closed_forms.held_cell_state(
        start.numpy(), STEPS[:, None], forget=gate, write=1 - gate
    )
    expected = closed_forms.held_joint_log_norm(
        gate, STEPS, output=0.7, cell_state=states, norm=norm
    )
    cases.assert_same_log_norm(found.log10_norm, expected / math.log(10))
    assert found.state == "joint"


@pytest.mark.parametrize("gate", [0.0, 0.5, 1.0, 1.4])
def test_a_plain_rnn_at_zero_is_its_gain_to_the_t(gate: float) -> None:
    """g^T for any gain; without a keep gate there is no gate value, no trend, no direct path."""
    (found,) = run(cell="rnn", gate=gate, start="zero").curves
    with np.errstate(divide="ignore"):
        expected = STEPS * np.log10(np.float64(gate))
    cases.assert_same_log_norm(found.log10_norm, expected)
    assert found.candidate_gain == gate
    assert found.gate_name is found.gate_value is found.gate_min is found.gate_max is None
    assert found.trend_log10 is found.trend_rate is found.departure is None
    assert (found.rate is None) == (gate == 0)
    assert (found.half_life is not None) == (gate == 0.5)


def test_a_plain_rnn_from_a_random_state_falls_faster_than_its_gain() -> None:
    """Away from zero tanh' < 1: the curve lies below g^T, and the check still passes."""
    result = run(cell="rnn", gate="0.9,1.2")
    for found in result.curves:
        assert found.candidate_gain is not None
        assert (found.log10_norm < STEPS * math.log10(found.candidate_gain)).all()
    assert result.passed


def test_the_settings_in_force_are_kept_with_the_result() -> None:
    """`config` is every setting, so that the same run can be made again."""
    settings = DecaySettings(**SMALL, cell="gru", gate="0.3,0.7", seed=5)
    result = run_decay(settings)
    assert result.config == settings.to_json()
    again = run_decay(DecaySettings(**result.config))
    assert again.results_json() == result.results_json()
