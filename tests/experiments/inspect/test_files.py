"""Files of weights, stored results, and requests that cannot be met."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.errors import CellLoadError, GradflowError, ShapeError
from gradflow.experiments.inspect import inspect
from gradflow.records.inspect import InspectResult
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import draw


def test_a_file_of_weights_is_inspected_alone(tmp_path: Path):
    """Wrapped and prefixed; every layer and direction, on zero and unit random input."""
    torch.manual_seed(0)
    encoder = nn.GRU(4, 6, 2, bidirectional=True)
    weights = {f"module.encoder.{n}": p for n, p in encoder.state_dict().items()}
    path = tmp_path / "model.ckpt"
    torch.save({"state_dict": weights, "epoch": 3}, path)
    result = inspect(path)
    places = [(each.name, each.layer, each.direction) for each in result.layers]
    assert places == [("encoder", k, way) for k in (0, 1) for way in ("forward", "reverse")]
    assert sum(each.parameters for each in result.layers) == 1152
    assert result.layers[0].fused_difference < 1e-12
    assert "give it with --data" in result.verdict[2]


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_file_is_run_on_data_with_lengths_in_either_layout(tmp_path: Path, batch_first: bool):
    """The number of lengths tells which axis is the batch; a curve ends where its sample does."""
    torch.manual_seed(0)
    torch.save(nn.LSTM(3, 5, bidirectional=True).state_dict(), tmp_path / "weights.pt")
    x = draw(3, 12, 3) if batch_first else draw(12, 3, 3)
    result = inspect(tmp_path / "weights.pt", {"x": x, "lengths": torch.tensor([12, 5, 2])})
    for layer in result.layers:
        assert layer.lag[-1] == 12
        assert layer.windows[0] == 8  # of 2 steps there are no three to begin at
        assert layer.windows[-1] == 1


def test_a_result_comes_back_from_its_document():
    """What is stored is the whole of it."""
    result = inspect(models.Classifier(), (draw(6, 12, 3), torch.ones(6).long()))
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    again = InspectResult.from_json(document).to_json()
    assert json.loads(json.dumps(again)) == document
    layer = document["results"]["layers"][0]
    asked = {"name", "kind", "layer", "direction", "input_size", "hidden_size", "projection",
             "parameters", "gates", "lag", "log10_norm", "direct_log10_norm", "half_life",
             "horizon", "lyapunov", "log10_dL_dh", "log10_dL_dc"}  # fmt: skip
    assert asked <= set(layer)
    assert set(layer["gates"]) == {"input", "forget", "output"}
    assert {"effective_bias_mean", "value_mean", "value_min", "value_max",
            "saturated_fraction"} <= set(layer["gates"]["forget"])  # fmt: skip


def test_what_cannot_be_inspected_says_why():
    """No recurrent layer; a batch that does not fit; a loss that does not fit."""
    with pytest.raises(CellLoadError, match="no recurrent layer"):
        inspect(nn.Linear(2, 2))
    with pytest.raises(CellLoadError, match="fails on inputs"):
        inspect(models.Classifier(), draw(4, 5, 7))
    with pytest.raises(ShapeError, match="one number"):
        inspect(models.Classifier(), draw(4, 5, 3), loss=lambda output: output)
    with pytest.raises(GradflowError, match="one of a few names"):
        inspect(models.Classifier(), (draw(4, 5, 3), draw(4, 2)), loss="hinge")
    with pytest.raises(GradflowError, match="compares with targets"):
        inspect(models.Classifier(), draw(4, 5, 3), loss="mse")
