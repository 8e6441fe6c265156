"""What initializations do to gradient flow: closed forms, the circular law, what is left out."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from gradflow.cells import GRU, LSTM, RNN
from gradflow.cells.base import Cell
from gradflow.errors import GateValueError, RequestError, UnknownNameError
from gradflow.experiments.init_flow import (
    common_run,
    draw_cells,
    first_jacobian,
    horizon,
    spectral_radius,
)
from gradflow.experiments.init_gates import gate_values, time_constants
from gradflow.experiments.inits import run_inits
from gradflow.inits import torch_default_, zero_bias_
from gradflow.records import InitFlow, InitsResult
from gradflow.settings import InitsSettings

SMALL: dict[str, Any] = {"hidden": 6, "input_size": 2, "steps": 40, "seeds": 3}
AT_REST = {"input": "zero", "start": "zero"}


def run(**settings: Any) -> InitsResult:
    """Run a small comparison."""
    return run_inits(InitsSettings(**{**SMALL, **settings}))


def one(**settings: Any) -> InitFlow:
    """Run a comparison of one cell and one initialization."""
    (flow,) = run(**settings).inits
    return flow


def rest_matrix(cell: Cell) -> torch.Tensor:
    """Return the first step's Jacobian at rest, or a matrix with its eigenvalues that are not 0.

    In an LSTM at rest dh_1 = dc_1 / 2, so an eigenvector is (w / 2, w).
    """
    x = torch.zeros(1, 1, cell.input_size, dtype=cell.dtype)
    jacobian = first_jacobian(cell, x, cell.initial_state(1))[0]
    if cell.kind != "lstm":
        return jacobian
    size = cell.hidden_size
    h_rows, c_rows = jacobian[:size], jacobian[size:]
    torch.testing.assert_close(h_rows, c_rows / 2, rtol=0, atol=1e-7)
    return c_rows[:, :size] / 2 + c_rows[:, size:]


def mean_radius(kind: type[Cell], size: int, seeds: int) -> float:
    """Return the mean spectral radius of the first step at rest: torch's default, biases zero."""
    radii = []
    for seed in range(seeds):
        cell = kind(1, size)
        torch_default_(cell, generator=torch.Generator().manual_seed(seed))
        zero_bias_(cell)
        radii.append(spectral_radius(rest_matrix(cell).float()).item())
    return sum(radii) / seeds


# closed form


@pytest.mark.parametrize(
    ("kind", "expected", "within"),
    [
        (LSTM, 0.5 + 0.25 / math.sqrt(3), 0.005),
        (GRU, 0.5 + 0.25 / math.sqrt(3), 0.005),
        (RNN, 0.591, 0.02),
    ],
)
def test_the_circular_law_gives_the_spectral_radius_of_torchs_default(
    kind: type[Cell], expected: float, within: float
):
    """At rest, H=800, 10 draws: 1/2 + 1/(4 sqrt 3) = 0.644338 for LSTM and GRU, RNN near 0.591."""
    assert mean_radius(kind, 800, 10) == pytest.approx(expected, abs=within)


def test_the_first_step_at_rest_is_half_the_identity_and_a_quarter_of_u():
    """GRU: I/2 + U/4 with U the candidate's block, whichever place the reset gate has."""
    for reset in ("after", "before"):
        cell = GRU(2, 5, reset=reset, dtype=torch.float64)
        zero_bias_(cell)
        u = cell.weight_hh.detach()[cell.rows("candidate")]
        expected = torch.eye(5).double() / 2 + u / 4
        torch.testing.assert_close(rest_matrix(cell), expected, rtol=0, atol=1e-15)


def test_the_orthogonal_rnn_at_rest_keeps_every_length():
    """W orthogonal, zero state, zero input: singular values 1, rate 0, never gone."""
    flow = one(cell="rnn", init="orthogonal-per-gate", **AT_REST)
    np.testing.assert_allclose(flow.singular_values, 1.0, atol=1e-14)
    np.testing.assert_allclose(flow.log10_norm, 0.0, atol=1e-13)
    assert flow.half_life is None
    assert flow.horizons.values == (None, None, None)
    assert "not reached within 40 steps: 10^" in str(flow.horizon_reason(1e-3))


def test_the_scaled_identity_rnn_at_rest_is_its_scale_to_the_t():
    """0.5 I: half a step, gone (a thousandth) after 10 steps, in every draw."""
    flow = one(cell="rnn", init="scaled-identity:0.5", **AT_REST)
    np.testing.assert_allclose(flow.log10_norm, flow.steps * math.log10(0.5), rtol=1e-13)
    assert flow.factor_per_step == pytest.approx(0.5)
    assert flow.half_life == pytest.approx(1.0)
    assert flow.horizons.values == (10, 10, 10)
    assert flow.spectral_radii.mean == pytest.approx(0.5)


def test_the_forget_gate_at_rest_is_the_sigmoid_of_its_bias():
    """b = 2 on top of zero weights: f = 0.8808 in every unit and step, time constant 7.88 steps."""
    flow = one(cell="lstm", init="scaled-identity:0+forget-bias:2", **AT_REST)
    assert flow.keep_gate is not None
    assert flow.keep_gate.value is not None
    assert flow.time_constant is not None
    assert flow.keep_gate.value.least == pytest.approx(0.8807970779778823, abs=1e-15)
    assert flow.keep_gate.value.greatest == pytest.approx(0.8807970779778823, abs=1e-15)
    assert flow.time_constant.median == pytest.approx(7.8784816037292265, abs=1e-12)
    expected = flow.steps * math.log10(0.8807970779778823)
    np.testing.assert_allclose(flow.log10_norm, expected, rtol=1e-12)


@pytest.mark.parametrize(("cell", "gates"), [("lstm", 4), ("gru", 3)])
def test_singular_values_of_the_blocks_are_as_asked_for(cell: str, gates: int):
    """Per gate all are 1; stacked, their squares average 1/4 or 1/3 over the gates of each draw."""
    result = run(cell=cell, init="orthogonal-per-gate,orthogonal-stacked", seeds=2)
    each, stacked = result.inits
    assert all(gate.recurrent_least == pytest.approx(1.0, abs=1e-14) for gate in each.gates)
    squares = [gate.recurrent_mean_square for gate in stacked.gates]
    assert sum(squares) / gates == pytest.approx(1 / gates, abs=1e-14)
    assert {check.name.split(": ")[-1] for check in result.checks} >= {
        "singular values of each gate",
        "mean squared singular value over gates",
    }
    assert result.passed


# reference


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_plain_autograd_reads_the_same_norms(cell: str):
    """The first draw of every initialization, on torch's own cell, to 1e-10."""
    result = run(cell=cell)
    check = next(check for check in result.checks if check.name == "autograd agrees")
    assert check.passed, check.detail
    for flow in result.inits:
        assert flow.autograd is not None
        assert flow.autograd.max_relative_error is not None
        assert flow.autograd.max_relative_error < 1e-12


def test_gate_values_are_those_of_the_steps():
    """Gates read in one sweep over the run equal those of stepping the cell by hand."""
    settings = InitsSettings(**SMALL)
    (cell, *_), _ = draw_cells("lstm", "xavier", settings)
    x, state = common_run(cell, settings)
    found = gate_values(cell, x, state)
    for t in range(settings.steps):
        step = cell.step(x[t], state)
        for name in ("input", "forget", "output"):
            np.testing.assert_allclose(found[name][t], step[name].detach(), atol=1e-15)
        state = tuple(part.detach() for part in step.state)


def test_a_long_run_tells_its_gates_by_fewer_steps():
    """Of 5000 steps every third is kept, from the first on: the quantiles need no more."""
    cell = GRU(1, 2, dtype=torch.float64)
    x = torch.zeros(5000, 1, 1).double()
    assert gate_values(cell, x, cell.initial_state(1))["update"].shape == (1667, 1, 2)


def test_all_initializations_share_input_state_and_what_they_leave_alone():
    """forget-bias and chrono begin with torch's default of the same draw: same weights."""
    settings = InitsSettings(**SMALL)
    drawn = [draw_cells("lstm", name, settings)[0] for name in ("torch-default", "forget-bias:1")]
    for one_cell, other in zip(*drawn, strict=True):
        assert torch.equal(one_cell.weight_hh, other.weight_hh)
        assert not torch.equal(one_cell.bias_ih, other.bias_ih)
    assert not torch.equal(drawn[0][0].weight_hh, drawn[0][1].weight_hh)
    runs = [common_run(cells[0], settings) for cells in drawn]
    assert torch.equal(runs[0][0], runs[1][0])
    assert all(map(torch.equal, runs[0][1], runs[1][1]))


def test_the_order_of_forget_biases_is_the_order_of_memories():
    """A larger forget bias keeps longer: 1, 2, 5 in rising order of horizon or what is left."""
    flows = run(init="forget-bias:1,forget-bias:2,forget-bias:5", hidden=16, steps=150).inits
    ends = [float(flow.log10_norm[-1]) for flow in flows]
    assert ends == sorted(ends)
    medians = [flow.time_constant.median for flow in flows if flow.time_constant]
    assert medians == sorted(medians)


# edges


def test_the_horizon_is_the_first_step_at_the_threshold():
    """0.1^3 is a thousandth; a curve that returns above it was gone all the same."""
    steps = np.arange(1, 6)
    assert horizon(steps, -1.0 * steps, 1e-3) == 3
    assert horizon(steps, np.array([-1.0, -4.0, -1.0, -1.0, -4.0]), 1e-3) == 2
    assert horizon(steps, np.array([-9.0] * 5), 1e-3) == 1
    assert horizon(steps, np.array([-1.0, -np.inf, -np.inf, -np.inf, -np.inf]), 1e-3) == 2
    assert horizon(steps, np.zeros(5), 1e-3) is None


def test_between_sparse_steps_the_horizon_is_interpolated():
    """Reported at 10 and 20, a line in logarithms crosses -3 at 15."""
    assert horizon(np.array([10, 20]), np.array([-2.0, -4.0]), 1e-3) == 15


def test_a_gate_that_rounds_to_one_never_forgets():
    """Its time constant is infinite, and null in the JSON."""
    spread = time_constants(np.array([0.5, 0.5, 1.0]))
    assert spread.greatest == math.inf
    assert spread.median == pytest.approx(1 / math.log(2))
    assert spread.to_json()["greatest"] is None
    assert type(spread).from_json(spread.to_json()) == spread


def test_a_plain_rnn_leaves_out_what_it_has_no_gate_for():
    """A note says which; where nothing is left, the request is refused."""
    result = run(cell="rnn", init="he,chrono,forget-bias:1")
    assert [flow.init for flow in result.inits] == ["he"]
    assert result.notes[-1] == (
        "rnn: no gate has a bias that could be set, so left out: chrono:100, forget-bias:1."
    )
    assert result.inits[0].keep_gate is None
    assert result.inits[0].time_constant is None
    with pytest.raises(GateValueError, match=r"--init chrono:100 .* a plain RNN has none"):
        run(cell="rnn", init="chrono")


def test_the_copied_snippet_is_told_for_what_it_sets():
    """The note names the gate that got the identity, and the effective bias."""
    notes = " ".join(run(init="as-commonly-copied").notes)
    assert "the identity for the input gate, zero for forget, candidate, output" in notes
    assert "the effective bias is 2: all units of forget" in notes


def test_chronos_mean_is_told_beside_its_expectation():
    """At rest, over 60 draws of 6 units, within 4 standard errors of 0.960081."""
    result = run(init="chrono", seeds=60, steps=2)
    keep = result.inits[0].keep_gate
    assert keep is not None
    assert keep.at_rest is not None
    deviation = math.sqrt(0.49 / 98 - (math.log(50) / 98) ** 2)  # of u / (1 + u), u in (1, 99)
    assert abs(keep.at_rest.mean - 0.960081) < 4 * deviation / math.sqrt(360)
    assert "expected 0.960081 = 1 - ln(100/2) / (100 - 2)" in result.notes[0]


@pytest.mark.parametrize("settings", [{"state": "joint"}, {"state": "h"}, {"norm": "frobenius"}])
def test_any_part_and_norm_can_be_measured(settings: dict[str, str]):
    """Each agrees with autograd, and says what it is."""
    result = run(init="xavier", **settings)
    assert result.passed
    assert result.inits[0].state == settings.get("state", "c")


def test_one_step_has_no_rate_and_still_a_first_jacobian():
    """At T=1 there is a norm, no slope, and no half-life."""
    flow = one(init="xavier", steps=1)
    assert flow.rate is None
    assert flow.half_life is None
    assert len(flow.singular_values) == 12


def test_float32_passes_its_own_checks():
    """Single precision, with its own tolerance."""
    assert run(dtype="float32").passed


def test_one_seed_repeats_and_another_does_not():
    """The same settings give the same numbers."""
    one_run, again, other = (run(init="xavier", seed=seed) for seed in (3, 3, 4))
    assert one_run.results_json() == again.results_json()
    assert one_run.results_json() != other.results_json()


def test_a_result_survives_its_own_json():
    """A stored result read back is the result: horizons that are not reached, and all else."""
    result = run(cell="lstm,rnn", init="forget-bias:5,he+zero-bias,chrono")
    text = json.dumps(result.to_json(), allow_nan=False)
    assert InitsResult.from_json(json.loads(text)).to_json() == result.to_json()


def test_progress_counts_all_runs_together():
    """Two initializations of 40 steps are 80 steps."""
    seen: list[tuple[str, int, int]] = []
    settings = InitsSettings(**{**SMALL, "init": "he,xavier"})
    run_inits(settings, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("lstm, xavier", 80, 80)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


# words


def test_a_state_or_device_that_does_not_exist_is_refused():
    """Before anything is measured."""
    with pytest.raises(UnknownNameError, match="--state 'c' is no part of the state of gru"):
        run(cell="lstm,gru", state="c")
    with pytest.raises(RequestError, match="--device"):
        run(device="nowhere")
