"""Checks and notes of `decay`: what fails a run, what is only said."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradflow.experiments.decay_checks import decay_checks, decay_notes
from gradflow.records import AutogradCheck, Check, DecayCurve

STEPS = np.arange(1, 11)
ORDER = "larger keep gate decays slower"
AUTOGRAD = "autograd agrees"
FINITE = "every number is finite or a known zero"


def _curve(gate: float | None = 0.5, rate: float | None = -0.7, **changes: Any) -> DecayCurve:
    logs = np.full(10, -math.inf) if rate is None else rate * STEPS
    plain: dict[str, Any] = {
        "cell": "lstm",
        "gate_name": None if gate is None else "forget",
        "gate_value": gate,
        "gate_min": gate,
        "gate_max": gate,
        "candidate_gain": 0.0,
        "state": "c",
        "path": "full",
        "norm": "spectral",
        "steps": STEPS,
        "log10_norm": logs / math.log(10),
        "trend_log10": None,
        "rate": rate,
        "trend_rate": None if gate is None else math.log(gate),
        "half_life": None,
    }
    return DecayCurve(**{**plain, **changes})


def _check(name: str, *curves: DecayCurve) -> Check:
    (found,) = [check for check in decay_checks(curves) if check.name == name]
    return found


def _autograd(error: float | None, tolerance: float = 1e-10) -> AutogradCheck:
    return AutogradCheck((1, 5), error, tolerance, "torch.nn.LSTMCell")


def test_a_larger_keep_gate_must_decay_slower() -> None:
    """At gain 0 rates must rise with the gate, in whatever order the curves come."""
    slow, fast = _curve(0.9, -0.1), _curve(0.1, -2.3)
    assert _check(ORDER, slow, fast).passed
    assert _check(ORDER, fast, slow).passed
    wrong = _check(ORDER, _curve(0.9, -2.3), _curve(0.1, -0.1))
    assert not wrong.passed
    assert "0.1: -0.100000, 0.9: -2.300000" in wrong.detail
    assert not _check(ORDER, _curve(0.9, -1.0), _curve(0.1, -1.0)).passed


def test_each_cell_is_judged_by_itself() -> None:
    """A slow GRU does not excuse an LSTM: one check a cell, named in its detail."""
    curves = [_curve(0.1, -2.3), _curve(0.9, -0.1)]
    curves += [_curve(0.1, -0.1, cell="gru"), _curve(0.9, -2.3, cell="gru")]
    checks = [check for check in decay_checks(curves) if check.name == ORDER]
    assert [check.passed for check in checks] == [True, False]
    assert checks[0].detail.startswith("lstm")
    assert checks[1].detail.startswith("gru")


@pytest.mark.parametrize(
    "curves",
    [
        [_curve(0.1, -2.3)],
        [_curve(0.1, None), _curve(0.9, None)],
        [_curve(0.1, -0.1, candidate_gain=1.0), _curve(0.9, -2.3, candidate_gain=1.0)],
        [_curve(0.1, -0.1, path="direct"), _curve(0.9, -2.3, path="direct")],
        [_curve(None, -0.1, candidate_gain=0.0), _curve(None, -2.3, candidate_gain=0.0)],
    ],
    ids=["one gate", "zero", "live", "direct", "no gate"],
)
def test_no_order_is_asked_where_none_is_promised(curves: list[DecayCurve]) -> None:
    """One gate value, a zero curve, a live candidate, the direct path, a cell without gates."""
    assert ORDER not in [check.name for check in decay_checks(curves)]


@pytest.mark.parametrize(
    ("error", "passed"),
    [(0.0, True), (1e-10, True), (1.1e-10, False), (math.nan, False), (math.inf, False)],
)
def test_autograd_agrees_within_the_tolerance_or_not(error: float, passed: bool) -> None:
    """One curve beyond its tolerance fails, and so does a number that is none."""
    good = _curve(autograd=_autograd(0.0))
    assert _check(AUTOGRAD, good, _curve(autograd=_autograd(error))).passed == passed
    assert _check(AUTOGRAD, _curve(autograd=_autograd(error)), good).passed == passed


def test_the_autograd_check_says_how_much_it_read() -> None:
    """The worst error, the tolerance, over how many curves, and what was differentiated."""
    read = _curve(autograd=_autograd(3e-12))
    unread = _curve(autograd=AutogradCheck((), None, 1e-10, "torch.nn.LSTMCell"))
    detail = _check(AUTOGRAD, read, unread, _curve(path="direct")).detail
    assert "3.0e-12" in detail
    assert "tolerance 1e-10" in detail
    assert "1 of 2 curves" in detail
    assert "torch.nn.LSTMCell" in detail
    nothing = _check(AUTOGRAD, unread)
    assert nothing.passed
    assert "nothing to compare" in nothing.detail


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_none_fails(value: float) -> None:
    """A NaN or an infinite norm anywhere fails, and the curve is named."""
    logs = -0.3 * STEPS
    logs[3] = value
    broken = _curve(log10_norm=logs)
    check = _check(FINITE, _curve(), broken)
    assert not check.passed
    assert "lstm full" in check.detail


def test_a_zero_passes_where_its_reason_is_known() -> None:
    """A zero with a reason is an answer; a zero without one is a fault."""
    known = _curve(0.5, None, first_zero_step=1, zero_reason="exact")
    assert _check(FINITE, known).passed
    assert "1 of them with a zero" in _check(FINITE, known).detail
    assert not _check(FINITE, _curve(0.5, None)).passed


def test_a_norm_far_below_float64_is_finite() -> None:
    """log10 of -100000 is a number like any other."""
    assert _check(FINITE, _curve(log10_norm=-100_000.0 * STEPS)).passed


def test_the_order_of_live_curves_is_a_note() -> None:
    """With a live candidate factors are listed by gate, in order or not, and nothing fails."""
    curves = [
        _curve(gate, rate, candidate_gain=gain)
        for gain, rates in ((1.0, (-0.1, -2.3)), (2.0, (-2.3, -0.1)))
        for gate, rate in zip((0.1, 0.9), rates, strict=True)
    ]
    (note,) = decay_notes(curves)
    assert note.startswith("lstm with a live candidate")
    assert (
        "gain 1: factor per step by gate value 0.1 -> 0.9048, 0.9 -> 0.1003 (not in order)" in note
    )
    assert "gain 2: factor per step by gate value 0.1 -> 0.1003, 0.9 -> 0.9048 (in order)" in note
    assert all(check.passed for check in decay_checks(curves))


def test_zeros_are_explained_once() -> None:
    """Curves of one kind share a note; exact zeros and underflows are told apart."""
    exact = _curve(0.5, None, state="h", first_zero_step=1, zero_reason="exact")
    (note,) = decay_notes([exact, replace(exact, gate_value=0.9), replace(exact, path="direct")])
    assert "dh_T/dh_0 is exactly 0 from step 1" in note
    assert "no failure" in note
    (other,) = decay_notes([replace(exact, first_zero_step=7, zero_reason="underflow")])
    assert "underflows to 0 at step 7" in other


def test_a_cell_without_a_keep_gate_is_said_to_be_measured_as_it_is() -> None:
    """Nothing held, nothing to compare with; held cells at gain 0 need no note."""
    bare = _curve(None, -0.4, cell="mine.py:make_cell", candidate_gain=None)
    (note,) = decay_notes([bare])
    assert note.startswith("mine.py:make_cell: measured as it is")
    assert decay_notes([_curve()]) == ()
