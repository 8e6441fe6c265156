"""The record of a watched training: strict JSON out, the same record back."""

from __future__ import annotations

import json
import math

from gradflow.records.watch import BrokenTensor, FlowFinding, FlowSample, WatchRun
from tests.data.watched_runs import flow_layer, flow_sample, improving_run


def test_a_sample_comes_back_from_strict_json_as_it_was():
    """Every field survives, with nested ones and those that are absent."""
    found = BrokenTensor(tensor="dL/dc", step=3)
    layer = flow_layer(
        0.5, 4, first_non_finite=found, cut_at=2, notes=("one mask",), call=1, calls=2
    )
    plain = flow_layer(1.1, 3, kind="rnn", log10_dL_dc=None, arrives=None)
    sample = flow_sample(7, layer, plain, loss_scale=65536.0, notes=("a note",))
    text = json.dumps(sample.to_json(), allow_nan=False)
    assert FlowSample.from_json(json.loads(text)) == sample


def test_a_number_that_is_not_finite_is_null():
    """A gradient of zero has no logarithm, and strict JSON has no infinity."""
    layer = flow_layer(0.5, 3, log10_dL_dh=(0.0, math.nan, -math.inf), horizon=math.inf)
    document = layer.to_json()
    assert document["log10_dL_dh"] == [0.0, None, None]
    assert document["horizon"] is None


def test_a_run_comes_back_from_its_document():
    """Samples, findings with their updates, settings and provenance."""
    finding = FlowFinding(
        "GF101", "error", "rnn, layer 0", "forward", None, 3.0, "m", "a", update=5
    )
    run = improving_run(3)
    run = WatchRun(samples=run.samples, findings=(finding,), config={"every": 2}, notes=("cut",))
    document = json.loads(json.dumps(run.to_json(), allow_nan=False))
    assert document["schema"] == "gradflow/watch/1"
    assert WatchRun.from_json(document) == run


def test_places_stand_in_order_and_each_has_its_own_profiles():
    """Two layers over three samples are two places with three profiles each."""
    run = improving_run(3)
    assert run.places == (("rnn", 0, "forward", 0), ("rnn", 1, "forward", 0))
    assert [update for update, _ in run.of(run.places[1])] == [0, 100, 200]
    assert {layer.layer for _, layer in run.of(run.places[1])} == {1}


def test_a_label_names_the_call_from_the_second_on():
    """An unnamed module, as when the model itself is an nn.LSTM, has no name before its layer."""
    assert flow_layer().label == flow_layer().title == "rnn, layer 0"
    assert flow_layer(name="", call=1, calls=2).label == "layer 0, call 2"
    assert flow_layer(name="", call=1, calls=2).title == "layer 0"
