"""Where a gradient travels: every path against autograd, formulas and 50 digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from gradflow.cells import LSTM, stack_cells
from gradflow.engine import PathNorms, jacobian_norms, path_norms
from gradflow.errors import ShapeError, UnknownNameError
from tests import cases
from tests.engine.measuring import EVERY_BLOCK, cell_of
from tests.field_cases import field_case, lstm_cell_of
from tests.reference import autograd_jacobian, direct_path
from tests.reference.ablated_steps import ablated_products
from tests.reference.mpmath_cells import exact, exact_step
from tests.reference.subject import Subject

GATES = {
    "lstm": ("input", "forget", "output", "candidate"),
    "gru": ("reset", "update", "candidate"),
    "gru-before": ("reset", "update", "candidate"),
    "rnn": ("candidate",),
}
EVERY_GATE = [(kind, gate) for kind, gates in GATES.items() for gate in gates]


def paths_of(subject: Subject, **options: Any) -> PathNorms:
    """Return the path norms of a subject's cell."""
    return path_norms(cell_of(subject.module), subject.inputs, subject.state, **options)


def log_of(matrices: torch.Tensor, norm: str = "spectral") -> torch.Tensor:
    """Return ln of the norms of matrices, (..., rows, columns)."""
    return autograd_jacobian.matrix_norm(matrices, norm).log()


# closed form


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
def test_held_gates_and_a_dead_candidate_leave_the_direct_path(norm: str) -> None:
    """U = 0: full and direct are f^T, the rest is exactly zero, and f^T is the right model."""
    setup = cases.Setup(steps=700)  # 0.1^700 is far below every float
    paths = paths_of(cases.held_lstm(0.1, setup), norm=norm, at=[1, 10, 700])
    assert paths.direct is not None
    assert paths.rest is not None
    assert paths.departure is not None
    cases.assert_same_log_norm(paths.full, paths.direct)
    assert torch.isneginf(paths.rest).all()
    assert paths.zero_reason["rest"] == ("exact",) * 3
    assert paths.departure.abs().max() < 1e-12


def test_what_h_shows_of_c_is_a_detour_of_the_joint_state() -> None:
    """U = 0: R = P - D has the one block dh_T/dc_0 = o sech^2(c_T) f^T."""
    subject = cases.held_lstm(0.9)
    paths = paths_of(subject, block="joint")
    assert paths.rest is not None
    cases.assert_same_log_norm(paths.rest, paths.blocks["h", "c"])
    block = autograd_jacobian.log_norms(subject, block=("h", "c"))
    cases.assert_same_log_norm(paths.rest, block)


def test_without_all_its_gates_only_the_direct_path_is_left() -> None:
    """An LSTM whose gates and candidate are all constants has dc_T/dc_0 = product of f."""
    subject = cases.random_subject("lstm")
    paths = paths_of(subject, cut=GATES["lstm"])
    assert paths.direct is not None
    cases.assert_same_log_norm(paths.full, paths.direct)
    assert paths.without == {}
    assert paths.cut == frozenset(GATES["lstm"])


# reference


@pytest.mark.parametrize("name", ["small_recurrent", "large_recurrent"])
def test_the_reported_case_is_reproduced(name: str) -> None:
    """Full, direct and joint norms of two stored networks; f^T is off by 0.05 and 0.10 nats."""
    case = field_case("direct_path_against_full")
    expected = case.expected[name]
    zero = torch.zeros(1, 6, dtype=torch.float64)
    inputs = torch.tensor(case.arrays["inputs"])[:, None]
    subject = Subject(lstm_cell_of(case.weights(name)), inputs, (zero, zero))
    steps = expected["steps"]
    spectral = paths_of(subject, at=steps)
    frobenius = paths_of(subject, at=steps, norm="frobenius")
    assert spectral.direct is not None
    found = {
        "full_spectral": spectral.full,
        "direct_max": spectral.direct,
        "joint_spectral": spectral.blocks["joint"],
        "full_frobenius": frobenius.full,
    }
    for key, values in found.items():
        cases.assert_same_log_norm(values[:, 0], np.log(expected[key]))
    ratio = math.log(expected["full_spectral"][-1] / expected["direct_max"][-1])
    assert spectral.departure is not None
    assert spectral.departure.item() == pytest.approx(ratio / steps[-1], abs=1e-12)


@cases.each_kind
def test_the_full_path_is_what_the_instrument_measures(kind: str) -> None:
    """path_norms and jacobian_norms agree on the full product and on the direct path."""
    subject = cases.random_subject(kind, cases.Setup(steps=60))
    cell = cell_of(subject.module)
    paths = paths_of(subject)
    norms = jacobian_norms(cell, subject.inputs, subject.state)
    cases.assert_same_log_norm(paths.full, norms.log_norm)
    if norms.direct_log_norm is None:
        assert paths.direct is None
        assert paths.rest is None
        assert paths.departure is None
    else:
        cases.assert_same_log_norm(paths.direct, norms.direct_log_norm)


@pytest.mark.parametrize(("kind", "block"), EVERY_BLOCK)
def test_the_rest_is_the_full_less_the_direct_path(kind: str, block: Any) -> None:
    """R_T = P_T - D_T on every block, where subtracting loses few digits."""
    subject = cases.random_subject(kind)
    paths = paths_of(subject, block=block)
    product = autograd_jacobian.jacobians(subject)
    rows, columns = subject.spans(block)
    cases.assert_same_log_norm(paths.full, log_of(product[:, :, rows, columns]))
    assert (paths.direct is None) == kind.startswith("rnn")
    if paths.direct is not None:
        kept = subject.span(subject.parts[-1])
        direct = torch.zeros_like(product)
        keep = direct_path.keep_gates(subject).cumprod(dim=0)
        direct[:, :, kept, kept] = torch.diag_embed(keep)
        cases.assert_same_log_norm(paths.direct, log_of(direct[:, :, rows, columns]))
        rest = (product - direct)[:, :, rows, columns]
        rest[rest.abs() < 1e-15] = 0.0  # dc_1/dc_0 is f itself
        cases.assert_same_log_norm(paths.rest, log_of(rest), tolerance=1e-11)


def test_all_blocks_are_those_of_one_product() -> None:
    """(h,h), (h,c), (c,h), (c,c) and joint; a cell of one part has none to tell apart."""
    subject = cases.random_subject("lstm")
    paths = paths_of(subject)
    assert set(paths.blocks) == {"joint", *((a, b) for a in "hc" for b in "hc")}
    for block, norms in paths.blocks.items():
        expected = autograd_jacobian.log_norms(subject, block=block)
        cases.assert_same_log_norm(norms, expected)
    assert paths_of(cases.random_subject("gru")).blocks == {}


@pytest.mark.parametrize(("kind", "gate"), EVERY_GATE)
def test_a_gate_that_is_cut_is_a_constant_to_autograd(kind: str, gate: str) -> None:
    """The full product without a gate equals autograd's with that gate detached from the state."""
    subject = cases.random_subject(kind)
    kept = subject.span(subject.parts[-1])
    expected = log_of(ablated_products(subject, [gate], kind=kind)[:, :, kept, kept])
    cases.assert_same_log_norm(paths_of(subject).without[gate], expected)
    cases.assert_same_log_norm(paths_of(subject, cut=[gate]).full, expected)


def test_cuts_add_up() -> None:
    """With one gate cut everywhere, each other one is cut besides."""
    subject = cases.random_subject("lstm")
    paths = paths_of(subject, cut=["forget"])
    assert set(paths.without) == {"input", "output", "candidate"}
    product = ablated_products(subject, ["forget", "output"], kind="lstm")[:, :, 5:, 5:]
    cases.assert_same_log_norm(paths.without["output"], log_of(product))


def test_a_weak_rest_keeps_all_its_digits() -> None:
    """Weights of 1e-9: the rest is 1e-9 of the whole, and right to 12 digits, not to 7."""
    setup = cases.Setup(hidden_size=3, batch=1, steps=12)
    subject = cases.random_subject("lstm", setup)
    with torch.no_grad():
        dict(subject.module.named_parameters())["weight_hh"].mul_(1e-9)
    paths = paths_of(subject, norm="frobenius")
    with mpmath.workdps(50):
        step, state = exact_step(subject.module), exact(torch.cat(subject.state, dim=1)[0])
        product, keep, expected = None, 1, []
        for x in exact(subject.inputs[:, 0]):
            state, jacobian = step(x, state)
            product = jacobian if product is None else jacobian @ product
            keep = keep * np.diag(jacobian)[3:]  # dc'/dc of one step is f and nothing else
            rest = product[3:, 3:] - np.diag(keep)
            square = mpmath.fsum(rest.ravel(), squared=True)
            expected.append(float(mpmath.log(square) / 2) if square else -math.inf)
    assert paths.rest is not None
    assert paths.rest[-1] < paths.full[-1] - 15
    cases.assert_same_log_norm(paths.rest[:, 0], expected)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_an_ensemble_is_measured_row_by_row(kind: str) -> None:
    """Two cells as one batch have the paths of each."""
    setups = [cases.Setup(batch=1, seed=seed) for seed in (0, 1)]
    subjects = [cases.random_subject(kind, setup) for setup in setups]
    cell = stack_cells([cell_of(subject.module) for subject in subjects])
    inputs = torch.cat([subject.inputs for subject in subjects], dim=1)
    state = tuple(torch.cat(parts) for parts in zip(*(s.state for s in subjects), strict=True))
    both = path_norms(cell, inputs, state)
    for row, subject in enumerate(subjects):
        own = paths_of(subject)
        cases.assert_same_log_norm(both.rest[:, row], own.rest[:, 0])  # type: ignore[index]
        for gate, norms in own.without.items():
            cases.assert_same_log_norm(both.without[gate][:, row], norms[:, 0])


# rate


def test_a_live_candidate_departs_from_the_gate_by_the_known_rate() -> None:
    """f = 0.9, i = o = 0.5, U = I: 1.15 per step, so f^T is off by ln(1.15/0.9) nats a step."""
    setup = cases.Setup(hidden_size=4, batch=1, steps=400, start="zero")
    subject = cases.held_lstm(0.9, setup, input_gate=0.5, candidate_gain=1.0)
    zeros = torch.zeros_like(subject.inputs)
    with torch.no_grad():
        weight = dict(subject.module.named_parameters())["weight_hh"]
        weight[8:12] = torch.eye(4)
    paths = paths_of(Subject(subject.module, zeros, subject.state))
    assert paths.departure is not None
    # over 400 steps the fixed factor before the power has faded to 1/400 of itself
    assert paths.departure.item() == pytest.approx(math.log(1.15 / 0.9), abs=1e-3)
    assert paths.full[-1].item() == pytest.approx(paths.rest[-1].item())  # type: ignore[index]
    cases.assert_same_log_norm(paths.without["candidate"], paths.direct)


def test_paths_far_below_every_float_are_measured() -> None:
    """f = 0.1 with a weak live candidate: after 1500 steps 10^-1500, and the full path apart."""
    setup = cases.Setup(hidden_size=3, batch=2, steps=1500)
    subject = cases.held_lstm(0.1, setup, candidate_gain=0.5)
    still = torch.zeros_like(subject.inputs[:1]).expand(1500, -1, -1)
    paths = paths_of(Subject(subject.module, still, subject.state), at=[1500])
    assert paths.rest is not None
    assert paths.direct is not None
    assert torch.isfinite(paths.rest).all()
    expected = torch.full((1, 2), 1500 * math.log(0.1), dtype=torch.float64)
    cases.assert_same_log_norm(paths.direct, expected, tolerance=1e-11)
    assert (paths.full > paths.direct + 500).all()
    cases.assert_same_log_norm(paths.rest, paths.full)


# edges


def test_what_is_not_connected_is_exactly_zero() -> None:
    """Held gates: nothing of h_0 is felt, in any block, whatever is cut; c_0 is."""
    paths = paths_of(cases.held_lstm(0.5))
    assert paths.zero_reason["h,h"] == paths.zero_reason["c,h"] == ("exact",) * 3
    assert paths.zero_reason["h,c"] == paths.zero_reason["full"] == (None,) * 3
    rnn = paths_of(cases.random_subject("rnn"))
    assert torch.isneginf(rnn.without["candidate"]).all()
    assert rnn.zero_reason["without candidate"] == ("exact",) * 3


def test_a_slope_that_underflows_is_told_apart() -> None:
    """An input gate biased by -800 is 0 in float64: its path underflows, though it exists."""
    cell = LSTM(1, 2, dtype=torch.float64)
    with torch.no_grad():
        cell.bias_ih[cell.rows("input")] = -800.0
        cell.bias_ih[cell.rows("forget")] = 0.0
        cell.weight_hh[cell.rows("forget")] = 0.0
        cell.weight_hh[cell.rows("output")] = 0.0
    state = tuple(0.5 * torch.ones(1, 2, dtype=torch.float64) for _ in range(2))
    paths = path_norms(cell, torch.zeros(4, 1, 1, dtype=torch.float64), state, at=[2, 3])
    assert paths.zero_reason["rest"] == ("underflow",)
    assert paths.zero_reason["full"] == (None,)


def test_float32_agrees_with_float64() -> None:
    """Each path in float32 is that of float64 within float32's rounding."""
    wide = paths_of(cases.random_subject("lstm"))
    narrow = paths_of(cases.random_subject("lstm", cases.Setup(dtype=torch.float32)))
    assert narrow.full.dtype == torch.float64
    assert wide.rest is not None
    assert narrow.rest is not None
    cases.assert_same_log_norm(narrow.full, wide.full, tolerance=1e-5)
    cases.assert_same_log_norm(narrow.rest, wide.rest, tolerance=1e-4)


def test_a_run_in_pieces_is_the_run() -> None:
    """Measuring a few steps gives the numbers of measuring all."""
    subject = cases.random_subject("gru", cases.Setup(steps=40))
    every, some = paths_of(subject), paths_of(subject, at=[40, 7])
    assert some.steps.tolist() == [7, 40]
    cases.assert_same_log_norm(some.rest, every.rest[[6, 39]])  # type: ignore[index]


# words


def test_a_gate_that_is_not_there_cannot_be_cut() -> None:
    """The nearest gate is offered; a bare string is one gate and not its letters."""
    subject = cases.random_subject("gru")
    with pytest.raises(UnknownNameError, match=r"no gate 'updte' to cut. Did you mean 'update'"):
        paths_of(subject, cut=["updte"])
    assert paths_of(subject, cut="update").cut == {"update"}
    with pytest.raises(ShapeError, match="'at' lists steps from 1 to 6"):
        paths_of(subject, at=[7])
