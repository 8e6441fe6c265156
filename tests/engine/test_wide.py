"""Blocks of 96 columns and more, where the largest singular value is followed, not decomposed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gradflow.engine.norm_readers import ExactSpectralReader
from gradflow.engine.spectral import LeadingSingularValue, WarmSpectralReader, proved_square
from tests import cases
from tests.engine.measuring import column, measure, silent
from tests.reference import autograd_jacobian, closed_forms

WIDE = cases.Setup(hidden_size=100, batch=2, steps=30)
AT_ZERO = cases.Setup(hidden_size=100, batch=1, steps=30, start="zero")
STEPS = np.arange(1, 31)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("weight_scale", [0.5, 1.5])
def test_a_wide_cell_has_the_norm_of_a_full_decomposition(kind: str, weight_scale: float) -> None:
    """The value that is followed is the largest singular value at every step, to 1e-12."""
    subject = cases.random_subject(kind, WIDE, weight_scale=weight_scale)
    expected = autograd_jacobian.log_norms(subject)
    cases.assert_same_log_norm(measure(subject, block="joint").log_norm, expected)


@pytest.mark.parametrize("gate", [0.1, 0.9])
@pytest.mark.parametrize("gain", [0.0, 1.0])
def test_wide_held_cells_keep_their_closed_forms(gate: float, gain: float) -> None:
    """f M^(T-1), its joint form and (z I + (1 - z) r U)^T hold for 100 units as for 5."""
    lstm = cases.held_lstm(gate, AT_ZERO, candidate_gain=gain)
    recurrent = cases.candidate_recurrent(lstm)
    gates = {"forget": gate, "write": 1 - gate, "output": 0.5}
    matrix = closed_forms.lstm_live_matrix(recurrent, **gates)
    left, right = closed_forms.lstm_live_factors(recurrent, **gates)
    own = [closed_forms.live_log_norm(matrix, int(t) - 1) + math.log(gate) for t in STEPS]
    joint = [closed_forms.live_log_norm(matrix, int(t) - 1, left=left, right=right) for t in STEPS]
    for method in ("auto", "dense"):
        cases.assert_same_log_norm(column(measure(lstm, method=method)), own)
        cases.assert_same_log_norm(column(measure(lstm, block="joint", method=method)), joint)
    gru = cases.held_gru(gate, AT_ZERO, candidate_gain=gain)
    matrix = closed_forms.gru_live_matrix(cases.candidate_recurrent(gru), update=gate, reset=0.5)
    expected = [closed_forms.live_log_norm(matrix, int(t)) for t in STEPS]
    cases.assert_same_log_norm(column(measure(gru, method="dense")), expected)


def test_singular_values_that_cross_are_not_mistaken_for_one_another() -> None:
    """diag(1, 2) halves its second entry each step: the largest changes hands, and is followed."""
    sizes = torch.ones(100, dtype=torch.float64) / 10
    warm = LeadingSingularValue(100, device=torch.device("cpu"))
    for step in range(40):
        sizes[0], sizes[1] = 1.0, 2.0 * 0.9**step
        matrix = torch.diag(sizes)
        found = warm.log_of(matrix, float(torch.linalg.vector_norm(matrix)))
        assert found == pytest.approx(math.log(max(1.0, 2.0 * 0.9**step)), abs=1e-12)
    assert warm.proved > 0


def test_readers_agree_on_any_matrix() -> None:
    """Flat, steep, tiny, zero and broken matrices read alike with and without following."""
    generator = torch.Generator().manual_seed(0)
    draw = {"generator": generator, "dtype": torch.float64}
    flat = torch.linalg.qr(torch.randn(100, 100, **draw))[0]
    steep = torch.randn(100, 100, **draw) * torch.logspace(0, -30, 100, dtype=torch.float64)
    nan = steep.clone()
    nan[3, 4] = math.nan
    like = torch.zeros(1, dtype=torch.float64)
    warm, exact = WarmSpectralReader(1, 100, like=like), ExactSpectralReader(1, like=like)
    for matrix in (flat, steep, 1e-300 * steep, steep, 1e300 * flat, 0 * flat, nan, flat):
        size = float(torch.linalg.vector_norm(matrix))
        for reader in (warm, exact):
            reader.read(matrix[None], [size], [7])
    found, expected = warm.log_norms()[:, 0], exact.log_norms()[:, 0]
    assert torch.isnan(found[6])
    assert torch.isnan(expected[6])
    keep = [0, 1, 2, 3, 4, 5, 7]
    cases.assert_same_log_norm(found[keep], expected[keep])
    assert found[0].item() == pytest.approx(7 * math.log(2), abs=1e-13)


def test_a_value_is_proved_only_where_nothing_larger_can_hide() -> None:
    """What is left of the trace must be smaller than the value, whatever the residual says."""
    assert proved_square([4.0], [0.0], trace=7.9) == 4.0
    assert proved_square([4.0], [0.0], trace=8.1) is None
    assert proved_square([4.0], [1.0], trace=4.5) is None
    assert proved_square([4.0, 3.9], [1e-9, 1e-9], trace=9.0) == 4.0


def test_a_wide_float32_cell_is_measured_too() -> None:
    """In float32 the followed value agrees with float64's to float32's own digits."""
    exact, single = (
        measure(
            silent(
                cases.held_gru(
                    0.5,
                    cases.Setup(hidden_size=100, batch=1, start="zero", dtype=dtype),
                    candidate_gain=1.0,
                ),
                200,
            ),
            at=[1, 100, 200],
        )
        for dtype in (torch.float64, torch.float32)
    )
    assert exact.log_norm[-1, 0] < -20
    # 200 float32 products, 6e-8 each
    cases.assert_same_log_norm(single.log_norm, exact.log_norm, tolerance=1e-5)
