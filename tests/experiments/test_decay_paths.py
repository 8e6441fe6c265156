"""`gradflow decay --paths`: is f^T the right model here, in numbers and by path?"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradflow.config import DecaySettings
from gradflow.experiments.decay import run_decay
from gradflow.experiments.decay_paths import path_checks, path_points
from gradflow.records import DecayResult
from gradflow.records.paths import CellPaths

SMALL = {"hidden": 4, "steps": 40, "paths": True}


def run(**settings: object) -> DecayResult:
    """Run a small decay with paths."""
    return run_decay(DecaySettings(**{**SMALL, **settings}))


def lines_of(paths: CellPaths) -> set[str]:
    """Return the names of what was measured."""
    return {line.path for line in paths.lines}


def test_paths_are_measured_only_when_asked_for() -> None:
    """Without --paths the document is what it always was."""
    result = run(paths=False)
    assert result.paths == ()
    assert set(result.results_json()) == {"curves", "notes"}


def test_there_are_paths_for_every_curve() -> None:
    """A cell, gain and gate value each, with the paths that the cell has."""
    result = run(cell="lstm,gru,rnn", gate=(0.5, 0.9))
    gated = [(paths.cell, paths.candidate_gain, paths.gate_value) for paths in result.paths]
    assert gated[:4] == [("lstm", 0, 0.5), ("lstm", 0, 0.9), ("lstm", 1, 0.5), ("lstm", 1, 0.9)]
    assert len(gated) == 10  # the RNN has gains and no gate
    lstm, gru, rnn = (next(p for p in result.paths if p.cell == c) for c in ("lstm", "gru", "rnn"))
    ablations = {f"without {gate}" for gate in ("input", "forget", "output", "candidate")}
    blocks = {f"block {name}" for name in ("h,h", "h,c", "c,h", "c,c", "joint")}
    assert lines_of(lstm) == {"full", "direct", "rest"} | ablations | blocks
    assert lines_of(gru) == {"full", "direct", "rest"} | {
        f"without {gate}" for gate in ("reset", "update", "candidate")
    }
    assert lines_of(rnn) == {"full", "without candidate"}
    assert rnn.departure is None
    assert result.passed


def test_a_dead_candidate_leaves_the_gates_right() -> None:
    """Gain 0: the departure is 0, the rest is exactly zero."""
    for paths in run(candidate_gain=0).paths:
        rest = paths.line("rest")
        assert rest is not None
        assert paths.departure == pytest.approx(0.0, abs=1e-12)
        assert (rest.rate, rest.first_zero_step, rest.zero_reason) == (None, 1, "exact")


def test_a_live_candidate_departs_by_the_known_rate() -> None:
    """At the zero state the full path follows ln rho(f I + i o U), the direct one ln f."""
    result = run(cell="lstm", gate=0.9, candidate_gain=1, start="zero", steps=400, input_gate=0.5)
    (paths,) = result.paths
    (curve,) = [curve for curve in result.curves if curve.path == "full"]
    full, direct = paths.line("full"), paths.line("direct")
    assert full is not None
    assert direct is not None
    assert direct.rate == pytest.approx(math.log(0.9), abs=1e-12)
    assert full.rate == pytest.approx(curve.rate, abs=1e-3)  # fewer points of the same curve
    assert paths.departure == pytest.approx(curve.departure, abs=1e-3)
    without = paths.line("without candidate")
    assert without is not None
    assert without.rate == pytest.approx(direct.rate, abs=1e-12)


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
@pytest.mark.parametrize("state", [None, "joint"])
def test_the_full_path_is_the_curve(norm: str, state: str | None) -> None:
    """At every step that both have, the two measurements are one number."""
    result = run(norm=norm, state=state, cell="lstm,gru", gate=0.7)
    for paths in result.paths:
        full = paths.line("full")
        assert full is not None
        (curve,) = [
            curve
            for curve in result.curves
            if curve.path == "full"
            and (curve.cell, curve.candidate_gain) == (paths.cell, paths.candidate_gain)
        ]
        shared = np.isin(curve.steps, paths.steps)
        np.testing.assert_allclose(full.log10_norm, curve.log10_norm[shared], atol=1e-11)
        assert paths.state == curve.state


def test_a_user_s_cell_has_what_it_tells(tmp_path: Path) -> None:
    """Without declared gates: the full path, a sentence for nothing, no verdict."""
    (tmp_path / "cells.py").write_text(
        "import torch\n"
        "def make_cell(input_size, hidden_size):\n"
        "    return torch.nn.GRUCell(input_size, hidden_size)\n"
    )
    (torch_cell,) = run(cell=f"{tmp_path / 'cells.py'}:make_cell", gate=0.5, candidate_gain=0).paths
    assert "direct" in lines_of(torch_cell)  # torch's own cells become ours
    (tmp_path / "bare.py").write_text(
        "import torch\n"
        "class Bare(torch.nn.Module):\n"
        "    input_size, hidden_size = 1, 3\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.lin = torch.nn.Linear(4, 3, dtype=torch.float64)\n"
        "    def forward(self, x, h):\n"
        "        return torch.tanh(self.lin(torch.cat([x, h], -1)))\n"
    )
    (bare,) = run(cell=f"{tmp_path / 'bare.py'}:Bare").paths
    assert lines_of(bare) == {"full"}
    assert bare.departure is None
    assert bare.gate_value is None


def test_the_document_reads_back() -> None:
    """Zeros are null with their reason; the record read back says the same."""
    result = run(cell="lstm", gate=0.5)
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    again = DecayResult.from_json(document)
    assert again.to_json() == result.to_json()
    rest = again.paths[0].line("rest")
    assert rest is not None
    assert np.isneginf(rest.log10_norm).all()
    entry = document["results"]["paths"][0]
    assert entry["departure"] == pytest.approx(0.0, abs=1e-12)
    assert entry["lines"][2]["zero_reason"] == "exact"


def test_points_are_few_and_end_at_the_last_step() -> None:
    """Each point costs a dozen norms: 24 of a long run, the steps that were asked for otherwise."""
    assert path_points(3, None) == [1, 2, 3]
    spaced = path_points(500, None)
    assert (len(spaced), spaced[0], spaced[-1]) == (24, 1, 500)
    (paths,) = run(cell="gru", gate=0.5, candidate_gain=0, points=3).paths
    assert len(paths.steps) == 3


def test_rounding_in_float32_is_no_wrong_decomposition() -> None:
    """Norms of thousands of float32 steps are off by thousands of roundings, and fit by those."""
    result = run(cell="gru", gate=0.1, candidate_gain=0, steps=1000, dtype="float32")
    checks = {check.name: check for check in result.checks}
    assert checks["full, direct and rest fit each other"].passed


def test_without_a_direct_path_there_is_no_triangle_to_check() -> None:
    """An RNN has no keep gate: a check that could not fail would say nothing."""
    result = run(cell="rnn", gate=0.5)
    assert result.paths
    assert path_checks(result.paths) == ()
    assert not [check for check in result.checks if "direct and rest" in check.name]


def test_a_triangle_with_a_side_too_long_fails_its_check() -> None:
    """||full|| <= ||direct|| + ||rest||, and so on round: a wrong decomposition is found out."""
    (good,) = run(cell="lstm", gate=0.5, candidate_gain=1).paths
    assert path_checks([good])[0].passed
    raised = tuple(
        replace(line, log10_norm=line.log10_norm + 0.5) if line.path == "full" else line
        for line in good.lines
    )
    (check,) = path_checks([replace(good, lines=raised)])
    assert not check.passed
    assert "lstm at gate 0.5" in check.detail
