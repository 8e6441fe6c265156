"""Findings of a running training: what is judged, against what, and how often it is told."""

from __future__ import annotations

import math

import pytest

from gradflow.experiments.inspect import flow_findings as inspected
from gradflow.experiments.inspect import needs as inspected_needs
from gradflow.present.watch_words import verdict
from gradflow.records.watch import BrokenTensor, FlowLayer, FlowSample
from gradflow.watching import layer_findings, vanishing
from gradflow.watching.findings import FindingMemory, sample_findings
from tests.data.watched_runs import flow_layer, flow_sample


def _codes(*layers: FlowLayer, needs_lag: int | None = None) -> list[tuple[str, str]]:
    found = sample_findings(flow_sample(0, *layers), needs_lag)
    return [(finding.code, finding.severity) for finding in found]


def _gru(curve: tuple[float | None, ...], **changes) -> FlowLayer:
    """Return a layer without a cell state, of this profile."""
    fields = {"kind": "gru", "log10_dL_dh": curve, "log10_dL_dc": None, "horizon": None}
    return flow_layer(1.0, len(curve), **{**fields, **changes})


def test_a_gradient_that_does_not_reach_the_first_step_is_a_warning():
    """0.1^59 of the last step's gradient is left at the first of 60 steps."""
    (finding,) = sample_findings(flow_sample(40, flow_layer(0.1, 60)))
    assert (finding.code, finding.severity, finding.update) == ("GF101", "warning", 40)
    assert finding.message == (
        "The gradient from the loss falls to 1e-3 within 3 steps; the first step is 59 steps back. "
        "The forget gate is 0.10 on average."
    )
    assert (finding.layer, finding.gate) == ("rnn, layer 0", "forget")
    assert finding.value == pytest.approx(3.0)


@pytest.mark.parametrize(("factor", "steps"), [(0.9, 20), (0.99, 60), (0.8, 60)])
def test_a_gradient_that_reaches_the_first_step_is_no_finding(factor: float, steps: int):
    """0.9^19 is 0.13, 0.8^59 is 1.9e-6: above a millionth the first step still learns."""
    assert _codes(flow_layer(factor, steps)) == []


def test_against_a_need_the_horizon_decides():
    """A need of 60 steps makes an error of a horizon of 31 (0.8 a step), and one of 30 does not."""
    assert _codes(flow_layer(0.8, 60), needs_lag=60) == [("GF101", "error")]
    assert _codes(flow_layer(0.8, 60), needs_lag=30) == []
    assert _codes(flow_layer(0.1, 60), needs_lag=2) == []


def test_one_layer_that_remembers_is_enough():
    """The layers of one module are judged together, other modules by themselves."""
    forgets, remembers = flow_layer(0.1, 60), flow_layer(0.99, 60, layer=1)
    assert _codes(forgets, remembers) == []
    assert _codes(forgets, remembers, needs_lag=50) == []
    assert _codes(forgets, flow_layer(0.99, 60, name="other")) == [("GF101", "warning")]
    assert _codes(forgets, flow_layer(0.99, 60, direction="reverse")) == [("GF101", "warning")]


def test_an_lstm_that_keeps_in_c_what_h_does_not_show_is_well():
    """dL/dh falls at once where the output gate is nearly shut; dL/dc carries the gradient."""
    kept = tuple(-0.01 * distance for distance in range(60))
    layer = flow_layer(0.1, 60, log10_dL_dc=kept, horizon=None)
    assert _codes(layer) == []
    assert _codes(layer, needs_lag=59) == []


def test_a_cut_is_told_as_a_cut_and_not_as_vanishing():
    """Exact zeros from 20 steps before the end on, with 0.5^19 just before them."""
    curve = tuple(math.log10(0.5) * d if d < 20 else None for d in range(60))
    cut = flow_layer(0.5, 60, log10_dL_dh=curve, cut_at=20)
    (finding,) = sample_findings(flow_sample(0, cut))
    assert (finding.code, finding.severity, finding.value) == ("GF103", "warning", 20)
    assert "exactly 0 from 20 steps before the end on" in finding.message
    assert _codes(cut, needs_lag=30) == [("GF103", "error")]
    assert _codes(cut, needs_lag=10) == [("GF103", "info")]


def test_zeros_that_are_no_cut_are_vanishing():
    """A float64 pass reads 0 beyond 10^-500 or so: that is as good as gone."""
    curve = tuple(-10.0 * d if d < 50 else None for d in range(60))
    assert _codes(flow_layer(0.1, 60, log10_dL_dh=curve)) == [("GF101", "warning")]


@pytest.mark.parametrize(
    ("factor", "expected"),
    [(1.05, []), (1.2, [("GF102", "warning")]), (1.5, [("GF102", "error")])],
)
def test_growth_backward_in_time_is_exploding_from_a_thousand_on(factor: float, expected: list):
    """Over 59 steps 1.05 gives 18, 1.2 gives 4.7e4 and 1.5 gives 2.5e10."""
    assert _codes(flow_layer(factor, 60)) == expected


def test_a_loss_at_every_step_is_not_taken_for_explosion():
    """Contributions add up, and below a layer that forgets the late ones are larger."""
    sums = tuple(math.log10(1 + distance) for distance in range(2000))
    assert _codes(_gru(sums, arrives=(0, 1999))) == []
    below = tuple(0.2 * distance for distance in range(60))  # of a reversed direction
    assert _codes(_gru(below, direction="reverse", arrives=(0, 59))) == []


def test_explosion_is_told_against_all_that_entered():
    """A loss at every step whose contributions grow by half a step, and one where they do not."""
    ones = (0.0,) * 60
    total = tuple(math.log10(sum(1.5**lag for lag in range(d + 1))) for d in range(60))
    exploding = _gru(total, arrives=(0, 59), log10_arriving=ones)
    (finding,) = sample_findings(flow_sample(0, exploding))
    assert (finding.code, finding.severity) == ("GF102", "error")
    assert finding.value == pytest.approx(total[-1] - math.log10(60))
    sums = tuple(math.log10(1 + distance) for distance in range(60))
    assert _codes(_gru(sums, arrives=(0, 59), log10_arriving=ones)) == []
    below = tuple(0.2 * distance for distance in range(60))
    assert _codes(_gru(below, arrives=(0, 59), log10_arriving=below)) == []
    late = (None,) * 50 + (0.0,) * 10  # the loss reads the first ten steps alone
    assert _codes(_gru(late, arrives=(50, 59), log10_arriving=late)) == []


def test_growth_counts_from_the_last_step_at_which_the_loss_enters():
    """A loss that weighs an earlier step 10^5 times more does not explode."""
    weighed = tuple(0.0 if distance < 10 else 5.0 for distance in range(60))
    assert _codes(_gru(weighed, arrives=(0, 10))) == []


def test_a_layer_without_any_gradient_is_told():
    """The loss does not depend on it."""
    nothing = _gru((None,) * 4, arrives=None)
    assert _codes(nothing) == [("GF108", "warning")]


def test_the_reversed_half_of_the_last_output_reads_one_step():
    """The gradient stands at the step that a reversed direction reads first, and nowhere else."""
    curve = (None, None, None, 0.0)
    layer = _gru(curve, direction="reverse", arrives=(3, 3))
    assert _codes(layer) == [("GF105", "warning")]


def test_what_is_not_finite_is_told_alone_and_by_its_place():
    """A state and a gradient are GF303, a weight is GF301."""
    broken = BrokenTensor("dL/dc", 17)
    (finding,) = sample_findings(flow_sample(0, flow_layer(0.1, 60, first_non_finite=broken)))
    assert (finding.code, finding.severity, finding.value) == ("GF303", "error", 17)
    assert finding.message == "dL/dc is not finite; on the way back it begins at step 17."
    weight = flow_layer(0.1, 60, first_non_finite=BrokenTensor("weight_hh_l0", 0))
    assert _codes(weight) == [("GF301", "error")]


def test_saturated_gates_are_a_warning_but_for_an_open_keep_gate():
    """A forget gate at 1 remembers, as it was meant to; at 0, or another gate, it is stuck."""
    shares = {"input": 0.95, "forget": 0.95, "output": 0.5}
    layer = flow_layer(0.9, 20, saturated_fraction=shares)
    found = sample_findings(flow_sample(0, layer))
    assert [(f.code, f.gate, f.severity) for f in found] == [
        ("GF204", "input", "warning"),
        ("GF204", "forget", "info"),
    ]
    shut = flow_layer(0.9, 20, saturated_fraction={"forget": 1.0}, gate_means={"forget": 0.01})
    assert _codes(shut) == [("GF204", "warning")]


def test_each_finding_is_told_once_until_it_becomes_graver():
    """A hundred samples of one illness are one finding."""
    memory = FindingMemory()
    samples = [flow_sample(update, flow_layer(1.2, 60)) for update in range(100)]
    told = [finding for sample in samples for finding in memory.new_of(sample)]
    assert [(finding.code, finding.update) for finding in told] == [("GF102", 0)]
    (graver,) = memory.new_of(flow_sample(100, flow_layer(1.5, 60)))
    assert (graver.severity, graver.update) == ("error", 100)
    assert memory.new_of(flow_sample(101, flow_layer(1.2, 60))) == ()


def test_the_calls_of_one_layer_are_one_place_to_tell():
    """An encoder called thirty times in a step has one illness, not thirty."""
    memory = FindingMemory()
    calls = [flow_layer(0.1, 60, call=call, calls=30) for call in range(30)]
    assert len(memory.new_of(flow_sample(0, *calls))) == 1


def test_vanishing_is_told_once_for_a_module_whichever_layer_is_best():
    """From sample to sample another layer may remember a little longer."""
    memory = FindingMemory()
    one, other = flow_layer(0.1, 60), flow_layer(0.2, 60, layer=1)
    assert len(memory.new_of(flow_sample(0, one, other))) == 1
    swapped = (flow_layer(0.2, 60), flow_layer(0.1, 60, layer=1))
    assert memory.new_of(flow_sample(1, *swapped)) == ()


def test_a_cut_is_told_once_for_a_module_and_holds_for_all_its_layers():
    """What is detached is the state of the whole stack, at one place."""
    curve = tuple(-0.1 * d if d < 20 else None for d in range(60))
    layers = [flow_layer(0.9, log10_dL_dh=curve, cut_at=20, layer=n, horizon=None) for n in (0, 1)]
    (told,) = FindingMemory().new_of(flow_sample(0, *layers))
    assert (told.code, told.layer) == ("GF103", "rnn, layer 0")
    assert [verdict(layer, [told]) for layer in layers] == ["cut", "cut"]


def test_a_finding_that_a_log_already_holds_is_not_told_again():
    """A training that is resumed goes on where it was."""
    first = FindingMemory()
    sample = flow_sample(0, flow_layer(0.1, 60))
    resumed = FindingMemory()
    resumed.remember(first.new_of(sample))
    assert resumed.new_of(sample) == ()


def test_a_sample_without_layers_shows_nothing():
    """No recurrent layer ran in that update."""
    assert sample_findings(FlowSample(update=0, layers=())) == ()


def test_an_inspection_and_a_watch_judge_by_the_same_thresholds():
    """One code means one thing."""
    assert vanishing.LOST == inspected_needs.LOST
    mine = (layer_findings.EXPLODING, layer_findings.EXPLODED, layer_findings.SATURATED_SHARE)
    assert mine == (inspected.EXPLODING, inspected.EXPLODED, inspected.SATURATED_SHARE)
