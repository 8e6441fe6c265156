"""The record of `decay`: strict JSON out, the same record back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.records import AutogradCheck, Check, DecayCurve, DecayResult
from gradflow.records.base import Result, array_from_list, finite_list, finite_or_none
from tests.experiments.decay_curves import run

# what the contract promises of one curve
CURVE_FIELDS = {
    "cell", "gate_name", "gate_value", "gate_min", "gate_max", "candidate_gain", "state", "path",
    "norm", "steps", "log10_norm", "trend_log10", "rate", "factor_per_step", "trend_rate",
    "half_life", "autograd", "first_zero_step", "zero_reason",
}  # fmt: skip


def _curve(log10_norm: Any, **changes: Any) -> DecayCurve:
    plain: dict[str, Any] = {
        "cell": "gru",
        "gate_name": "update",
        "gate_value": 0.5,
        "gate_min": 0.5,
        "gate_max": 0.5,
        "candidate_gain": 0.0,
        "state": "h",
        "path": "full",
        "norm": "spectral",
        "steps": np.arange(1, len(log10_norm) + 1),
        "log10_norm": np.array(log10_norm, dtype=np.float64),
        "trend_log10": None,
        "rate": -0.7,
        "trend_rate": -0.7,
        "half_life": 1.0,
    }
    return DecayCurve(**{**plain, **changes})


def _strict(document: Mapping[str, Any]) -> Any:
    """Write and read as strict JSON: no NaN, no Infinity, nothing that is not plain."""
    return json.loads(json.dumps(document, allow_nan=False))


def _assert_same(one: DecayCurve, other: DecayCurve) -> None:
    for entry in fields(DecayCurve):
        first, second = getattr(one, entry.name), getattr(other, entry.name)
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype
        else:
            assert first == second, entry.name


@pytest.mark.parametrize(
    "settings",
    [
        {"cell": "lstm,gru,rnn", "start": "zero"},
        {"cell": "lstm", "state": "h", "candidate_gain": 0},
        {"cell": "rnn", "gate": "0,1.5"},
        {"steps": 1},
        {"dtype": "float32", "gate_weights": 0.1, "state": "joint"},
    ],
    ids=["usual", "zero", "rnn", "one step", "float32"],
)
def test_a_result_survives_strict_json(settings: dict[str, Any]) -> None:
    """Every number, array, note and check of a run comes back as it went."""
    result = run(**{"hidden": 3, "steps": 12, **settings})
    document = _strict(result.to_json())
    again = DecayResult.from_json(document)
    for before, after in zip(result.curves, again.curves, strict=True):
        _assert_same(before, after)
    assert again.notes == result.notes
    assert again.checks == result.checks
    assert again.config == result.config
    assert again.environment == result.environment
    assert again.passed == result.passed
    assert _strict(again.to_json()) == document


def test_the_document_is_the_contracts() -> None:
    """Schema, environment, config, results and checks, and in each curve what is promised."""
    document = run(hidden=3, steps=5, cell="lstm").to_json()
    assert list(document) == ["schema", "environment", "config", "results", "checks"]
    assert document["schema"] == "gradflow/decay/1"
    assert {"gradflow", "python", "torch", "platform", "device", "started", "seconds"} <= set(
        document["environment"]
    )
    assert document["config"]["gate"] == [0.1, 0.5, 0.9]
    assert all(set(check) == {"name", "passed", "detail"} for check in document["checks"])
    for entry in document["results"]["curves"]:
        assert set(entry) >= CURVE_FIELDS
        assert len(entry["steps"]) == len(entry["log10_norm"]) == len(entry["trend_log10"]) == 5
    full, direct = document["results"]["curves"][:2]
    assert (full["path"], direct["path"]) == ("full", "direct")
    assert set(full["autograd"]) >= {"steps", "max_relative_error"}
    assert direct["autograd"] is None


def test_what_is_not_finite_is_null_and_a_field_says_why() -> None:
    """A zero norm is null with its first step and its reason."""
    curve = _curve([-1.0, -math.inf, -math.inf], first_zero_step=2, zero_reason="underflow")
    document = _strict(curve.to_json())
    assert document["log10_norm"] == [-1.0, None, None]
    assert (document["first_zero_step"], document["zero_reason"]) == (2, "underflow")
    _assert_same(DecayCurve.from_json(document), curve)


def test_a_norm_that_is_no_number_comes_back_as_none() -> None:
    """null before the first zero, or without any, means "not a number"."""
    nan = _curve([-1.0, math.nan, -2.0], rate=None, half_life=None)
    back = DecayCurve.from_json(_strict(nan.to_json()))
    np.testing.assert_array_equal(back.log10_norm, nan.log10_norm)
    mixed = _curve([math.nan, -1.0, -math.inf], first_zero_step=3, zero_reason="exact")
    back = DecayCurve.from_json(_strict(mixed.to_json()))
    np.testing.assert_array_equal(back.log10_norm, mixed.log10_norm)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["gate_min", "gate_max", "rate", "trend_rate", "half_life"])
def test_no_field_lets_a_number_through_that_json_lacks(field: str, value: float) -> None:
    """A NaN or an infinity in any single number of a curve is null in its JSON."""
    document = _strict(_curve([-1.0], **{field: value}).to_json())
    assert document[field] is None
    check = AutogradCheck((1,), value, 1e-10, "torch.nn.GRUCell")
    assert _strict(check.to_json())["max_relative_error"] is None


def test_steps_and_points_are_plain_numbers() -> None:
    """NumPy's integers and floats do not reach the document."""
    document = _curve([-1.0, -2.0]).to_json()
    assert [type(step) for step in document["steps"]] == [int, int]
    assert [type(value) for value in document["log10_norm"]] == [float, float]


def test_what_follows_from_a_rate() -> None:
    """factor = e^rate, departure = rate - trend; both None where the rate is."""
    live = _curve([-1.0], rate=math.log(1.15), trend_rate=math.log(0.9))
    assert live.factor_per_step == pytest.approx(1.15, rel=1e-15)
    assert live.departure == pytest.approx(math.log(1.15 / 0.9), rel=1e-14)
    none = _curve([-1.0], rate=None)
    assert none.factor_per_step is none.departure is None
    bare = _curve([-1.0], trend_rate=None)
    assert bare.departure is None
    assert bare.factor_per_step is not None


def test_a_rate_beyond_all_numbers_is_no_crash() -> None:
    """e^1000 is no float: the factor is infinite, and null in JSON, beside its finite rate."""
    steep = _curve([-1.0, 433.0], rate=1000.0)
    assert steep.factor_per_step == math.inf
    document = _strict(steep.to_json())
    assert document["factor_per_step"] is None
    assert document["rate"] == 1000.0
    assert _curve([-1.0], rate=-1000.0).factor_per_step == 0.0


def test_records_are_frozen() -> None:
    """A result is a statement about what was: nothing in it can be set afterwards."""
    result = run(hidden=2, steps=2)
    for record, name in ((result, "notes"), (result.curves[0], "rate"), (result.checks[0], "name")):
        with pytest.raises(FrozenInstanceError):
            setattr(record, name, None)


def test_a_result_passes_when_all_its_checks_do() -> None:
    """One failed check is a failed run; no checks at all are no failure."""
    good, bad = Check("a", True, ""), Check("b", False, "")
    assert Result().passed
    assert Result(checks=(good,)).passed
    assert not Result(checks=(good, bad)).passed


@given(st.lists(st.floats(), max_size=8))
def test_lists_of_numbers_keep_what_is_finite(values: list[float]) -> None:
    """Finite numbers come back bit by bit, and the others as what the reader calls missing."""
    array = np.array(values, dtype=np.float64)
    listed = _strict({"values": finite_list(array)})["values"]
    back = array_from_list(listed, missing=-math.inf)
    expected = np.where(np.isfinite(array), array, -math.inf)
    np.testing.assert_array_equal(back, expected)
    assert [finite_or_none(value) for value in values] == listed
