"""A row: what one run tells, and that it depends on its settings alone."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from gradflow.experiments.benchmark.one_run import train_one
from gradflow.sweeps import SweepTask
from tests.experiments.benchmark.small import run_of

CELLS = Path(__file__).parent / "cells.py"
MEASURED = ("training_seconds", "seconds_of_512", "peak_bytes", "process_peak_bytes")


def row_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Run the settings of a run as a worker does."""
    return train_one(settings, SweepTask(settings).key)


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without times and memory."""
    kept = copy.deepcopy(row)
    for name in MEASURED:
        del kept["costs"][name]
    return kept


@pytest.mark.parametrize("task", ["copy", "signal", "adding"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm", f"{CELLS}:Leaky"])
def test_a_row_is_strict_json_and_tells_everything(task: str, cell: str):
    """Curve, test, gradients, profiles at three moments, costs."""
    row = row_of(run_of(cell, task=task, symbols=5, alphabet=8))
    json.dumps(row, allow_nan=False)
    assert [point["update"] for point in row["curve"]] == [0, 2, 4, 6]
    assert [(p["moment"], p["update"]) for p in row["profiles"]] == [
        ("start", 0),
        ("middle", 2),
        ("end", 6),
    ]
    steps = {"copy": 6 + 10, "signal": 6, "adding": 6}[task]
    parts = {"h", "c"} if cell == "lstm" else {"h"}
    assert set(row["profiles"][0]["log10_norms"]) == parts
    assert len(row["profiles"][0]["log10_norms"]["h"]) == steps
    assert all(profile["loss_error"] < 1e-9 for profile in row["profiles"])
    assert row["costs"]["step_calls"] == 6 * steps
    assert set(row["test"]) == {"loss", "recall_loss", "accuracy"}
    assert row["data"]["shared"] == 0


@pytest.mark.parametrize("cell", ["gru", f"{CELLS}:Dropping"])
def test_a_row_depends_on_its_settings_alone(cell: str):
    """Whatever was drawn or trained before in the same process; dropout draws from the key."""
    settings = run_of(cell)
    first = row_of(settings)
    torch.manual_seed(99)
    random.seed(99)
    row_of(run_of("lstm", seed=3))
    assert without_times(row_of(settings)) == without_times(first)


def test_another_key_drops_other_units():
    """What a cell draws while it trains comes from the key, all else from the seed."""
    settings = run_of(f"{CELLS}:Dropping")
    first, second = (train_one(settings, key * 64) for key in "ab")
    assert first["curve"][0] == second["curve"][0]
    assert first["curve"][-1] != second["curve"][-1]
    plain = [train_one(run_of("gru"), key * 64) for key in "ab"]
    assert without_times(plain[0]) == without_times(plain[1])


def test_cells_of_a_seed_share_data_and_order():
    """Other cells and widths get the same sets; another seed gets others."""
    prints = [
        row_of(run_of(cell, **values))["data"]["fingerprint"]
        for cell, values in (("rnn", {}), ("lstm", {"hidden": 7}), ("rnn", {"seed": 1}))
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_diverged_run_is_a_row_with_its_reason_and_without_a_test():
    """A rate that is too large is data, not a crash."""
    row = row_of(run_of("rnn", learning_rate=1e4, optimizer="sgd", clip=0.0))
    assert row["stopped"] == "diverged"
    assert "validation loss was" in row["reason"] or "finite" in row["reason"]
    assert row["test"] is None
    assert row["profiles"][0]["moment"] == "start"
    json.dumps(row, allow_nan=False)


def test_the_best_update_is_the_one_of_the_lowest_validation_loss():
    """Its weights are tested; nothing of the test set enters the choice."""
    settings = run_of("gru", updates=40, learning_rate=0.05, evaluate_every=10)
    row = row_of(settings)
    losses = [point["loss"] for point in row["curve"]]
    assert row["best_update"] == row["curve"][losses.index(min(losses))]["update"]
