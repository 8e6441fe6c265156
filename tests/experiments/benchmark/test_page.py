"""The page on the benchmark is true: its Python runs, its flags exist, its numbers are so."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from gradflow.config import COMMAND_SETTINGS, COMMON_OPTIONS, SWEEP_OPTIONS, resolve_settings
from gradflow.experiments.benchmark.adding_task import NEAR, AddingTask
from gradflow.experiments.benchmark.copy_task import CopyTask
from gradflow.experiments.benchmark.datasets import draw_sets
from gradflow.experiments.benchmark.gradient_profile import gradient_profile
from gradflow.experiments.benchmark.made_task import set_sizes
from gradflow.experiments.benchmark.networks import make_network
from gradflow.experiments.benchmark.seeds import derived_seed
from gradflow.experiments.benchmark.selection import DRIFT
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.tasks import LEARNED
from gradflow.experiments.benchmark.training import RUNAWAY, SOLVED
from gradflow.experiments.benchmark.verdicts import AT_BASELINE
from gradflow.settings.benchmark import BenchmarkSettings

PAGE = (Path(__file__).parents[3] / "docs" / "benchmark.md").read_text(encoding="utf-8")


def test_the_python_of_the_page_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each line that it prints stands in the text, in backticks."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "benchmark.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    assert len(lines) == 2
    assert all(f"`{line}`" in PAGE for line in lines), lines


def test_the_flags_of_the_page_exist():
    """Those of its commands, and those that the text names."""
    known = {*COMMAND_SETTINGS["benchmark"].model_fields, *COMMON_OPTIONS, *SWEEP_OPTIONS}
    flags = {flag.replace("-", "_") for flag in re.findall(r"--([a-z][\w-]+)", PAGE)}
    assert len(flags) > 10
    assert flags <= known


def test_the_numbers_of_the_page_are_those_of_the_code():
    """Baselines and limits."""
    for delay, shown in ((50, "0.2971"), (200, "0.0945")):
        loss = CopyTask(delay=delay, symbols=10, alphabet=8).baseline.loss
        assert f"{loss:.4f}" == shown
        assert shown in PAGE
    assert round(AddingTask(delay=9).baseline.accuracy, 12) == 0.19
    assert (LEARNED, AT_BASELINE, SOLVED, RUNAWAY, DRIFT, NEAR) == (0.9, 0.9, 0.999, 10.0, 0.2, 0.1)


def start_of(task: SignalTask, settings: dict[str, Any], cell: str, init: str, draw: int) -> float:
    """Return log10 of the first step's gradient over the last's, of a run as it begins."""
    seed = derived_seed(settings["seed"], "data", "signal", task.delay)
    validation = draw_sets(task, set_sizes(settings), seed=seed).validation
    network = make_network(
        task,
        cell=cell,
        hidden=settings["hidden"],
        embedding=settings["embedding"],
        init=init,
        seed=derived_seed(settings["seed"], "draw", draw),
    ).double()
    probe = validation.at(torch.arange(64))
    norms = gradient_profile(network, task, probe, network.state_dict()).log10_norms["h"]
    return float(norms[0] - norms[-1])


def test_the_flow_before_training_is_that_of_the_page():
    """Every row of the page's table, from the quick preset's networks as they begin."""
    quick = resolve_settings(BenchmarkSettings, flags={}, config="benchmark-quick").to_json()
    task = SignalTask(delay=50, distractors=quick["distractors"])
    table = re.findall(r"^\| (\w+)(.*) \| (10\^\S+) \|", PAGE, flags=re.MULTILINE)
    assert len(table) == 5
    for cell, words, shown in table:
        init = "forget-bias:2" if "bias 2" in words else "torch-default"
        starts = [start_of(task, quick, cell.lower(), init, draw) for draw in (0, 1)]
        assert f"10^{sum(starts) / 2:.2g}" == shown
