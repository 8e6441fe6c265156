"""Two runs side by side: the same number of the same thing, its ratio, and what else differs."""

from __future__ import annotations

from typing import Any

import pytest

from gradflow.errors import SettingError, UnknownNameError
from gradflow.experiments.runs import compare_runs, list_sweep
from gradflow.records.runs import RunFolder
from gradflow.records.sweeps import StoredRow
from gradflow.settings.runs import RunsSettings


def result(seconds: float, command: str = "decay", **results: Any) -> RunFolder:
    """Return a run folder with a result."""
    document = {
        "schema": f"gradflow/{command}/1",
        "environment": {"seconds": seconds, "torch": "2.0", "threads": 1},
        "config": {"seed": 0},
        "results": results,
        "checks": [{"name": "a", "passed": True, "detail": ""}],
    }
    return RunFolder(f"{command}-{seconds:g}", {"seed": 0}, document)


def sweep(name: str, *tasks: tuple[dict[str, Any], float | None], seconds: float = 1.0):
    """Return a sweep without a result; a task of None is not done."""
    rows = []
    for settings, accuracy in tasks:
        done = accuracy is not None
        row = {"test": {"accuracy": accuracy}, "learned": True} if done else None
        status = "done" if done else "waiting"
        rows.append(
            StoredRow(str(settings), settings, status, row=row, seconds=seconds if done else None)
        )
    return RunFolder(name, {}, rows=tuple(rows))


def asked(*metric: str, factor: float | None = None, **more: Any) -> RunsSettings:
    """Return settings that compare two runs."""
    return RunsSettings(
        what=("compare", "a", "b"), metric=metric or ("seconds",), factor=factor, **more
    )


@pytest.mark.parametrize(
    ("a", "b", "factor", "passes"),
    [
        (2.0, 3.0, 1.5, True),
        (2.0, 3.1, 1.5, False),
        (2.0, 1.0, 1.5, True),
        (2.0, 1.0, 0.5, True),
        (2.0, 0.9, 0.5, False),
        (2.0, 2.0, 1.0, True),
        (-2.0, -3.1, 1.5, False),
        (-2.0, -3.0, 1.5, True),
        (2.0, -1.0, 1.5, False),
        (2.0, 0.0, 1.5, True),
        (2.0, 0.0, 0.5, False),
        (0.0, 1.0, 2.0, False),
        (0.0, 0.0, 2.0, True),
        (2.0, 9.0, None, True),
    ],
)
def test_a_factor_is_how_many_times_the_first_number_the_second_may_be(
    a: float, b: float, factor: float | None, passes: bool
):
    """Above 1 it must not be more, below 1 not less; exactly so many times is within.

    Of negative numbers the sizes are compared; another sign is never within.
    """
    comparison = compare_runs(result(a), result(b), asked(factor=factor))
    (number,) = comparison.numbers
    assert (number.a, number.b, number.ratio) == (a, b, b / a if a else None)
    assert comparison.passed is passes
    assert len(comparison.checks) == (factor is not None)


def test_a_number_is_found_wherever_it_stands_in_a_result():
    """In a list by the words of its entry, numbered where they come again; a bool is no number."""
    curves = [
        {"cell": "lstm", "path": "full", "rate": -1.0, "passed": True},
        {"cell": "lstm", "path": "full", "rate": -2.0, "passed": True},
        {"cell": "gru", "path": "full", "rate": None, "passed": True},
    ]
    twice = [{**curve, "rate": curve["rate"] and 2 * curve["rate"]} for curve in curves]
    comparison = compare_runs(
        result(1, curves=curves, fit={"rate": 4.0}),
        result(1, curves=twice, fit={"rate": 2.0}),
        asked("rate"),
    )
    found = {(n.metric, n.what): (n.a, n.b, n.ratio) for n in comparison.numbers}
    assert found == {
        ("curves.rate", "lstm, full #1"): (-1.0, -2.0, 2.0),
        ("curves.rate", "lstm, full #2"): (-2.0, -4.0, 2.0),
        ("curves.rate", "gru, full"): (None, None, None),
        ("fit.rate", ""): (4.0, 2.0, 0.5),
    }


def test_a_factor_without_a_number_of_both_runs_is_refused():
    """Two sweeps that have no task in common would pass whatever they took."""
    a, b = sweep("a", ({"seed": 0}, 0.5)), sweep("b", ({"seed": 1}, 0.5), ({"seed": 2}, 0.5))
    assert [(n.a, n.b) for n in compare_runs(a, b, asked()).numbers] == [(None, None)]
    with pytest.raises(SettingError, match=r"no seconds \(tasks that both have done\) in both"):
        compare_runs(a, b, asked(factor=1.2))


def test_a_number_of_one_run_alone_is_not_judged():
    """It is counted apart from those that are within."""
    rates = [{"cell": "gru", "rate": 1.0}, {"cell": "lstm", "rate": 1.0}]
    lost = [{"cell": "gru", "rate": 1.0}, {"cell": "lstm", "rate": None}]
    comparison = compare_runs(
        result(1, curves=rates), result(1, curves=lost), asked("rate", factor=2)
    )
    assert comparison.checks[0].detail == "1 of 1; 1 not in both, and not judged"


def test_a_name_that_is_not_there_offers_the_nearest():
    """Names of numbers, not of words."""
    runs = result(1, exponents=[0.5], cell="gru"), result(2, exponents=[0.6], cell="gru")
    with pytest.raises(UnknownNameError, match=r"no 'exponent'.*Did you mean 'exponents'"):
        compare_runs(*runs, asked("exponent"))
    assert [n.ratio for n in compare_runs(*runs, asked("exponents")).numbers] == [1.2]
    with pytest.raises(UnknownNameError, match=r"Known: exponents, seconds\."):
        compare_runs(*runs, asked("cell"))


def test_tasks_of_two_sweeps_meet_by_their_settings():
    """Whatever their order; one that only one sweep has done is left out, and that is said."""
    a = sweep("a", ({"cell": "gru", "seed": 0}, 0.5), ({"cell": "gru", "seed": 1}, 0.8))
    b = sweep(
        "b",
        ({"cell": "gru", "seed": 1}, 0.4),
        ({"cell": "gru", "seed": 0}, 1.0),
        ({"cell": "gru", "seed": 2}, 0.1),
        seconds=3.0,
    )
    comparison = compare_runs(a, b, asked("accuracy", "seconds", factor=0.9))
    found = {(n.metric, n.what): (n.ratio, n.past) for n in comparison.numbers}
    assert found == {
        ("test.accuracy", "seed 0"): (2.0, False),
        ("test.accuracy", "seed 1"): (0.5, True),
        ("seconds", "tasks that both have done"): (3.0, False),
    }
    assert [check.passed for check in comparison.checks] == [False, True]
    assert comparison.checks[0].detail == "1 of 2; of seed 1: 0.8, then 0.4"
    assert "1 of 3 done tasks are in b alone; left out." in comparison.notes


def test_tasks_meet_where_the_sweeps_differ_as_a_whole():
    """Two sweeps of another width each: their tasks are compared by all other settings."""
    a = sweep("a", *[({"seed": seed, "hidden": 32}, 0.5) for seed in (0, 1)])
    b = sweep("b", *[({"seed": seed, "hidden": 64}, 0.75) for seed in (0, 1)])
    comparison = compare_runs(a, b, asked("accuracy"))
    assert {n.what: n.ratio for n in comparison.numbers} == {"seed 0": 1.5, "seed 1": 1.5}


def test_a_sweep_that_is_not_finished_is_compared_by_what_it_has():
    """Its waiting tasks have no numbers, and it has no result yet."""
    a = sweep("a", ({"seed": 0}, 0.5), ({"seed": 1}, 0.5))
    b = sweep("b", ({"seed": 0}, 0.5), ({"seed": 1}, None))
    comparison = compare_runs(a, b, asked())
    assert [(n.a, n.b) for n in comparison.numbers] == [(1.0, 1.0)]
    assert comparison.notes == (
        "a has no result: its sweep has not come to its end.",
        "1 of 2 done tasks are in a alone; left out.",
        "b has no result: its sweep has not come to its end.",
    )


def test_what_differs_beside_the_numbers_is_told():
    """Settings and surroundings; of two commands only the settings that both have."""
    a, b = result(1), result(2)
    assert b.document
    environment = {"torch": "3.0", "seconds": 2.0, "threads": 1}
    b = RunFolder("b", {"seed": 3, "steps": 9}, {**b.document, "environment": environment})
    comparison = compare_runs(a, b, asked())
    assert [(d.name, d.a, d.b) for d in comparison.settings] == [("seed", 0, 3), ("steps", None, 9)]
    assert [(d.name, d.a, d.b) for d in comparison.surroundings] == [("torch", "2.0", "3.0")]
    assert comparison.checks_passed == ((1, 1), (1, 1))
    assert b.document
    other = RunFolder("b", {"seed": 3, "steps": 9}, {**b.document, "schema": "gradflow/speed/1"})
    comparison = compare_runs(a, other, asked())
    assert [d.name for d in comparison.settings] == ["seed"]
    assert comparison.notes[0].startswith("They are of two commands, decay and speed")


def test_a_listing_has_the_tasks_that_are_asked_for():
    """The settings that vary, the numbers that are named, all rows or those that failed."""
    run = sweep("a", ({"cell": "gru", "seed": 0}, 0.5), ({"cell": "gru", "seed": 1}, None))
    failed = StoredRow("k", {"cell": "gru", "seed": 2}, "failed", "it broke", attempts=3)
    run = RunFolder("a", {}, rows=(*run.rows, failed))
    listing = list_sweep(run, RunsSettings(what="a", metric="accuracy"))
    assert listing.counts == {"done": 1, "failed": 1, "waiting": 1}
    assert (listing.varied, listing.metrics) == (("seed",), ("test.accuracy",))
    assert listing.shown == run.rows
    assert list_sweep(run, RunsSettings(what="a", failed=True)).shown == (failed,)
    with pytest.raises(UnknownNameError, match=r"no 'acuracy'"):
        list_sweep(run, RunsSettings(what="a", metric="acuracy"))


@pytest.mark.parametrize("what", [(), ("a", "b"), ("compare", "a"), ("compare", "a", "b", "c")])
def test_one_run_is_listed_and_two_are_compared(what: tuple[str, ...]):
    """Anything else is a wrong request, with an example."""
    with pytest.raises(SettingError, match=r"takes the run folder of a sweep.*Such as:"):
        RunsSettings(what=what).folders()
