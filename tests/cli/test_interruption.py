"""A run that is stopped: exit code 130, and what it measured is shown and kept."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from gradflow.cli.progress import ProgressReport
from gradflow.store import load_result
from tests.cli.terminal import Answer, in_process

SPECTRUM = ["--cell", "rnn", "--hidden", "3"]
LONG = [
    *("--cell", "lstm", "--gate", "0.5", "--hidden", "4", "--steps", "50000000"),
    *("--candidate-gain", "1", "--gate-weights", "0.1", "--method", "dense", "--points", "300"),
]


def test_a_stopped_decay_keeps_what_it_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ctrl-C in a run of hours leaves the curve up to there, stored and printed."""

    def press_control_c(_: ProgressReport, what: str, done: int, total: int) -> None:
        assert (what, total) == ("lstm, candidate gain 1", 50_000_000)
        if done > 3000:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ProgressReport, "__call__", press_control_c)
    answer = in_process(capsys, "decay", *LONG, "--format", "json", "--out", "run")
    assert answer.code == 130, answer.err
    assert "Traceback" not in answer.err
    last = answer.err.strip().splitlines()[-1]
    assert last.startswith("Interrupted: lstm, candidate gain 1: the norms are known up to step 2")
    assert last.endswith("of 50000000. What was measured is in run.")
    document = json.loads(answer.out)
    assert document == json.loads((tmp_path / "run" / "result.json").read_text())
    curve = document["results"]["curves"][0]
    assert curve["steps"][0] == 1
    assert 1000 < curve["steps"][-1] < 4000
    assert "of 50000000" in load_result(tmp_path / "run").environment["interrupted"]
    assert (tmp_path / "run" / "figures" / "decay.png").exists()


@pytest.mark.parametrize("runs_before", [0, 1])
def test_a_stopped_comparison_keeps_its_whole_initializations(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    runs_before: int,
):
    """Half of an initialization's curve is no result; those that are done are shown and stored."""

    def press_control_c(_: ProgressReport, what: str, done: int, total: int) -> None:
        assert what.startswith("lstm, ")
        if done > runs_before * total // 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ProgressReport, "__call__", press_control_c)
    asked = ["--init", "xavier,chrono", "--steps", "40", "--hidden", "3", "--seeds", "2"]
    answer = in_process(capsys, "inits", *asked, "--format", "json", "--out", "run")
    assert answer.code == 130, answer.err
    last = answer.err.strip().splitlines()[-1]
    assert last.startswith(f"Interrupted: {runs_before} of 2 initializations are measured.")
    kept = json.loads(answer.out)["results"]["inits"] if answer.out else []
    assert [flow["init"] for flow in kept] == ["xavier"][:runs_before]
    assert (tmp_path / "run" / "result.json").exists() == bool(runs_before)


def stop_a_spectrum(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, warmup: int, after: int
) -> Answer:
    """Press Ctrl-C in a run of 50,000,600 steps, so many after its beginning."""

    def press_control_c(_: ProgressReport, what: str, done: int, total: int) -> None:
        assert (what, total) == ("rnn", 50_000_600)
        if done > after:
            signal.raise_signal(signal.SIGINT)

    lengths = ["--warmup", str(warmup), "--steps", str(50_000_600 - warmup)]
    with monkeypatch.context() as patch:
        patch.setattr(ProgressReport, "__call__", press_control_c)
        return in_process(
            capsys, "spectrum", *SPECTRUM, *lengths, "--format", "json", "--out", "run"
        )


def test_a_stopped_spectrum_keeps_the_steps_it_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The exponents of the steps so far are those of a shorter run."""
    monkeypatch.chdir(tmp_path)
    answer = stop_a_spectrum(capsys, monkeypatch, warmup=600, after=1600)
    assert answer.code == 130, answer.err
    document = json.loads(answer.out)
    assert document == json.loads((tmp_path / "run" / "result.json").read_text())
    steps = document["results"]["steps"]
    assert document["environment"]["interrupted"] == f"{steps} of 50000000 steps are measured."
    assert all(check["passed"] for check in document["checks"])
    shorter = ["--warmup", "600", "--steps", str(steps), "--format", "json", "--out", "other"]
    wanted = json.loads(in_process(capsys, "spectrum", *SPECTRUM, *shorter).out)["results"]
    assert document["results"]["exponents"] == pytest.approx(wanted["exponents"], rel=1e-12)


def test_a_spectrum_that_is_stopped_in_its_warm_up_has_nothing_to_keep(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Steps that only turn the tangents are no measurement: no folder is left."""
    monkeypatch.chdir(tmp_path)
    answer = stop_a_spectrum(capsys, monkeypatch, warmup=50_000_599, after=600)
    assert answer.code == 130, answer.err
    assert answer.err.strip().splitlines()[-1] == "Interrupted: 0 of 1 steps are measured."
    assert not (tmp_path / "run").exists()
