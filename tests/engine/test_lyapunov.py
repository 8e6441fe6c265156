"""Lyapunov exponents where they are known: by sum rules, in closed form, from the literature."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from gradflow.cells import LSTM, RNN, stack_cells
from gradflow.engine import LyapunovSpectrum, lyapunov_spectrum
from tests import cases
from tests.engine.maps import (
    henon,
    logistic,
    mean_field_exponent,
    multiply,
    random_hidden,
    random_networks,
)
from tests.engine.measuring import cell_of
from tests.reference import autograd_jacobian, closed_forms
from tests.reference.subject import Subject

STEPS, WARMUP = 260, 60
SETUP = cases.Setup(hidden_size=4, batch=2, steps=STEPS)


def spectrum_of(subject: Subject, **options: int) -> LyapunovSpectrum:
    """Return the spectrum of a subject's cell."""
    cell = cell_of(subject.module)
    return lyapunov_spectrum(cell, subject.state, subject.inputs, warmup=WARMUP, **options)


def random_points(rows: int, width: int) -> Tensor:
    """Return points in (0, 1), (rows, width)."""
    generator = torch.Generator().manual_seed(2)
    return torch.rand(rows, width, generator=generator, dtype=torch.float64)


# closed form


def test_the_sum_of_an_lstm_is_its_mean_log_determinant() -> None:
    """sum lambda = mean sum_j [ln f + ln|tanh c'| + ln(o (1-o))] + ln|det U_o|, to 1e-8."""
    subject = cases.random_subject("lstm", SETUP, weight_scale=1.5)
    cell, state, logs = cell_of(subject.module), subject.state, []
    with torch.no_grad():
        for x in subject.inputs:
            step = cell.step(x, state)
            forget, output = step["forget"], step["output"]
            shown = torch.tanh(step["c"]).abs()
            logs.append((forget * shown * output * (1 - output)).log().sum(dim=-1))
            state = step.state
    weight = cell.weight_hh.detach()[cell.rows("output")]
    expected = torch.stack(logs)[WARMUP:].mean() + torch.linalg.slogdet(weight).logabsdet
    spectrum = spectrum_of(subject)
    assert torch.isfinite(spectrum.exponents).all()
    assert spectrum.sum == pytest.approx(expected.item(), abs=1e-8)


def test_the_sum_of_a_tanh_rnn_is_its_mean_log_determinant() -> None:
    """sum lambda = ln|det W| + mean sum_j ln(1 - h_j^2), chaotic or not."""
    subject = cases.random_subject("rnn", SETUP, weight_scale=2.0)
    states = torch.stack([h for (h,) in autograd_jacobian.trajectory(subject)])
    weight = subject.weights["weight_hh"]
    expected = (1 - states**2).log().sum(dim=-1)[WARMUP:].mean()
    expected += torch.linalg.slogdet(weight).logabsdet
    assert spectrum_of(subject).sum == pytest.approx(expected.item(), abs=1e-8)


@cases.each_kind
def test_the_sum_of_any_cell_is_its_mean_log_determinant(kind: str) -> None:
    """sum lambda = mean ln|det J_t| with autograd's own J_t; -inf where a relu unit is shut."""
    subject = cases.random_subject(kind, SETUP)
    steps = autograd_jacobian.step_jacobians(subject)[WARMUP:]
    expected = torch.linalg.slogdet(steps).logabsdet.mean()
    assert spectrum_of(subject).sum == pytest.approx(expected.item(), abs=1e-8)


def test_a_constant_step_has_the_logs_of_its_eigenvalues() -> None:
    """s' = A s has lambda_i = ln|eigenvalue_i|, here of a matrix with real ones."""
    basis = random_points(3, 3) + torch.eye(3, dtype=torch.float64)
    values = torch.tensor([1.5, -0.8, 0.1], dtype=torch.float64)
    matrix = basis @ torch.diag(values) @ torch.linalg.inv(basis)
    start = torch.zeros(3, dtype=torch.float64)
    spectrum = lyapunov_spectrum(lambda _, s: matrix @ s, start, 300, warmup=100)
    assert torch.allclose(spectrum.exponents, values.abs().log(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_products_of_gaussian_matrices_follow_newman(size: int) -> None:
    """N(0,1) entries: lambda_i = (ln 2 + psi((N-i+1)/2)) / 2 (Newman 1986), within 4 deviations."""
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(1200, 4, size * size, generator=generator, dtype=torch.float64)
    spectrum = lyapunov_spectrum(multiply, x.new_zeros(4, size), x, warmup=200)
    half = (size - torch.arange(size, dtype=torch.float64)) / 2
    expected = (math.log(2) + torch.digamma(half)) / 2
    off = (spectrum.exponents - expected).abs() / spectrum.standard_errors
    assert (off < 4).all()
    assert (spectrum.standard_errors < 0.05).all()  # so that four of them mean something


@pytest.mark.parametrize("gain", [0.0, 1.0])
def test_an_lstm_of_fixed_gates_has_half_its_exponents(gain: float) -> None:
    """At the zero state: ln|eigenvalues of f I + i o U|, and H directions that vanish exactly."""
    setup = cases.Setup(hidden_size=4, batch=1, steps=1500, start="zero")
    subject = cases.held_lstm(0.9, setup, candidate_gain=gain)
    zeros = torch.zeros_like(subject.inputs)
    spectrum = lyapunov_spectrum(cell_of(subject.module), subject.state, zeros)
    matrix = closed_forms.lstm_live_matrix(
        cases.candidate_recurrent(subject), forget=0.9, write=0.1, output=0.5
    )
    expected = np.sort(np.log(np.abs(np.linalg.eigvals(matrix))))[::-1]
    # conjugate pairs turn, so a finite run has their mean to 1/T only
    np.testing.assert_allclose(spectrum.exponents[:4], expected, atol=1e-3)
    assert torch.isneginf(spectrum.exponents[4:]).all()
    assert spectrum.zero_reason == (None,) * 4 + ("exact",) * 4
    assert spectrum.sum == -math.inf
    assert spectrum.kaplan_yorke_dimension == 0.0


# reference


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_a_torch_module_needs_no_closed_form(kind: str) -> None:
    """torch.func on torch's own cell gives the exponents of the closed form."""
    subject = cases.random_subject(kind, SETUP)
    state = subject.state if kind == "lstm" else subject.state[0]
    by_torch = lyapunov_spectrum(subject.module, state, subject.inputs, warmup=WARMUP)
    assert torch.allclose(by_torch.exponents, spectrum_of(subject).exponents, atol=1e-10)


def test_fixed_gates_are_seen_without_a_closed_form() -> None:
    """The same H exact zeros come out of torch's cell, whose Jacobian only looks of full rank."""
    subject = cases.held_lstm(0.9, SETUP, candidate_gain=1.0)
    by_torch = lyapunov_spectrum(subject.module, subject.state, subject.inputs, warmup=WARMUP)
    assert torch.isfinite(by_torch.exponents[:4]).all()
    assert by_torch.zero_reason == (None,) * 4 + ("exact",) * 4


def test_a_few_exponents_of_a_wide_step_are_pushed_forward() -> None:
    """Three tangents through a state of 64 numbers: the leading three of all 64."""
    (cell,) = random_networks(64, 1.2, 1)
    weight, start = cell.weight_hh.detach(), random_hidden(1, 64)
    few = lyapunov_spectrum(lambda _, h: torch.tanh(h @ weight.T), start, 300, count=3, warmup=100)
    own = lyapunov_spectrum(cell, (start,), 300, count=3, warmup=100)
    assert few.state_size == 64
    assert torch.allclose(few.exponents, own.exponents, rtol=0, atol=1e-10)


def test_batch_rows_are_trajectories_of_their_own() -> None:
    """The exponents are the mean of the rows', and a row alone gives its own."""
    subject = cases.random_subject("gru", SETUP)
    together = spectrum_of(subject)
    assert torch.allclose(together.by_row.mean(dim=0), together.exponents)
    alone = spectrum_of(subject.row(1))
    # another random start: what it leaves behind fades with the gap between exponents
    assert torch.allclose(together.by_row[1].sort().values, alone.exponents.flip(0), atol=1e-2)
    assert together.by_row[1].sum().item() == pytest.approx(alone.sum, abs=1e-10)


def test_an_ensemble_is_measured_row_by_row() -> None:
    """Two networks as one batch have the exponents of each."""
    cells = random_networks(8, 0.8, 2)
    states = random_hidden(2, 8)
    both = lyapunov_spectrum(stack_cells(cells), (states,), STEPS, warmup=WARMUP)
    for row, cell in enumerate(cells):
        own = lyapunov_spectrum(cell, (states[row : row + 1],), STEPS, warmup=WARMUP)
        assert both.by_row[row].sum().item() == pytest.approx(own.sum, abs=1e-10)


# rate


@pytest.mark.parametrize(("size", "expected", "number"), [(256, 0.300, 16), (512, 0.305, 6)])
def test_a_chaotic_network_has_the_known_leading_exponent(
    size: int, expected: float, number: int
) -> None:
    """x' = W tanh(x), g = 3: 0.300 at N = 256 and 0.305 at N = 512, mean over networks."""
    ensemble = stack_cells(random_networks(size, 3.0, number))
    start = (random_hidden(number, size),)
    spectrum = lyapunov_spectrum(ensemble, start, 700, count=1, warmup=200)
    assert spectrum.exponents.item() == pytest.approx(expected, abs=0.005)
    assert spectrum.standard_errors.item() < 0.0025


def test_large_networks_tend_to_the_mean_field() -> None:
    """g = 3: 0.3102493 as N grows; two networks of 1024 units are within 0.005, from below."""
    limit = mean_field_exponent(3.0)
    assert limit == pytest.approx(0.3102493, abs=1e-7)
    ensemble = stack_cells(random_networks(1024, 3.0, 2))
    found = lyapunov_spectrum(ensemble, (random_hidden(2, 1024),), 500, count=1, warmup=150)
    assert limit - 0.005 < found.exponents.item() < limit


def test_a_quiet_network_has_the_log_of_its_spectral_radius() -> None:
    """Where the radius is below 1 the state dies, and lambda_1 is ln of the radius."""
    for seed in range(3):
        (cell,) = random_networks(64, 0.9, 1, seed=seed)
        radius = closed_forms.log_spectral_radius(cell.weight_hh.detach().numpy())
        assert radius < 0
        spectrum = lyapunov_spectrum(cell, (random_hidden(1, 64),), 3000, count=2, warmup=1000)
        assert spectrum.exponents[0].item() == pytest.approx(radius, abs=1e-3)
        assert spectrum.kaplan_yorke_dimension == 0.0


def test_the_henon_map_has_its_published_exponents() -> None:
    """0.41922 and -1.62319 within 1e-3; their sum is ln 0.3 exactly; dimension 1.258."""
    spectrum = lyapunov_spectrum(henon, 0.1 * random_points(400, 2), 1600, warmup=100)
    assert spectrum.exponents[0].item() == pytest.approx(0.41922, abs=1e-3)
    assert spectrum.exponents[1].item() == pytest.approx(-1.62319, abs=1e-3)
    assert spectrum.sum == pytest.approx(math.log(0.3), abs=1e-12)
    assert spectrum.kaplan_yorke_dimension == pytest.approx(1.258, abs=2e-3)


def test_the_logistic_map_has_ln_2() -> None:
    """r = 4: every trajectory but the eventually periodic ones doubles distances, within 1e-4."""
    spectrum = lyapunov_spectrum(logistic, random_points(400, 1), 2100, warmup=100)
    assert spectrum.exponents.item() == pytest.approx(math.log(2), abs=1e-4)


# edges


def test_a_state_without_batch_axis_is_one_trajectory() -> None:
    """A bare vector, or a bare number, is given to the function as it came."""
    vector = random_points(1, 2)[0] / 10
    one = lyapunov_spectrum(henon, vector, 300, warmup=100)
    row = lyapunov_spectrum(henon, vector.unsqueeze(0), 300, warmup=100)
    assert torch.allclose(one.exponents, row.exponents)
    number = lyapunov_spectrum(logistic, torch.tensor(0.3, dtype=torch.float64), 200, warmup=0)
    assert number.exponents.shape == (1,)


def test_one_step_has_a_mean_and_no_error() -> None:
    """T = 1 without warm-up: ln|det J| as the sum, and no standard error to speak of."""
    subject = cases.random_subject("rnn", cases.Setup(batch=1, steps=1))
    spectrum = lyapunov_spectrum(cell_of(subject.module), subject.state, subject.inputs, warmup=0)
    expected = torch.linalg.slogdet(autograd_jacobian.step_jacobians(subject)).logabsdet
    assert spectrum.sum == pytest.approx(expected.item(), abs=1e-12)
    assert torch.isnan(spectrum.standard_errors).all()
    assert spectrum.steps == 1


def test_float32_states_keep_float64_exponents() -> None:
    """A float32 trajectory is differentiated in float64: small exponents keep their digits."""
    subject = cases.random_subject("lstm", SETUP, weight_scale=0.8)
    wide = spectrum_of(subject)
    cell = cell_of(subject.module).float()
    state = tuple(part.float() for part in subject.state)
    narrow = lyapunov_spectrum(cell, state, subject.inputs.float(), warmup=WARMUP)
    assert narrow.exponents.dtype == torch.float64
    assert torch.allclose(narrow.exponents, wide.exponents, rtol=0, atol=1e-4)
    assert cell.dtype == torch.float32  # the cell itself is left as it was
    by_torch = lyapunov_spectrum(cell.to_torch(), state, subject.inputs.float(), warmup=WARMUP)
    assert torch.allclose(by_torch.exponents, narrow.exponents, rtol=0, atol=1e-5)


def test_standard_errors_shrink_with_the_root_of_the_length() -> None:
    """Four times the steps, half the standard error, within the noise of 20 blocks."""
    x = torch.randn(9000, 1, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    short, long = (
        lyapunov_spectrum(multiply, x.new_zeros(1, 2), x[:steps], warmup=200)
        for steps in (2200, 8200)
    )
    ratio = short.standard_errors / long.standard_errors
    assert ((ratio > 1.2) & (ratio < 3.3)).all()


def test_an_unweighted_network_forgets_at_once() -> None:
    """W = 0: nothing is left of any direction after one step, exactly."""
    cell = RNN(1, 3, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.zero_()
    spectrum = lyapunov_spectrum(cell, (random_hidden(1, 3),), 5, warmup=0)
    assert spectrum.zero_reason == ("exact",) * 3
    assert spectrum.method == "diagonal"


def test_the_diagonal_way_sorts_units_by_their_gates() -> None:
    """U = 0: each unit's exponent is its mean ln f, exactly; the QR way agrees."""
    cell = LSTM(1, 3, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_hh.zero_()
    state = (random_hidden(1, 3), random_hidden(1, 3, seed=4))
    x = random_hidden(400, 1, seed=5).unsqueeze(-1)
    spectrum = lyapunov_spectrum(cell, state, x, warmup=100)
    with torch.no_grad():
        forget = torch.stack([cell.step(row, state)["forget"][0] for row in x])
    expected = forget.log()[100:].mean(dim=0).sort(descending=True).values
    assert torch.allclose(spectrum.exponents[:3], expected, rtol=0, atol=1e-14)
    assert spectrum.method == "diagonal"
    by_torch = lyapunov_spectrum(cell.to_torch(), state, x, warmup=100)
    assert by_torch.method == "qr"
    # the frame turns towards the units of larger gates at the rate of the gaps between them
    assert torch.allclose(by_torch.exponents[:3], expected, rtol=0, atol=0.02)
