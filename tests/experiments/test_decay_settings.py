"""What each setting of `gradflow decay` changes, and what it leaves alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from gradflow.errors import DtypeError, GateValueError, UnknownNameError
from gradflow.experiments.decay import run_decay
from gradflow.settings import DecaySettings
from tests import cases
from tests.experiments.decay_curves import SMALL, curve, one, run

LIVE: dict[str, Any] = {"cell": "lstm", "gate": 0.5, "candidate_gain": 1}


def _last(**settings: Any) -> float:
    return float(one(**{**LIVE, **settings}).log10_norm[-1])


def test_two_runs_of_the_same_settings_are_the_same_numbers() -> None:
    """Nothing but the seed is random: every number is the same, bit by bit."""
    first, second = (run(cell="lstm,gru,rnn", gate_weights=0.3) for _ in range(2))
    assert first.results_json() == second.results_json()
    assert first.checks == second.checks


def test_another_seed_is_another_matrix_and_another_start() -> None:
    """Live curves move with the seed; held ones do not, since f^T knows no state."""
    assert abs(_last(seed=1) - _last(seed=2)) > 1e-6
    held = [one(**{**LIVE, "candidate_gain": 0, "seed": seed}) for seed in (1, 2)]
    cases.assert_same_log_norm(held[0].log10_norm, held[1].log10_norm, tolerance=1e-15)


def test_the_seed_does_not_depend_on_what_else_is_measured() -> None:
    """A curve is the same alone and among others: each draws from the seed anew."""
    among = run(cell="gru,lstm", gate="0.1,0.5,0.9", candidate_gain="0,1")
    found = curve(among, cell="lstm", gate_value=0.5, candidate_gain=1.0)
    cases.assert_same_log_norm(found.log10_norm, one(**LIVE).log10_norm, tolerance=1e-13)


def test_global_randomness_is_neither_used_nor_disturbed() -> None:
    """torch's own generator may stand anywhere, and stands there afterwards."""
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = _last()
    torch.manual_seed(2)
    assert _last() == first
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "change",
    [
        {"input_gate": 0.2},
        {"output_gate": 0.9},
        {"start": "zero"},
        {"candidate_gain": 1.5},
        {"gate_weights": 0.2},
        {"hidden": 7},
        {"state": "h"},
        {"state": "joint"},
        {"norm": "frobenius"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_of_a_live_lstm_changes_its_curve(change: dict[str, Any]) -> None:
    """No setting is read and then forgotten."""
    assert abs(_last(**change) - _last()) > 1e-3


def test_the_coupled_input_gate_is_one_minus_the_forget_gate() -> None:
    """`coupled` at f = 0.25 is an input gate of 0.75."""
    coupled, given = (_last(gate=0.25, input_gate=value) for value in ("coupled", 0.75))
    assert coupled == pytest.approx(given, abs=1e-13)


def test_the_reset_gate_is_the_grus() -> None:
    """The reset gate scales the candidate's view of the state; an LSTM has none."""
    assert _last(cell="lstm", reset_gate=0.1) == _last(cell="lstm", reset_gate=0.9)
    assert _last(cell="gru", reset_gate=0.1) < _last(cell="gru", reset_gate=0.9) - 0.1


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_gates_with_weights_are_near_constants(cell: str) -> None:
    """With `gate_weights` the realised gate moves around the value; without, it stands still."""
    for scale in (0.1, 1.0):
        found = one(cell=cell, gate=0.5, candidate_gain=0, gate_weights=scale, steps=10)
        assert found.gate_min is not None
        assert found.gate_max is not None
        assert found.gate_min < 0.5 - 0.01 * scale
        assert found.gate_max > 0.5 + 0.01 * scale
        assert found.method == "dense"
    still = one(cell=cell, gate=0.5, candidate_gain=0, steps=10)
    assert still.gate_min == still.gate_max == 0.5


def test_candidate_gains_are_a_list() -> None:
    """Each gain has its own curves; the larger, the slower the decay."""
    result = run(cell="gru", gate=0.3, candidate_gain="0,0.5,1,2", start="zero")
    rates = [curve(result, candidate_gain=gain).rate for gain in (0.0, 0.5, 1.0, 2.0)]
    assert rates == sorted(rates, key=lambda rate: rate or 0.0)
    assert len(set(rates)) == 4


def test_the_hidden_state_of_a_held_lstm_is_zero_and_no_failure() -> None:
    """`--state h` of a held LSTM is exactly zero from T = 1: explained, and checks pass."""
    result = run(cell="lstm", candidate_gain=0, state="h")
    assert result.passed
    for found in result.curves:
        assert np.isneginf(found.log10_norm).all()
        assert (found.first_zero_step, found.zero_reason) == (1, "exact")
        assert found.rate is found.half_life is found.factor_per_step is None
    full = curve(result, gate_value=0.5)
    assert full.autograd is not None
    assert full.autograd.max_relative_error == 0.0
    assert len(full.autograd.steps) > 0
    (note,) = result.notes
    assert "exactly 0 from step 1" in note
    assert "no failure" in note


def test_a_gate_that_shuts_to_the_last_bit_is_an_underflow_on_both_paths() -> None:
    """Weights of 10^6 drive f to a 0 that sigmoid never truly reaches: known, and no failure."""
    result = run(cell="lstm", gate=0.5, candidate_gain=0, gate_weights=1e6, hidden=1, steps=5)
    assert result.passed
    for found in result.curves:
        assert np.isneginf(found.log10_norm[-1])
        assert found.zero_reason == "underflow"
        assert found.gate_min == 0.0
    assert any("underflows to 0 at step" in note for note in result.notes)


def test_the_state_that_is_measured_is_the_kept_one_unless_named() -> None:
    """c for an LSTM, h for a GRU and an RNN; h of a GRU is its joint state."""
    result = run(cell="lstm,gru,rnn", gate=0.5, candidate_gain=1)
    assert [c.state for c in result.curves] == ["c", "c", "h", "h", "h"]
    own, named, joint = (
        one(cell="gru", gate=0.5, candidate_gain=1, **given)
        for given in ({}, {"state": "h"}, {"state": "joint"})
    )
    assert own.log10_norm.tolist() == named.log10_norm.tolist() == joint.log10_norm.tolist()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cell": "gru", "state": "c"}, ["--state 'c'", "gru", "Known: h, joint"]),
        ({"cell": "lstm,gru", "state": "c"}, ["--state 'c'", "gru"]),
        ({"cell": "lstm", "state": "jiont"}, ["'jiont'", "Did you mean 'joint'?"]),
        ({"cell": "lsmt"}, ["'lsmt'", "Did you mean 'lstm'?"]),
        ({"cell": "lstm,grru"}, ["'grru'", "Did you mean 'gru'?"]),
        ({"device": "gpu"}, ["--device 'gpu'", "cpu"]),
        ({"device": "cuda:99"}, ["--device 'cuda:99'", "cpu"]),
    ],
)
def test_a_name_that_does_not_exist_is_refused_before_anything_runs(
    settings: dict[str, Any], words: list[str]
) -> None:
    """The flag, what came and what there is instead; no cell is measured first."""
    told: list[str] = []
    with pytest.raises(UnknownNameError) as caught:
        run_decay(
            DecaySettings(**{**SMALL, **settings}), progress=lambda what, *_: told.append(what)
        )
    message = str(caught.value)
    for word in words:
        assert word in message
    assert len(message.splitlines()) <= 3
    assert told == []


def test_a_gate_that_the_dtype_cannot_hold_is_refused() -> None:
    """1e-60 is a gate in float64; in float32 its sigmoid would be 0."""
    assert one(cell="gru", gate=1e-60, candidate_gain=0).rate == pytest.approx(math.log(1e-60))
    with pytest.raises(GateValueError, match="update"):
        run(cell="gru", gate=1e-60, dtype="float32")


def test_a_device_without_the_dtype_is_refused() -> None:
    """`meta` is a device that holds shapes and no numbers."""
    with pytest.raises((DtypeError, UnknownNameError), match="--device"):
        run(device="meta")


def test_float32_is_measured_in_float32_and_judged_by_its_own_digits() -> None:
    """The curve is f^T of the f that float32 has, far below what float32 holds."""
    result = run(cell="lstm,gru", gate="0.1,0.9", dtype="float32", steps=200)
    assert result.passed
    found = curve(result, cell="lstm", gate_value=0.1, candidate_gain=0.0)
    assert found.log10_norm[-1] == pytest.approx(-200, rel=1e-6)
    assert found.log10_norm[-1] != pytest.approx(-200, rel=1e-10)
    assert found.gate_min == pytest.approx(0.1, rel=1e-6)
    assert found.autograd is not None
    assert found.autograd.tolerance == 1e-3


def test_long_runs_report_points_evenly_spaced_in_log_t() -> None:
    """Beyond 10,000 steps at most 1000 points come, the first and the last among them."""
    found = one(cell="gru", gate=0.5, candidate_gain=0, hidden=2, steps=10_001)
    assert len(found.steps) <= 1000
    assert (found.steps[0], found.steps[-1]) == (1, 10_001)
    cases.assert_same_log_norm(found.log10_norm, found.steps * math.log10(0.5), tolerance=1e-11)
    some = one(cell="gru", gate=0.5, candidate_gain=0, points=5)
    assert some.steps.tolist() == [1, 3, 6, 16, 40]
    assert some.trend_log10 is not None
    assert len(some.log10_norm) == len(some.trend_log10) == 5


def test_one_step_has_no_rate() -> None:
    """At T = 1 there is no slope: rate, factor and half-life are None, and checks pass."""
    result = run(steps=1)
    assert result.passed
    for found in result.curves:
        assert found.rate is found.factor_per_step is found.half_life is found.departure is None
        assert found.trend_rate is not None
    full = curve(result, cell="lstm", gate_value=0.9, candidate_gain=0.0)
    assert full.log10_norm[0] == pytest.approx(math.log10(0.9), rel=1e-12)


def test_progress_names_the_cell_and_the_gain() -> None:
    """Each stretch of work says what it is and how far it is, up to its end."""
    told: list[tuple[str, int, int]] = []
    settings = DecaySettings(**SMALL, cell="lstm,rnn", gate=0.5)
    run_decay(settings, progress=lambda *told_now: told.append(told_now))
    assert [name for name, _, _ in told] == [
        "lstm, candidate gain 0",
        "lstm, candidate gain 1",
        "rnn, candidate gain 0.5",
    ]
    assert {(done, total) for _, done, total in told} == {(40, 40)}
