"""`gradflow spectrum --checkpoint`: the exponents of a layer that a file of weights holds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.cells import LSTM
from gradflow.checkpoints import from_torch
from gradflow.engine import lyapunov_spectrum
from gradflow.errors import CheckpointError, SettingError, UnknownNameError
from gradflow.experiments.spectrum import run_spectrum
from gradflow.experiments.spectrum_subjects import spectrum_subject
from gradflow.records.spectrum import SpectrumResult
from gradflow.settings.spectrum import SpectrumSettings

SMALL = {"steps": 60, "warmup": 20}


def run(**settings: object) -> SpectrumResult:
    """Run a short spectrum."""
    return run_spectrum(SpectrumSettings(**{**SMALL, **settings}))


def test_a_file_of_weights_is_measured_as_its_cell_is(tmp_path: Path):
    """The exponents of the very layer, by the same reader as an inspection's; half is computed."""
    torch.manual_seed(0)
    layer = nn.LSTM(2, 4, bidirectional=True)
    path = tmp_path / "model.pt"
    torch.save({"state_dict": {f"module.rnn.{n}": p for n, p in layer.state_dict().items()}}, path)
    result = run(checkpoint=str(path), layer="rnn.l0_reverse", start="zero", input="random")
    cell = from_torch(layer.double())[1]
    assert isinstance(cell, LSTM)
    subject = spectrum_subject(
        SpectrumSettings(
            checkpoint=str(path), layer="l0_reverse", start="zero", input="random", **SMALL
        )
    )
    right = lyapunov_spectrum(cell, cell.initial_state(1), subject.x, None, SMALL["warmup"])
    assert result.exponents.tolist() == pytest.approx(right.exponents.tolist())
    assert result.cell == "model.pt: rnn.l0_reverse"
    assert result.gain is None
    assert "Stored in float32, computed in float64." in result.notes[0]


def test_which_layer_of_a_file_must_be_said_where_there_are_several(tmp_path: Path):
    """The message has the names; a layer without a file, and NaN weights, are refused."""
    path = tmp_path / "model.pt"
    torch.save(nn.GRU(2, 4, num_layers=2).state_dict(), path)
    with pytest.raises(UnknownNameError, match=r"2 layers: gru.l0, gru.l1. Say which by --layer"):
        run(checkpoint=str(path))
    with pytest.raises(UnknownNameError, match=r"no layer 'gru.l2'"):
        run(checkpoint=str(path), layer="gru.l2")
    assert run(checkpoint=str(path), layer="l1").cell == "model.pt: gru.l1"
    with pytest.raises(SettingError, match="no --checkpoint"):
        run(layer="l1")
    with pytest.raises(SettingError, match="has its own"):
        run(checkpoint=str(path), layer="l1", networks=2)
    torch.save({"weight_ih": torch.full((4, 2), math.nan), "weight_hh": torch.ones(4, 4)}, path)
    with pytest.raises(CheckpointError, match="has 8 NaN"):
        run(checkpoint=str(path))
