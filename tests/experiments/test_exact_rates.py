"""Exact rates at the zero state, against the measured ones and against a dense Jacobian."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.func import jacrev

from gradflow.cells import GRU, LSTM, hold_
from gradflow.experiments.exact_rates import (
    WIDEST,
    ZeroStateRates,
    exact_rate_check,
    zero_state_rates,
)
from gradflow.experiments.held_cells import held_cells
from gradflow.records import DecayResult
from gradflow.settings import DecaySettings
from tests.experiments.decay_curves import curve, one, run

EXACT = "measured rate is the exact rate of the zero state"


def radius_by_autograd(kind: type[LSTM] | type[GRU], gain: float, **gates: float) -> float:
    """The spectral radius of one step's joint Jacobian at the zero state, by torch.func."""
    cell = hold_(
        kind(1, 6).double(),
        candidate_gain=gain,
        generator=torch.Generator().manual_seed(0),
        **gates,
    )
    sizes = [part.shape[-1] for part in cell.initial_state(1)]

    def step(flat: torch.Tensor) -> torch.Tensor:
        parts = tuple(part[None] for part in flat.split(sizes))
        after = cell.step(torch.zeros(1, 1).double(), parts)
        return torch.cat([after.state[index][0] for index in range(len(sizes))])

    matrix = jacrev(step)(torch.zeros(sum(sizes)).double())
    return float(torch.linalg.eigvals(matrix.detach()).abs().max())


def test_an_lstm_with_an_identity_for_u_grows_by_1_15() -> None:
    """f=0.9, i=o=0.5, U=I: rho(0.9 I + 0.25 I) = 1.15."""
    rates = ZeroStateRates("forget", {0.9: (0.9, 0.25)}, np.ones(4, dtype=np.complex128))
    assert rates.rate(0.9, 1.0) == pytest.approx(math.log(1.15), rel=1e-15)


@pytest.mark.parametrize("gain", [0.5, 1.0, 2.5])
def test_it_is_the_radius_of_a_step_by_autograd(gain: float) -> None:
    """ln rho of the joint Jacobian at zero, which knows nothing of f I + i o U."""
    lstm = one(cell="lstm", gate=0.7, candidate_gain=gain, input_gate=0.4, output_gate=0.6)
    wanted = radius_by_autograd(LSTM, gain, forget=0.7, input=0.4, output=0.6)
    assert lstm.exact_rate == pytest.approx(math.log(wanted), abs=1e-12)
    gru = one(cell="gru", gate=0.7, candidate_gain=gain, reset_gate=0.3)
    wanted = radius_by_autograd(GRU, gain, update=0.7, reset=0.3)
    assert gru.exact_rate == pytest.approx(math.log(wanted), abs=1e-12)


def test_from_the_zero_state_the_measured_rate_is_the_exact_one() -> None:
    """For every cell, gate and gain, where it grows too; and the run says so as a check."""
    result = run(cell="lstm,gru,rnn", candidate_gain="0,1,3", start="zero")
    full = [entry for entry in result.curves if entry.path == "full"]
    assert len(full) == 21
    for entry in full:
        assert entry.rate == pytest.approx(entry.exact_rate, abs=1e-12)
    (check,) = [check for check in result.checks if check.name == EXACT]
    assert check.passed
    assert "over 21 curves" in check.detail


def test_from_elsewhere_a_fading_run_comes_to_it_and_a_growing_one_does_not() -> None:
    """A random start fades to zero below a radius of 1; above it tanh bends the state's growth."""
    result = run(cell="lstm", gate=0.1, candidate_gain="1,3", steps=100)
    fading, growing = curve(result, candidate_gain=1.0), curve(result, candidate_gain=3.0)
    assert fading.rate == pytest.approx(fading.exact_rate, abs=1e-2)
    assert growing.exact_rate == pytest.approx(math.log(1.45), abs=0.05)
    assert growing.rate < growing.exact_rate - 0.2
    assert EXACT not in [check.name for check in result.checks]


def test_a_rate_that_is_not_the_exact_one_fails_the_check() -> None:
    """The check can fail: another matrix would have another radius."""
    result = run(cell="gru", gate=0.5, candidate_gain=1, start="zero")
    (entry, *_) = result.curves
    wrong = [
        entry.__class__(**{**entry.__dict__, "exact_rate": entry.exact_rate + 1e-6}),
    ]
    check = exact_rate_check(wrong, DecaySettings(start="zero"))
    assert check is not None
    assert not check.passed
    assert "1.0e-06" in check.detail


def test_a_block_that_nothing_leads_through_has_no_exact_rate() -> None:
    """dh_T/dh_0 of an LSTM without a candidate is exactly zero at every T."""
    dead = one(cell="lstm", gate=0.5, candidate_gain=0, state="h")
    assert dead.zero_reason == "exact"
    assert dead.exact_rate is None


def test_a_cell_of_ones_own_has_none(tmp_path, monkeypatch) -> None:
    """Its equations are not known."""
    (tmp_path / "own.py").write_text(
        "import torch\n\n\nclass Own(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.w = torch.nn.Linear(3, 3)\n        self.input_size = 1\n"
        "        self.hidden_size = 3\n\n"
        "    def forward(self, x, h):\n        return torch.tanh(self.w(h)) + 0 * x.sum()\n\n\n"
        "def make():\n    return Own()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert one(cell="own.py:make").exact_rate is None


def test_a_sweep_over_gains_has_the_exact_rate_as_a_line() -> None:
    """For each cell and gate, through every gain asked for, and read back from JSON."""
    result = run(cell="lstm,gru", gate="0.1,0.9", candidate_gain="0,0.7,2")
    assert [(line.cell, line.gate_value) for line in result.exact_lines] == [
        ("lstm", 0.1), ("lstm", 0.9), ("gru", 0.1), ("gru", 0.9)
    ]  # fmt: skip
    for line in result.exact_lines:
        assert {0.0, 0.7, 2.0} <= set(line.candidate_gain)
        assert line.rate[0] == pytest.approx(math.log(line.gate_value), rel=1e-14)
        at = int(np.searchsorted(line.candidate_gain, 0.7))
        entry = curve(result, cell=line.cell, gate_value=line.gate_value, candidate_gain=0.7)
        assert line.rate[at] == entry.exact_rate
    again = DecayResult.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert len(again.exact_lines) == 4
    assert run(cell="lstm", candidate_gain="0,1").exact_lines == ()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_gain_too_small_to_matter_changes_nothing(dtype: str) -> None:
    """With 1e-310 the rate is ln z, and the matrix's lost digits do no harm."""
    entry = one(cell="gru", gate=0.5, candidate_gain=1e-310, dtype=dtype)
    assert entry.exact_rate == pytest.approx(math.log(0.5), rel=1e-15)


def test_very_wide_cells_have_none() -> None:
    """All eigenvalues of a matrix of a thousand rows take longer than what they are for."""
    settings = DecaySettings(cell="rnn", gate=0.5, hidden=WIDEST + 1)
    assert zero_state_rates(list(held_cells("rnn", settings)), settings) is None
