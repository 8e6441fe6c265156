"""`run_depth`: what the maps hold, what the checks compare, what the notes say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gradflow.cells import Dropout, Stack
from gradflow.config import DepthSettings
from gradflow.engine import depth_norms
from gradflow.errors import GradflowError, SettingError, ShapeError, UnknownNameError
from gradflow.experiments import depth_checks
from gradflow.experiments.depth import run_depth
from gradflow.experiments.depth_subjects import base_stack, batch_of, draw_masks
from gradflow.records import DepthMap, DepthResult

SMALL: dict[str, Any] = {"hidden": 5, "input_size": 3, "steps": 7, "batch": 3, "layers": 2}
LN10 = math.log(10.0)


def run(**changes: Any) -> DepthResult:
    """Measure a small stack; every check of it passes."""
    result = run_depth(DepthSettings(**{**SMALL, **changes}))
    assert [check for check in result.checks if not check.passed] == []
    return result


def test_a_row_is_the_engines_norm_by_lag() -> None:
    """Mean, smallest and largest of log10 over the samples at each lag from their own ends."""
    settings = DepthSettings(**SMALL, shortest=3, residual="no")
    (found,) = run(shortest=3, residual="no").maps
    stack, _ = base_stack("lstm", settings)
    x, lengths = batch_of(stack, settings)
    assert lengths == [7, 5, 3]
    norms = depth_norms(stack, stack.run(x, lengths=lengths))
    for layer in (1, 2):
        row = found.row(layer)
        for lag in range(7):
            logs = [
                norms.log_norm[layer - 1, 0, length - 1 - lag, b].item() / LN10
                for b, length in enumerate(lengths)
                if lag < length
            ]
            assert found.count[lag] == len(logs)
            values = (row.log10_norm[lag], row.lowest[lag], row.highest[lag])
            assert values == pytest.approx((np.mean(logs), min(logs), max(logs)), rel=1e-12)
    last = [norms.input_log_norm[length - 1, b].item() for b, length in enumerate(lengths)]
    assert found.row(0).log10_norm[0] == pytest.approx(np.mean(last) / LN10, rel=1e-12)


def test_links_and_masks_are_compared_on_the_same_weights_input_and_seed() -> None:
    """Both kinds of each: four maps; without dropout two, of which one has links."""
    maps = run(recurrent_dropout=0.4, dropout=0.2, layers=3).maps
    assert [(found.residual, found.masks) for found in maps] == [
        (False, "step"), (False, "sequence"), (True, "step"), (True, "sequence"),
    ]  # fmt: skip
    plain, linked = run(layers=3).maps
    assert (plain.masks, linked.masks) == ("none", "none")
    # the last layer at its own end is itself, with links or without
    ends = [found.row(3).log10_norm[0] for found in (plain, linked)]
    assert ends == pytest.approx([0.0, 0.0], abs=1e-12)
    assert linked.row(1).log10_norm[0] > plain.row(1).log10_norm[0]
    only = run(residual="no", recurrent_dropout=0.4, masks="sequence").maps
    assert [(found.residual, found.masks) for found in only] == [(False, "sequence")]


def test_the_masks_of_a_run_are_those_of_its_seed() -> None:
    """A kind's masks are drawn alike for every variant, and differ between seeds."""
    settings = DepthSettings(**SMALL, recurrent_dropout=0.5)
    stack, _ = base_stack("lstm", settings)
    fresh = draw_masks(stack, settings, "step")
    again = draw_masks(stack, settings, "step")
    other = draw_masks(stack, DepthSettings(**SMALL, recurrent_dropout=0.5, seed=1), "step")
    assert torch.equal(fresh.recurrent[0], again.recurrent[0])
    assert not torch.equal(fresh.recurrent[0], other.recurrent[0])
    assert draw_masks(stack, settings, "sequence").recurrent[0].shape == (1, 3, 5)
    assert stack.dropout == Dropout()


def test_a_rate_is_the_slope_of_a_map_of_one_direction() -> None:
    """Least squares of ln of the norm over the farther half; in two directions there is none."""
    row = run(steps=40).maps[0].row(2)
    lags = np.arange(20, 40)
    slope = np.polyfit(lags, row.log10_norm[20:] * LN10, 1)[0]
    assert row.rate == pytest.approx(slope, rel=1e-9)
    assert {r.rate for r in run(bidirectional=True).maps[0].rows} == {None}


def test_two_directions_have_a_row_each() -> None:
    """The input first, then layer by layer, forward and reverse."""
    found = run(bidirectional=True, residual="no").maps[0]
    assert [(row.layer, row.direction) for row in found.rows] == [
        (0, "input"), (1, "forward"), (1, "reverse"), (2, "forward"), (2, "reverse"),
    ]  # fmt: skip
    # read at both ends, each direction is itself at its own
    assert found.row(2, "forward").log10_norm[0] == pytest.approx(0.0, abs=1e-12)
    assert found.row(2, "reverse").log10_norm[-1] == pytest.approx(0.0, abs=1e-12)


def test_the_reverse_half_of_the_last_output_is_a_structural_zero() -> None:
    """With one layer all but its own last step is exactly 0, and a note says why."""
    result = run(bidirectional=True, read="reverse output", layers=1, residual="no")
    (found,) = result.maps
    reverse = found.row(1, "reverse")
    assert np.isfinite(reverse.log10_norm).tolist() == [True] + [False] * 6
    assert reverse.exact_zeros.tolist() == [0] + [3] * 6
    assert "That is the stack's structure, no failure." in result.notes[0]


def test_fresh_masks_that_cut_every_path_are_told_from_small_numbers() -> None:
    """Units that hardly see each other, half of them dropped at each step: exact zeros."""
    result = run(cell="rnn", init="scaled-identity", recurrent_dropout=0.6, steps=40, residual="no")
    fresh, one = result.maps
    assert fresh.row(2).exact_zeros[-1] == 3
    assert np.isneginf(fresh.row(2).log10_norm[-1])
    assert one.row(2).zeros[-1] < 3
    assert any("fresh masks have cut every path" in note for note in result.notes)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_the_checks_compare_with_autograd_torch_and_other_padding(cell: str) -> None:
    """Four checks on padded batches; the first is far below its tolerance."""
    result = run(cell=cell, bidirectional=True, shortest=2)
    assert [check.name for check in result.checks] == [
        "autograd agrees",
        "every number is finite or a known zero",
        f"{cell}: the stack is torch's layer",
        f"{cell}: padding changes nothing",
    ]
    for found in result.maps:
        assert found.autograd.max_relative_error < 1e-12
        assert found.autograd.steps == (1, 0)


def test_a_gru_that_torch_does_not_have_is_checked_by_its_own_step() -> None:
    """Reset before the product: no layer of torch's to compare with, autograd all the same."""
    result = run(cell="gru", reset="before")
    assert [check.name for check in result.checks][2:] == []
    assert "reset before the product" in result.maps[0].autograd.subject


def test_float32_is_measured_and_checked() -> None:
    """With wider tolerances; the numbers are those of float64 to a few digits."""
    single, double = run(dtype="float32"), run()
    assert single.maps[0].row(1).log10_norm == pytest.approx(
        double.maps[0].row(1).log10_norm, abs=1e-4
    )


def test_a_check_that_does_not_hold_fails() -> None:
    """A tampered layer is not torch's; the check says by how much."""
    settings = DepthSettings(**SMALL)
    stack, _ = base_stack("gru", settings)
    x, lengths = batch_of(stack, settings)
    layer = depth_checks._torch_layer(stack)
    with torch.no_grad():
        layer.bias_hh_l1[0] += 0.1
    check = depth_checks._against_torch("gru", stack, layer, x, lengths)
    assert not check.passed
    assert "packed nn.GRU" in check.detail


def test_one_layer_is_not_compared_with_links_that_it_cannot_have() -> None:
    """Input 3, hidden 5: "both" measures without, "yes" is refused, equal widths do both."""
    result = run(layers=1)
    assert [found.residual for found in result.maps] == [False]
    assert any("none can have a link" in note for note in result.notes)
    with pytest.raises(ShapeError, match=r"--residual yes: .*no layer is: 3 to 5"):
        run_depth(DepthSettings(**{**SMALL, "layers": 1, "residual": "yes"}))
    assert [found.residual for found in run(layers=1, input_size=5).maps] == [False, True]


def test_a_link_past_what_is_read_changes_nothing_and_a_note_says_so() -> None:
    """Input 3, hidden 5, two layers: the one link leads around the last layer's state."""
    result = run()
    plain, linked = result.maps
    assert plain.row(1).log10_norm.tolist() == linked.row(1).log10_norm.tolist()
    assert any("past the final state that is read" in note for note in result.notes)
    output = run(read="output")
    assert not any("past the final state" in note for note in output.notes)
    assert output.maps[0].row(1).log10_norm[0] < output.maps[1].row(1).log10_norm[0]


def test_the_initialization_is_that_of_gradflow_inits() -> None:
    """forget-bias:2 sets the effective forget bias of every layer, above torch's default."""
    stack, _ = base_stack("lstm", DepthSettings(**SMALL, init="forget-bias:2"))
    plain, _ = base_stack("lstm", DepthSettings(**SMALL))
    for cell, other in zip(stack.cells, plain.cells, strict=True):
        bias = (cell.bias_ih + cell.bias_hh)[cell.rows("forget")]
        assert bias.tolist() == pytest.approx([2.0] * 5)
        assert torch.equal(cell.weight_hh, other.weight_hh)
    assert not torch.equal(stack.cells[0].weight_hh, stack.cells[1].weight_hh)


def test_a_result_is_read_back_whole() -> None:
    """JSON is strict, zeros are null with their counts beside them, and nothing is lost."""
    result = run(bidirectional=True, read="reverse output", layers=1, residual="no", shortest=4)
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    again = DepthResult.from_json(document)
    assert again.to_json() == result.to_json()
    assert document["schema"] == "gradflow/depth/1"
    assert document["results"]["lengths"] == [7, 6, 4]
    row = document["results"]["maps"][0]["rows"][1]
    assert row["log10_norm"][0] is None
    assert row["zeros"][0] == 3
    assert isinstance(again.maps[0], DepthMap)
    assert np.isneginf(again.maps[0].row(1).log10_norm[0])


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"state": "c", "cell": "gru"}, UnknownNameError, "--state 'c' is no part"),
        ({"read": "reverse state"}, UnknownNameError, "--read 'reverse state' needs.*--bidirec"),
        ({"cell": "lsmt"}, UnknownNameError, "Did you mean 'lstm'"),
        ({"init": "forget-bias:1", "cell": "rnn"}, GradflowError, "a plain RNN has none"),
    ],
)
def test_what_cannot_be_measured_is_told(changes: Any, error: type[Exception], words: str) -> None:
    """The flag, the rule, the way out."""
    with pytest.raises(error, match=words):
        run_depth(DepthSettings(**{**SMALL, **changes}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shortest": 8}, "must be at most --steps, which is 7"),
        ({"dropout": 1.0}, "must be less than 1"),
        ({"recurrent_dropout": -0.1}, "must be at least 0"),
        ({"layers": 0}, "must be at least 1"),
        ({"init": "xavir"}, "Did you mean 'xavier'"),
        ({"init": 3}, "the name of an initialization"),
        ({"residual": "maybe"}, "Known: both, no, yes"),
        ({"masks": "variational"}, "Known: both, sequence, step"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: Any, words: str) -> None:
    """By the settings model, before anything is built."""
    with pytest.raises((SettingError, UnknownNameError), match=words):
        DepthSettings(**{**SMALL, **changes})


def test_a_map_without_a_check_is_stored_too() -> None:
    """A sample of more than 100 steps is not unrolled by autograd; the check says so."""
    result = run_depth(DepthSettings(**{**SMALL, "steps": 102, "residual": "no", "batch": 1}))
    assert result.maps[0].autograd.max_relative_error is None
    assert "over 0 of 1 maps" in result.checks[0].detail
    bare = replace(result, maps=(replace(result.maps[0], autograd=None),))
    assert DepthResult.from_json(bare.to_json()).maps[0].autograd is None


def test_a_stack_is_a_cell_for_every_layer() -> None:
    """Three cells, two directions: six networks of different weights."""
    stack, whole = base_stack("gru", DepthSettings(**{**SMALL, "bidirectional": True, "layers": 3}))
    assert isinstance(stack, Stack)
    assert (len(stack.cells), stack.layers, whole) == (6, 3, False)
