"""A whole comparison: every combination accounted for, the same however it is run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradflow.config import resolve_settings
from gradflow.errors import RunFolderError
from gradflow.experiments.benchmark import compare, plan_benchmark, run_benchmark
from gradflow.experiments.benchmark.grid import make_grid
from gradflow.records.benchmark import (
    LEARNED,
    NO_RESULT,
    NOT_LEARNED,
    PARAMETERS,
    WIDTH,
    BenchmarkResult,
)
from gradflow.records.benchmark_runs import DIVERGED, FAILED
from gradflow.settings.benchmark import BenchmarkSettings
from gradflow.settings.sweeps import SweepOptions
from gradflow.sweeps import load_rows
from tests.experiments.benchmark.small import settings

CELLS = Path(__file__).parent / "cells.py"
MEASURED = ("training_seconds", "seconds_of_512", "peak_bytes", "process_peak_bytes")


def results(result: BenchmarkResult) -> Any:
    """Return the results without what was measured in seconds and bytes."""
    document = json.loads(json.dumps(result.results_json(), allow_nan=False))
    document["supports"] = []  # which name ratios of seconds
    for entry in (*document["runs"], *document["rows"]):
        for name in MEASURED:
            entry["costs"].pop(name, None)
    return document


def test_serial_and_local_runs_agree_in_every_bit(tmp_path: Path):
    """Two worker processes against this one: all numbers but times and memory."""
    asked = settings(cell="rnn,lstm", seeds=2)
    serial = run_benchmark(asked, folder=tmp_path / "serial", executor="serial")
    local = run_benchmark(asked, folder=tmp_path / "local", executor="local", workers=2)
    assert results(serial) == results(local)
    assert len(serial.runs) == 3 * 2
    assert serial.passed


def test_the_order_of_rows_does_not_matter(tmp_path: Path):
    """Rows as they come from a cluster, in any order."""
    asked = settings(cell="gru", learning_rate="0.01,0.1", seeds=2)
    first = run_benchmark(asked, folder=tmp_path, executor="serial")
    again = compare(make_grid(asked), load_rows(tmp_path)[::-1])
    assert results(first) == results(again)


def test_a_second_time_nothing_is_trained_and_the_plan_says_so(tmp_path: Path):
    """Rows are kept: the same command reads them, seconds and all."""
    asked = settings(cell="gru")
    plan = plan_benchmark(asked, tmp_path, SweepOptions())
    assert (plan.total, plan.done, plan.to_run, plan.calibrated) == (1, 0, 1, False)
    assert (plan.seconds or 0) > 0
    first = run_benchmark(asked, folder=tmp_path, executor="serial")
    again = run_benchmark(asked, folder=tmp_path, executor="serial")
    assert first.results_json() == again.results_json()
    plan = plan_benchmark(asked, tmp_path, SweepOptions())
    assert (plan.total, plan.done, plan.to_run) == (1, 1, 0)


def test_a_diverged_rate_is_data_and_a_crash_is_not(tmp_path: Path):
    """Diverged: a note, and the checks pass. Crashed: a check fails, and all else is there."""
    wild = settings(cell="rnn", learning_rate="0.01,1e4", optimizer="sgd", clip=0)
    result = run_benchmark(wild, folder=tmp_path / "wild", executor="serial")
    assert result.passed
    assert [run.status for run in result.runs].count(DIVERGED) == 1
    assert "1 of 2 runs diverged" in " ".join(result.notes)
    assert {row.learning_rate for row in result.rows} == {0.01}

    broken = settings(cell=f"rnn,{CELLS}:Breaking")
    result = run_benchmark(broken, folder=tmp_path / "broken", executor="serial")
    assert not result.passed
    failed = [run for run in result.runs if run.status == FAILED]
    assert failed
    assert all("flux capacitor" in (run.reason or "") for run in failed)
    assert {run.cell for run in failed} == {f"{CELLS}:Breaking"}
    words = {row.verdict for row in result.rows if row.cell != "rnn"}
    assert words == {NO_RESULT}


def test_only_chosen_rates_show_what_the_test_said(tmp_path: Path):
    """The others' tests cannot be read, nor compared, from a result."""
    asked = settings(cell="gru", learning_rate="0.001,0.05", updates=20)
    result = run_benchmark(asked, folder=tmp_path, executor="serial")
    (row,) = result.rows
    for run in result.runs:
        assert (run.test is not None) == (run.learning_rate == row.learning_rate)
        assert (run.curve is not None) == (run.learning_rate == row.learning_rate)


def test_what_the_comparison_supports_is_measured(tmp_path: Path):
    """Ratios of work and time, of steps between delays, and the number of seeds."""
    asked = settings(cell="rnn,lstm", delay="4,8")
    result = run_benchmark(asked, folder=tmp_path, executor="serial")
    text = " ".join(result.supports)
    wide = {row.cell: row for row in result.compared(WIDTH) if row.delay == 8}
    ratio = wide["lstm"].costs["multiply_adds"].mean / wide["rnn"].costs["multiply_adds"].mean
    assert f"takes {ratio:.3g} times the multiply-adds" in text
    assert "Same parameters is not same time" in text
    assert "8 steps a sequence against 4" in text
    assert "1 seed does not test a difference" in text
    sizes = [row.costs["parameters"].mean for row in result.compared(PARAMETERS)]
    assert max(sizes) / min(sizes) < 1.1


def test_gradient_flow_decides_who_learns(tmp_path: Path):
    """T=50, as in the quick preset: effective forget bias 2 is right everywhere after 300 updates.

    Torch's default is a coin; and at the first step its gradient was a million times smaller.
    """
    quick = resolve_settings(BenchmarkSettings, flags={}, config="benchmark-quick").to_json()
    asked = BenchmarkSettings(
        **{**quick, "cell": "lstm", "delay": 50, "learning_rate": 0.003, "seeds": 1, "updates": 300}
    )
    result = run_benchmark(asked, folder=tmp_path, executor="serial")
    rows = {row.init: row for row in result.rows}
    assert rows["forget-bias:2"].verdict == LEARNED
    assert rows["forget-bias:2"].accuracy is not None
    assert rows["forget-bias:2"].accuracy.mean == 1.0
    assert rows["torch-default"].verdict == NOT_LEARNED
    starts = {run.init: run.profiles[0].log10_norms["h"][0] for run in result.runs if run.profiles}
    assert starts["forget-bias:2"] - starts["torch-default"] > 6.0


@pytest.mark.parametrize("lost", ["data", "curve", "profiles", "costs"])
def test_a_row_of_another_shape_is_named(tmp_path: Path, lost: str):
    """One that somebody changed: no fault of the program, and no result without it."""
    asked = settings(cell="rnn")
    run_benchmark(asked, folder=tmp_path, executor="serial")
    first, *others = load_rows(tmp_path)
    assert first.row is not None
    changed = replace(first, row={name: first.row[name] for name in first.row if name != lost})
    with pytest.raises(RunFolderError, match=f"row of key {first.key} is no run.*{lost}"):
        compare(make_grid(asked), [changed, *others])
