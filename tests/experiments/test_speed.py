"""Timing methods side by side: they agree, they are told apart, and threads are put back."""

from __future__ import annotations

import json
import math

import pytest
import torch

from gradflow.errors import Interrupted, RequestError
from gradflow.experiments import speed
from gradflow.experiments.peak_memory import peak_bytes
from gradflow.experiments.speed import run_speed
from gradflow.experiments.speed_methods import Subject, way_of
from gradflow.records.speed import SpeedCase, SpeedResult
from gradflow.settings.speed import METHODS, SpeedSettings
from tests.reference import autograd_jacobian
from tests.reference.subject import Subject as Reference

TINY = {"hidden": (3, 5), "steps": (4,), "rounds": 2, "threads": (1,)}


@pytest.fixture(scope="module")
def result() -> SpeedResult:
    """Return a small run of all methods."""
    return run_speed(SpeedSettings(cell="lstm,gru,rnn", **TINY))


def test_every_case_has_every_method(result: SpeedResult) -> None:
    """A row for each method in each case, with its median, points and memory."""
    assert len(result.rows) == 3 * 2 * len(METHODS)
    assert {row.points for row in result.rows if row.method == "unroll"} == {1}
    assert {row.points for row in result.rows if row.method == "floor"} == {0}
    assert {row.points for row in result.rows if row.method == "restart"} == {4}
    assert all(row.seconds > 0 and row.rounds == 2 for row in result.rows)
    assert all((row.peak_bytes or 0) > 0 for row in result.rows if row.method != "floor")


def test_all_methods_find_the_same_norms(result: SpeedResult) -> None:
    """Different code on the same weights and states; the check says by how much they differ."""
    (check,) = result.checks
    assert check.passed
    errors = [row.max_relative_error for row in result.rows if row.method != "floor"]
    assert max(error for error in errors if error is not None) < 1e-12
    assert None not in errors


def test_ratios_are_of_medians(result: SpeedResult) -> None:
    """How many times as long as gradflow each takes, and gradflow as the floor."""
    ratios = {
        (ratio.numerator, ratio.denominator): ratio.value
        for ratio in result.ratios
        if ratio.case == result.cases[0]
    }
    assert set(ratios) == {
        *((method, "gradflow") for method in METHODS if method not in ("gradflow", "floor")),
        ("gradflow", "floor"),
    }
    rows = {row.method: row.seconds for row in result.rows if row.case == result.cases[0]}
    assert ratios["chain", "gradflow"] == rows["chain"] / rows["gradflow"]
    assert ratios["gradflow", "floor"] == rows["gradflow"] / rows["floor"]


def test_the_document_keeps_the_contract(result: SpeedResult) -> None:
    """Each row and each ratio carries what tells its case."""
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document["schema"] == "gradflow/speed/1"
    assert {"method", "cell", "hidden", "steps", "dtype", "threads", "seconds", "points",
            "peak_bytes", "max_relative_error"} <= set(document["results"]["rows"][0])  # fmt: skip
    assert {"numerator", "denominator", "hidden", "steps", "value"} <= set(
        document["results"]["ratios"][0]
    )
    assert SpeedResult.from_json(document).rows == result.rows


def test_the_threads_are_those_asked_for_and_then_as_before() -> None:
    """Each case computes with its own number of threads; what the caller had comes back."""
    before = torch.get_num_threads()
    seen = []
    settings = SpeedSettings(
        hidden=3, steps=2, rounds=1, threads=(1, 2), method=("gradflow", "floor")
    )
    result = run_speed(settings, progress=lambda *_: seen.append(torch.get_num_threads()))
    assert seen == [1] * 4 + [2] * 4
    assert torch.get_num_threads() == before
    assert [case.threads for case in result.cases] == [1, 2]


@pytest.mark.parametrize("method", ["restart", "chain", "chain-vmap", "gradflow"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_a_method_finds_what_autograd_finds(cell: str, method: str) -> None:
    """Every prefix's norm is that of a slow twin that shares no code with any of them."""
    subject = Subject(SpeedCase(cell, 4, 6, "float64", 1), device="cpu", seed=1)
    twin = Reference(subject.module, subject.x, subject.state)
    expected = autograd_jacobian.log_norms(twin, norm="frobenius")[:, 0]
    torch.testing.assert_close(way_of(method, subject).run(), expected, rtol=0, atol=1e-13)


def test_an_unroll_that_underflows_is_said_to() -> None:
    """A whole unroll keeps no scale: in float32 little is left after 300 steps; a note tells so."""
    settings = SpeedSettings(
        cell="rnn",
        hidden=2,
        steps=300,
        rounds=1,
        threads=1,
        dtype="float32",
        method=("unroll", "gradflow"),
    )
    result = run_speed(settings)
    (row,) = (row for row in result.rows if row.method == "unroll")
    assert row.max_relative_error is None
    assert "It underflowed: rnn 2 at T = 300 in float32." in result.notes[0]


def test_restarts_are_for_small_cases() -> None:
    """Beyond hidden 32 and 50 steps a restart at every T is left out, and the note says why."""
    settings = SpeedSettings(
        cell="rnn", hidden=(3, 40), steps=2, rounds=1, threads=1, method=("restart", "gradflow")
    )
    result = run_speed(settings)
    assert [row.case.hidden for row in result.rows if row.method == "restart"] == [3]
    assert result.notes[0].startswith("restart is timed up to hidden 32 and 50 steps only")


def test_slow_methods_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that takes long is timed in the first round alone."""
    monkeypatch.setattr(speed, "SLOW", -1.0)
    settings = SpeedSettings(cell="rnn", hidden=2, steps=2, rounds=4, method="gradflow")
    assert [row.rounds for row in run_speed(settings).rows] == [1]


def test_a_stopped_run_keeps_its_complete_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second case leaves the first, and says so; in the first it leaves nothing."""
    settings = SpeedSettings(
        hidden="3,4", steps=3, rounds=1, threads=1, method=["gradflow", "floor"]
    )
    timing = speed._time_case

    def stopped_at(hidden: int) -> None:
        def time_case(case: SpeedCase, *rest: object) -> object:
            if case.hidden == hidden:
                raise KeyboardInterrupt
            return timing(case, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(speed, "_time_case", time_case)

    stopped_at(4)
    with pytest.raises(Interrupted, match="1 of 2 cases") as caught:
        run_speed(settings)
    partial = caught.value.partial
    assert isinstance(partial, SpeedResult)
    assert {row.case.hidden for row in partial.rows} == {3}
    assert partial.environment["interrupted"] == "1 of 2 cases are timed."
    stopped_at(3)
    with pytest.raises(KeyboardInterrupt):
        run_speed(settings)


def test_methods_that_disagree_fail_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A norm that differs by a tenth is no round-off."""
    rows = list(run_speed(SpeedSettings(cell="rnn", **TINY, method="chain,gradflow")).rows)
    object.__setattr__(rows[0], "max_relative_error", 0.1)
    check = speed._agreement(rows)
    assert not check.passed
    assert "1.0e-01 (chain, rnn 3)" in check.detail
    object.__setattr__(rows[0], "max_relative_error", math.nan)
    assert not speed._agreement(rows).passed


def test_peak_memory_is_what_tensors_held_at_once() -> None:
    """Two arrays at a time out of three: the most is two."""

    def three() -> None:
        first = torch.zeros(1000, 100, dtype=torch.float64)
        second = first + 1
        del first
        third = second * 2
        del second, third

    assert 1.6e6 <= peak_bytes(three) <= 1.7e6


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"hidden": 0}, "hidden"),
        ({"method": "fast"}, "method"),
        ({"threads": 0}, "threads"),
        ({"cell": "lsmt"}, "cell"),
    ],
)
def test_a_wrong_setting_is_refused(flags: dict[str, object], words: str) -> None:
    """The setting is named."""
    with pytest.raises(RequestError, match=words):
        SpeedSettings(**flags)
