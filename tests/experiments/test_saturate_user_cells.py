"""`saturate` on cells of one's own: faults found and named, sound cells left in peace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradflow.config import SaturateSettings
from gradflow.experiments.saturate import run_saturate
from gradflow.present.saturate import saturate_table
from gradflow.records import SaturateResult
from tests.data import saturation_cells

CELLS = Path(saturation_cells.__file__)
NAIVE = CELLS.with_name("naive_sigmoid_cell.py")
SMALL: dict[str, Any] = {"hidden": 3, "input_size": 3, "batch": 2, "steps": 2}


def run(cell: str, **settings: Any) -> SaturateResult:
    """Run a small saturation."""
    return run_saturate(SaturateSettings(**{**SMALL, "cell": cell, **settings}))


def of_user(name: str, **settings: Any) -> SaturateResult:
    """Run a saturation of a hand-written cell."""
    return run(f"{CELLS}:{name}", **settings)


def test_the_field_case_comes_out_of_the_command_itself():
    """As given, in float32: forward finite, backward nan, first in the input gate of unit 0."""
    result = run(f"{NAIVE}:make_cell", dtype="float32,float64", magnitude="1e2", steps=5)
    given = {row.dtype: row for row in result.rows if row.place == "as given"}
    single, double = given["float32"], given["float64"]
    assert (single.verdict, double.verdict) == ("fault", "ok")
    assert single.outputs_finite is True
    assert (single.state_gradients_finite, single.parameter_gradients_finite) == (False, False)
    first = single.first_nonfinite
    assert first is not None
    assert (first.gate, first.unit, first.step, first.operation) == ("input", 0, 5, "exp")
    assert not result.passed
    assert "float32" in result.checks[0].detail


def test_the_same_cell_with_torch_sigmoid_passes():
    """The weights are the same: the fault was in the sigmoid."""
    result = run(f"{NAIVE}:make_stable_cell", dtype="float32,float64")
    assert result.passed
    assert {row.verdict for row in result.rows} == {"ok"}


def test_a_cell_that_declares_nothing_still_has_its_gates_named():
    """Its biases are pushed one by one: the nan is the input gate's, and a note says how."""
    result = of_user("naive_sigmoid", dtype="float32", magnitude="1e2")
    places = {row.place for row in result.rows}
    assert {"input gate", "forget gate", "candidate", "output gate"} <= places
    (row,) = [r for r in result.rows if (r.place, r.sign) == ("input gate", "-")]
    assert row.first_nonfinite is not None
    assert (row.first_nonfinite.gate, row.first_nonfinite.unit) == ("input", 0)
    assert any("input lin.bias[0:4], forget lin.bias[4:8]" in note for note in result.notes)


@pytest.mark.parametrize("name", ["naive_sigmoid", "two_sided_sigmoid", "own_backward"])
def test_float64_hides_the_fault_at_1e2_and_shows_it_at_1e4(name: str):
    """exp(710) is where float64 ends: the magnitudes reach it."""
    result = of_user(name, dtype="float64", magnitude="1e2,1e4,max")
    faulty = {row.magnitude for row in result.rows if row.verdict == "fault"}
    assert faulty == {"1e4", "max"}


@pytest.mark.parametrize("name", ["sound", "sound_softplus"])
def test_a_sound_cell_of_ones_own_passes_in_every_dtype(name: str):
    """torch.sigmoid, or a sigmoid by softplus: nothing is found anywhere."""
    result = of_user(name)
    assert result.passed
    assert {row.verdict for row in result.rows} == {"ok", "not applicable"}


def test_an_honest_overflow_of_a_users_cell_fails_nothing():
    """An exponential gate in float32 at 1e2: c is 1e43 in truth."""
    result = of_user("exponential_gate", dtype="float32", magnitude="1e2")
    assert {row.verdict for row in result.rows} == {"ok", "overflow"}
    assert result.passed


def test_a_cell_that_refuses_a_number_is_at_fault_with_its_own_words():
    """An error at a huge input is no answer; the message and its place are kept."""
    result = of_user("refusing", dtype="float32", magnitude="1e2,1e4")
    refused = [row for row in result.rows if row.verdict == "fault"]
    assert {row.magnitude for row in refused} == {"1e4"}
    assert all("beyond 1000" in (row.reason or "") for row in refused)
    assert all(row.first_nonfinite is None for row in refused)
    assert not result.passed


def test_a_dtype_that_a_cell_does_not_run_in_is_one_row_with_its_reason():
    """A float32 constant inside: the other dtypes are not applicable, float32 is tried."""
    result = of_user("float32_only", magnitude="1e2")
    missing = {row.dtype: row for row in result.rows if row.verdict == "not applicable"}
    assert "float32" not in missing
    assert set(missing) == {"float16", "bfloat16", "float64"}
    assert all(row.place == "any" and row.reason for row in missing.values())
    assert len(result.rows) > len(missing)
    assert sum("is not tried" in note for note in result.notes) == 3


def test_a_gate_without_a_bias_is_not_applicable():
    """There is nothing to put the number into; the input and the state are tried all the same."""
    result = of_user("unbiased", dtype="float32", magnitude="1e2")
    missing = {row.place for row in result.rows if row.verdict == "not applicable"}
    assert missing == {"update gate", "content candidate"}
    assert {row.place for row in result.rows} - missing == {"as given", "input", "state"}


def test_a_gate_out_of_range_fails_its_check():
    """A gate of 1.5 sigmoid(v) is found by the second check, though all is finite."""
    result = of_user("gate_out_of_range", dtype="float64", magnitude="1e2")
    passed = {check.name: check.passed for check in result.checks}
    assert passed == {
        "no cell makes inf or nan of what fits": True,
        "every gate stays in [0, 1]": False,
    }


def test_gates_that_are_not_seen_are_told():
    """A sigmoid written out by hand leaves no trace of the gate's value."""
    result = of_user("naive_sigmoid", dtype="float64", magnitude="1e2")
    assert {row.gates_in_range for row in result.rows} == {None}
    assert any("does not show its gates" in note for note in result.notes)


def test_a_true_value_below_the_smallest_number_is_said_to_round_to_zero():
    """10^-44.4 is no float16, but 0 is: the fault is the nan, and the words say what is meant."""
    result = run(f"{NAIVE}:make_cell", dtype="float16,float32", magnitude="1e2", steps=5)
    reasons = {row.dtype: row.reason or "" for row in result.rows if row.place == "as given"}
    assert reasons["float16"].endswith("rounds to 0 in float16, a finite number")
    assert reasons["float32"].endswith("fits float32")


def test_the_heading_does_not_give_a_users_cell_widths_that_it_chose_itself():
    """The field case is 3 wide whatever --hidden says."""
    title = saturate_table(run(f"{NAIVE}:make_cell", dtype="float32", magnitude="1e2")).title
    assert "(2 steps, 2 samples; " in title
