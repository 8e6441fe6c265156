"""The stored numbers of field cases, proved again by the twins."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch

from tests import cases
from tests.data import naive_sigmoid_cell
from tests.field_cases import DATA, field_case, lstm_cell_of
from tests.reference import autograd_jacobian, closed_forms, direct_path
from tests.reference.subject import Subject

NAMES = sorted(path.stem for path in DATA.glob("*.json"))
REPORT = re.compile(r"https://\S+|[\w.-]+/[\w.-]+#\d+")  # a page, or a thread of a repository


@pytest.mark.parametrize("name", NAMES)
def test_every_case_says_where_it_is_from(name: str) -> None:
    """A case cites the reports that it is rebuilt from, asks a question, states its tolerance.

    Only counts are compared exactly.
    """
    case = field_case(name)
    assert all(REPORT.fullmatch(report) for report in case.source.split("; "))
    assert case.question.endswith("?")
    assert 0 <= case.tolerance <= 1e-6
    assert (case.tolerance == 0) == (name == "parameter_counts")


@pytest.mark.parametrize("name", ["both_biases", "one_bias"])
def test_two_biases_of_one_are_a_forget_bias_of_two(name: str) -> None:
    """The decay of the stored weights is f^T with f the sigmoid of the two biases' sum."""
    case = field_case("forget_bias_set_twice")
    expected = case.expected[name]
    cell = lstm_cell_of(case.weights(name))
    setup = cases.Setup(input_size=6, hidden_size=8, steps=200)
    drawn = cases.random_subject("lstm", setup)
    found = autograd_jacobian.log_norms(Subject(cell, drawn.inputs, drawn.state), block=("c", "c"))
    steps = np.array(expected["steps"])
    trend = closed_forms.held_log_norm(expected["forget_gate"], steps, size=8)
    cases.assert_same_log_norm(found[steps - 1], np.tile(trend[:, None], 3))
    cases.assert_same_log_norm(np.log(expected["norm"]), trend)
    assert expected["half_life_steps"] == closed_forms.half_life(expected["forget_gate"])


@pytest.mark.parametrize("kind", ["naive", "stable"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_naive_sigmoid_is_nan_backward_only(kind: str, dtype: torch.dtype) -> None:
    """Forward is finite; backward the first NaN is the shut input gate of the last step."""
    case = field_case("naive_sigmoid")
    expected = case.expected[f"{str(dtype).removeprefix('torch.')}_{kind}"]
    build = {"naive": naive_sigmoid_cell.make_cell, "stable": naive_sigmoid_cell.make_stable_cell}
    cell = build[kind]().to(dtype)
    rows = []
    cell.lin.register_forward_hook(lambda *call: rows.append(call[2]))
    state = (torch.zeros(2, 3, dtype=dtype), torch.zeros(2, 3, dtype=dtype))
    for x in torch.tensor(case.arrays["inputs"], dtype=dtype):
        state = cell(x, state)
    assert torch.isfinite(state[0]).all()
    wanted = [*rows, dict(cell.named_parameters())["lin.bias"]]
    *by_rows, by_bias = torch.autograd.grad(state[0].sum(), wanted)
    columns = [torch.isnan(g).any(dim=0).nonzero().flatten().tolist() for g in by_rows]
    assert columns == expected["nan_columns_per_step"]
    stored = np.array(expected["bias_grad"], dtype=np.float64)  # null becomes NaN
    precision = 1e-5 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(by_bias.numpy(), stored, rtol=precision)


def test_a_float32_norm_is_zero_long_before_its_elements() -> None:
    """An all-zero LSTM keeps 2^-T: float32 elements live to T = 149, their norm to T = 74."""
    expected = field_case("float32_underflow").expected
    for dtype, table in (
        (torch.float32, expected["float32"]),
        (torch.float64, expected["float64"]),
    ):
        for index, steps in enumerate(table["steps"]):
            gradient = _all_zero_gradient(steps, dtype)
            assert gradient[0, 0].item() == table["gradient_element"][index]
            assert gradient.norm().item() == table["norm_in_dtype"][index]
            true = math.log10(2) * (1 - steps)
            assert table["log10_norm"][index] == pytest.approx(true, rel=1e-14)
    for name, first_zero in expected["first_zero_element"].items():
        dtype = getattr(torch, name)
        assert _all_zero_gradient(first_zero - 1, dtype)[0, 0] != 0
        assert _all_zero_gradient(first_zero, dtype)[0, 0] == 0


def _all_zero_gradient(steps: int, dtype: torch.dtype) -> Any:
    """Return d(sum c_T)/dc_0 of an LSTM with four units and only zeros for weights."""
    setup = cases.Setup(input_size=2, hidden_size=4, batch=1, start="zero", dtype=dtype)
    subject = cases.held_lstm(0.5, setup)  # logit(1/2) = 0, so every weight is zero
    hidden, start = subject.state[0], subject.state[1].requires_grad_()
    state = (hidden, start)
    for _ in range(steps):
        state = subject.module(torch.zeros(1, 2, dtype=dtype), state)
    return torch.autograd.grad(state[1].sum(), start)[0]


@pytest.mark.parametrize("name", ["small_recurrent", "large_recurrent"])
def test_the_direct_path_is_not_the_whole(name: str) -> None:
    """The full dc_T/dc_0 exceeds the product of forget gates, by 50 times for large weights."""
    case = field_case("direct_path_against_full")
    expected = case.expected[name]
    zero = torch.zeros(1, 6, dtype=torch.float64)
    inputs = torch.tensor(case.arrays["inputs"])[:, None]
    subject = Subject(lstm_cell_of(case.weights(name)), inputs, (zero, zero))
    picked = [step - 1 for step in expected["steps"]]
    kept = direct_path.keep_gates(subject)[:, 0].cumprod(dim=0)
    found = {
        "direct_max": kept.amax(dim=1).log(),
        "direct_mean": kept.mean(dim=1).log(),
        "full_spectral": autograd_jacobian.log_norms(subject, block=("c", "c"))[:, 0],
        "full_frobenius": autograd_jacobian.log_norms(subject, block=("c", "c"), norm="frobenius")[
            :, 0
        ],
        "joint_spectral": autograd_jacobian.log_norms(subject)[:, 0],
    }
    for key, values in found.items():
        cases.assert_same_log_norm(values[picked], np.log(expected[key]))


def test_norms_with_zeros_and_holes_are_counted() -> None:
    """Forty halvings, twenty zeros, a NaN and an infinity: the stored counts are the counts."""
    case = field_case("norms_with_zeros")
    lag, norm = case.arrays["lag"], case.arrays["grad_norm"]
    alive = np.isfinite(norm) & (norm > 0)
    counts = (len(norm), alive.sum(), (norm == 0).sum(), np.isnan(norm).sum(), np.isinf(norm).sum())
    keys = ("rows", "finite_positive", "exact_zero", "nan", "inf")
    assert counts == tuple(case.expected[key] for key in keys)
    assert lag[norm == 0][0] == case.expected["first_zero_lag"]
    assert norm[alive].min() == case.expected["smallest_positive"]
    slope = np.polyfit(lag[alive], np.log10(norm[alive]), 1)[0]
    assert slope == pytest.approx(case.expected["slope_log10_per_step"], abs=1e-12)
