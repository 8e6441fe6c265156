"""Widths at which cells are equally large, and the grid that they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradflow.errors import CellLoadError, GateValueError, SettingError, UnknownNameError
from gradflow.experiments.benchmark.grid import make_grid
from gradflow.experiments.benchmark.networks import make_network
from gradflow.experiments.benchmark.run import benchmark_tasks
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.widths import Counting, match_target, nearest_width
from gradflow.records.benchmark import PARAMETERS, WIDTH
from tests.experiments.benchmark.small import copy_task, settings

CELLS = Path(__file__).parent / "cells.py"
OWN = f"{CELLS}:Leaky"


def built(counting: Counting, cell: str, hidden: int) -> int:
    """Return the parameters of a built network."""
    network = make_network(counting.task, cell=cell, hidden=hidden, embedding=counting.embedding)
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("embedding", [0, 16])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm", OWN])
def test_the_total_is_that_of_the_built_network(cell: str, embedding: int):
    """Encoder, recurrent layer with both bias vectors, and head."""
    for task in (copy_task(), SignalTask(delay=5, distractors=5)):
        counting = Counting(task, embedding)
        assert counting.total(cell, 7) == built(counting, cell, 7)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm", OWN])
def test_no_other_width_is_nearer(cell: str):
    """Every width up to 75 is built and counted; of two as near the narrower one counts."""
    counting = Counting(SignalTask(delay=5, distractors=5), 16)
    totals = [built(counting, cell, hidden) for hidden in range(1, 76)]
    for target in (1, 500, 501, 4978, 6578):
        away = [abs(total - target) for total in totals]
        assert nearest_width(counting, cell, target) == 1 + away.index(min(away))


def test_widths_are_matched_to_the_largest_cell_unless_asked():
    """At 32 units an LSTM has 6578 parameters here; a cell or a number may be asked for."""
    counting = Counting(SignalTask(delay=5, distractors=5), 16)
    cells = ("rnn", "gru", "lstm")
    assert match_target(counting, cells, hidden=32, match=None) == 6578
    assert match_target(counting, cells, hidden=32, match="gru:32") == 4978
    assert match_target(counting, cells, hidden=32, match="9000") == 9000
    with pytest.raises(SettingError, match="--match must be a cell and its width"):
        match_target(counting, cells, hidden=32, match="gru")


def test_a_cell_of_one_width_cannot_be_matched():
    """Its parameters do not grow, and the reason is told."""
    counting = Counting(copy_task(), 4)
    with pytest.raises(CellLoadError, match="the same parameters at every width"):
        nearest_width(counting, f"{CELLS}:make_fixed", 500)


def test_a_grid_has_both_comparisons_and_no_run_twice():
    """The LSTM that the others are matched to is in both, and trained once."""
    grid = make_grid(settings(cell="rnn,gru,lstm", delay="4,6", learning_rate="0.1,0.2", seeds=2))
    in_both = [model.cell for model in grid.models if model.comparisons == (WIDTH, PARAMETERS)]
    assert in_both == ["lstm"]
    assert len(grid.models) == 5
    tasks = benchmark_tasks(grid)
    assert len({task.key for task in tasks}) == len(tasks) == 5 * 2 * 2 * 2


def test_every_run_has_the_same_training_and_data():
    """Runs differ in the cell, its initialization and width, the delay, the rate and the draw."""
    grid = make_grid(settings(cell="rnn,lstm", delay="4,6", learning_rate="0.1,0.2", seeds=2))
    varied = {"cell", "init", "hidden", "delay", "learning_rate", "draw"}
    shared = [{k: v for k, v in run.items() if k not in varied} for run in grid.runs()]
    assert all(run == shared[0] for run in shared)
    assert {"seed", "batch", "updates", "patience", "clip", "optimizer"} <= set(shared[0])


def test_what_a_cell_cannot_have_is_left_out_with_its_reason():
    """Each combination is accounted for: a plain RNN has no gate, a fixed cell no second width."""
    grid = make_grid(
        settings(cell=f"rnn,lstm,{CELLS}:make_fixed", init="torch-default,forget-bias:2")
    )
    left_out = {(entry.cell, entry.init): entry for entry in grid.left_out}
    fixed = f"{CELLS}:make_fixed"
    assert set(left_out) == {("rnn", "forget-bias:2"), (fixed, None), (fixed, "forget-bias:2")}
    assert left_out[fixed, None].comparisons == (PARAMETERS,)
    assert "a plain RNN has none" in left_out["rnn", "forget-bias:2"].reason


def test_a_row_of_other_code_is_not_taken_for_one_of_this(tmp_path: Path):
    """The key of a user's cell has the sha256 of its file, and its full path."""
    path = tmp_path / "mine.py"
    keys = []
    for text in (CELLS.read_text(), CELLS.read_text() + "\n# another thought\n"):
        path.write_text(text)
        (task,) = benchmark_tasks(make_grid(settings(cell=f"{path}:Leaky")))
        keys.append(task.key)
    assert keys[0] != keys[1]
    assert task.settings["cell"] == f"{path.resolve()}:Leaky"


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"cell": "lsmt"}, UnknownNameError, "Did you mean 'lstm'"),
        ({"cell": "rnn", "init": "forget-bias:2"}, GateValueError, "cannot be given to any of rnn"),
        ({"task": "copy", "symbols": 1, "alphabet": 8}, SettingError, "must not overlap"),
        ({"task": "adding", "delay": 1}, SettingError, "at least 2"),
        ({"match": "0"}, SettingError, "--match"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(
    values: dict[str, object], error: type[Exception], words: str
):
    """A wrong request costs no training."""
    with pytest.raises(error, match=words):
        make_grid(settings(**values))
