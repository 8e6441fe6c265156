"""`saturate`: every cell, dtype, place, magnitude and sign, with a verdict for each."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from gradflow.config import SaturateSettings
from gradflow.errors import CellLoadError, UnknownNameError
from gradflow.experiments.saturate import run_saturate
from gradflow.records import SaturateResult, SaturateRow
from tests.data import saturation_cells

CELLS = Path(saturation_cells.__file__)
DTYPES = ("float16", "bfloat16", "float32", "float64")
SMALL: dict[str, Any] = {"hidden": 3, "input_size": 3, "batch": 2, "steps": 2}


def run(**settings: Any) -> SaturateResult:
    """Run a small saturation."""
    return run_saturate(SaturateSettings(**{**SMALL, **settings}))


@pytest.fixture(scope="module")
def everything() -> SaturateResult:
    """The default question, with what lies beyond."""
    return run_saturate(SaturateSettings(beyond=True, hidden=4, input_size=4, steps=2, batch=2))


def test_built_in_cells_and_torchs_have_no_fault_anywhere(everything: SaturateResult):
    """Not one inf or nan whose true value fits; nothing at all beside the relu RNN and beyond."""
    assert everything.passed
    for row in everything.rows:
        assert row.verdict != "fault", row
        if row.judged and row.verdict != "not applicable":
            assert row.verdict == "ok", row
            assert row.outputs_finite, row
            assert row.state_gradients_finite, row
            assert row.parameter_gradients_finite, row


def test_gates_stay_in_range_wherever_they_are_seen(everything: SaturateResult):
    """Every gated cell shows its gates, ours and torch's, in every trial that ran."""
    for row in everything.rows:
        if row.verdict == "ok" and row.cell in ("lstm", "gru", "gru-before"):
            assert row.gates_in_range is True, row
            assert row.zero_slope_fraction is not None, row
            assert 0.0 <= row.zero_slope_fraction <= 1.0, row


def test_every_variant_is_tried_by_us_and_by_torch_where_torch_has_it(everything: SaturateResult):
    """gru stands for both reset places, rnn for tanh and relu; torch has no reset before."""
    subjects = {row.subject for row in everything.rows}
    ours = {(cell, "gradflow") for cell in ("lstm", "gru", "gru-before", "rnn", "rnn-relu")}
    torchs = {(cell, "torch") for cell in ("lstm", "gru", "rnn", "rnn-relu")}
    assert subjects == ours | torchs


def test_every_place_magnitude_and_sign_is_tried_once(everything: SaturateResult):
    """An LSTM has 4 biases to fill, its input and its state; 4 magnitudes and beyond; 2 signs."""
    places = {"input gate", "forget gate", "output gate", "candidate", "input", "state"}
    magnitudes = {"1e2", "1e4", "1e8", "max"}
    rows = [r for r in everything.rows if r.subject == ("lstm", "gradflow")]
    for dtype in DTYPES:
        tried = [(r.place, r.magnitude, r.sign) for r in rows if r.dtype == dtype]
        within = [trial for trial in tried if trial[1] != "beyond"]
        assert sorted(within) == sorted(itertools.product(places, magnitudes, "+-"))
        beyond = [(r.place, r.path, r.sign) for r in rows if r.dtype == dtype and not r.judged]
        paths = itertools.product(("input", "state"), ("identity", "weights"), "+-")
        assert sorted(beyond) == sorted(paths)


@pytest.mark.parametrize("dtype", DTYPES)
def test_max_is_the_largest_number_and_its_root_for_input_and_state(
    everything: SaturateResult, dtype: str
):
    """A product of two roots stays finite; beyond is the largest number itself."""
    largest = torch.finfo(getattr(torch, dtype)).max
    for row in everything.rows:
        if row.dtype == dtype and row.magnitude in ("max", "beyond"):
            assert row.value is not None
            assert math.copysign(1.0, row.value) == {"+": 1.0, "-": -1.0}[row.sign or ""]
            open_place = row.place in ("input", "state")
            if row.magnitude == "max" and open_place:
                assert abs(row.value) == pytest.approx(math.sqrt(largest), rel=1e-2)
                assert row.value**2 <= largest
            else:
                assert abs(row.value) == largest


def test_what_a_dtype_cannot_hold_is_not_applicable_and_says_why(everything: SaturateResult):
    """1e8 is no float16, and it is the only such case."""
    missing = [row for row in everything.rows if row.verdict == "not applicable"]
    assert {(row.dtype, row.magnitude) for row in missing} == {("float16", "1e8")}
    assert all(row.reason and "65504" in row.reason for row in missing)
    assert all(row.value is None and row.outputs_finite is None for row in missing)


def test_a_relu_rnn_is_reported_and_never_judged(everything: SaturateResult):
    """It grows by design: the overflow is shown, in every dtype, and no check fails."""
    relu = [row for row in everything.rows if row.cell == "rnn-relu"]
    assert not any(row.judged for row in relu)
    overflowing = {row.dtype for row in relu if row.verdict == "overflow"}
    assert overflowing == set(DTYPES)
    assert any("relu" in note for note in everything.notes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_beyond_torchs_gru_has_nan_gradients_in_every_dtype(dtype: str):
    """A state of the largest number and torch's own weights: shown, expected, not judged."""
    result = run(cell="gru", dtype=dtype, magnitude="1e2", beyond=True, hidden=8, input_size=8)
    rows = [r for r in result.rows if r.subject == ("gru", "torch") and r.verdict == "overflow"]
    assert rows
    assert {row.magnitude for row in rows} == {"beyond"}
    for row in rows:
        assert not row.judged
        assert row.parameter_gradients_finite is False
        assert row.first_nonfinite is not None
        assert row.first_nonfinite.value == "nan"
    assert result.passed


def test_one_variant_can_be_asked_for_by_its_own_name():
    """gru-before alone, and a name that comes twice counts once."""
    result = run(cell="gru-before,gru,gru-before", dtype="float32", magnitude="1e2")
    names = list(dict.fromkeys(row.cell for row in result.rows))
    assert names == ["gru-before", "gru"]
    assert len({(*r.subject, r.place, r.sign) for r in result.rows}) == len(result.rows)


def test_the_document_is_strict_json_and_reads_back(everything: SaturateResult):
    """No nan, no infinity; the rows, notes and checks that come back are those that went in."""
    text = json.dumps(everything.to_json(), allow_nan=False)
    again = SaturateResult.from_json(json.loads(text))
    assert again.rows == everything.rows
    assert again.notes == everything.notes
    assert again.checks == everything.checks
    row = json.loads(text)["results"]["rows"][0]
    assert set(row) == set(SaturateRow.__dataclass_fields__)


def test_one_seed_is_one_result_and_the_global_generator_is_left_alone():
    """The weights are drawn from the seed, in every dtype the same; torch's generator is not."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, other = (run(cell="lstm", dtype="float32", seed=3) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert one.rows == other.rows


def test_progress_counts_every_cell_and_dtype():
    """From 0 to all, with the name of what is at work."""
    seen: list[tuple[str, int, int]] = []
    settings = SaturateSettings(**SMALL, cell="lstm", dtype="float32,float64", magnitude="1e2")
    run_saturate(settings, progress=lambda *report: seen.append(report))
    assert [done for _, done, _ in seen] == [0, 1, 2, 3, 4]
    assert {total for _, _, total in seen} == {4}
    assert seen[0][0] == "lstm (gradflow)"


@pytest.mark.parametrize(
    ("cell", "error", "words"),
    [
        ("lsmt", UnknownNameError, "lstm"),
        ("no/such/file.py:make_cell", CellLoadError, "file.py"),
        (f"{CELLS}:no_such_name", CellLoadError, "no_such_name"),
    ],
)
def test_a_cell_that_is_not_there_is_a_wrong_request(cell: str, error: type[Exception], words: str):
    """Before anything is measured, and with what is wrong."""
    with pytest.raises(error, match=words):
        run(cell=cell)
