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
from tests.experiments.inspect.looks import draw, one


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


@pytest.mark.parametrize("key", ["X", "inputs"])
def test_a_file_is_run_on_data_whose_targets_tell_the_layout(tmp_path: Path, key: str):
    """Six targets of six samples, whatever case the key has; nothing is left to be said of it."""
    torch.manual_seed(0)
    torch.save(nn.LSTM(3, 5).state_dict(), tmp_path / "weights.pt")
    result = inspect(tmp_path / "weights.pt", {key: draw(6, 20, 3), "y": draw(6, 2)})
    assert result.layers[0].lag[-1] == 20
    assert not any("--layout" in note for note in result.notes)


def test_a_layout_that_nothing_tells_is_said(tmp_path: Path):
    """Time is taken first, as torch's layers have it; the other way is one option away."""
    torch.save(nn.LSTM(3, 5).state_dict(), tmp_path / "weights.pt")
    result = inspect(tmp_path / "weights.pt", draw(6, 20, 3))
    assert result.layers[0].lag[-1] == 6
    assert any("6 steps of 20 samples" in note and "--layout" in note for note in result.notes)
    said = inspect(tmp_path / "weights.pt", draw(6, 20, 3), layout="batch_first")
    assert said.layers[0].lag[-1] == 20
    assert not any("--layout" in note for note in said.notes)


def test_data_that_are_not_finite_are_not_the_layers_fault(tmp_path: Path):
    """The finding names what is read, not only the state that it spoils."""
    torch.save(nn.GRU(3, 5).state_dict(), tmp_path / "weights.pt")
    x = draw(20, 6, 3)
    x[7, 2, 1] = float("nan")
    message = one(inspect(tmp_path / "weights.pt", x), "GF303").message
    assert message.startswith("What the layer reads at step 7 is not finite")


def test_the_headline_is_the_longest_memory_that_is_known(tmp_path: Path):
    """A decoder of 5 steps that does not forget within them is no longer than what is measured."""
    long, short = nn.GRU(3, 8), nn.GRU(4, 8)
    weights = {
        f"{n}.{k}": v for n, m in (("a", short), ("b", long)) for k, v in m.state_dict().items()
    }
    torch.save(weights, tmp_path / "weights.pt")
    result = inspect(tmp_path / "weights.pt", draw(5, 6, 4), layout="time_first")
    assert [each.horizon is None for each in result.layers] == [True, False]
    assert "(b, layer 0" in result.verdict[1]


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
