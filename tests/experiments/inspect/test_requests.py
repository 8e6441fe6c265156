"""What is asked of an inspection: nothing is ignored in silence, and nothing found is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.errors import RequestError
from gradflow.experiments.inspect import run_inspect
from gradflow.experiments.inspect.report import key_of, known_keys
from gradflow.records.inspect import Finding, InspectResult
from gradflow.settings.inspect import InspectSettings
from tests.experiments.inspect.looks import FINE, codes


@pytest.fixture
def weights(tmp_path: Path) -> str:
    """A default LSTM, which forgets within 18 steps, and a plain RNN."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"lstm": nn.LSTM(3, 6), "rnn": nn.RNN(3, 6)})
    torch.save(model.state_dict(), tmp_path / "model.pt")
    return str(tmp_path / "model.pt")


def run(file: str | None, **asked: object) -> InspectResult:
    """Inspect a file for a few steps."""
    return run_inspect(InspectSettings(**{"file": file, "steps": 12, **asked}))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"select": ("GF999",)}, "no 'GF999'"),
        ({"ignore": ("vanishing",)}, "--ignore takes the codes"),
        ({"window": 5}, "--window cuts up a series"),
        ({"target": "price"}, "no --data"),
        ({"loss": "mse"}, "no --data"),
        ({"loss": "mse", "data": "x.npy"}, "holds no model"),
        ({"checkpoint": "other.pt"}, "one file of weights"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(weights: str, asked: dict, message: str):
    """The flag, why, and what came."""
    with pytest.raises(RequestError, match=message):
        run(weights, **asked)


def test_weights_by_their_flag_alone_are_a_file(weights: str):
    """`--checkpoint model.pt` without a module is `model.pt`."""
    assert [layer.name for layer in run(None, checkpoint=weights).layers] == ["lstm", "rnn"]


def test_what_was_left_out_is_no_praise(weights: str):
    """A model whose faults were not asked for is not called fine; codes go in either case."""
    assert "GF101" in codes(run(weights, needs_lag=60))
    for asked in ({"ignore": ("gf101",)}, {"select": ("gf2",)}):
        result = run(weights, needs_lag=60, **asked)
        assert codes(result) == set()
        assert result.passed
        assert FINE not in result.verdict[0]
        assert "2 findings of others" in result.verdict[0]
    assert FINE in run(weights, ignore=("GF101",)).verdict[0]


def test_a_plain_rnns_nonlinearity_is_taken_as_said(weights: str):
    """No weight tells tanh from relu: it is said that tanh was taken, and which flag changes it."""
    assumed = run(weights).layers[1]
    assert any("unless --nonlinearity says relu" in note for note in assumed.notes)
    said = run(weights, nonlinearity="relu").layers[1]
    assert not any("nonlinearity" in note for note in said.notes)
    assert said.log10_norm != assumed.log10_norm
    assert said.fused_difference < 1e-12


def finding(severity: str) -> Finding:
    """A finding at one place, of some severity."""
    return Finding("GF101", severity, "rnn, layer 0", "forward", "forget", 5.0, "It is.", "Open.")


def test_a_baseline_forgives_what_was_no_less_grave():
    """What was information or a warning, and is an error now, is new."""
    assert key_of(finding("warning")) in known_keys([finding("error")])
    assert key_of(finding("error")) not in known_keys([finding("warning")])
    assert known_keys([finding("info")]) == frozenset()
