"""What is right is left alone, and the user's model is not touched."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.experiments.inspect import inspect
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import FINE, codes, draw, one

HEALTHY = [
    (nn.LSTM(3, 8), None, None),
    (nn.GRU(3, 8, 2, bidirectional=True), None, None),
    (nn.LSTM(3, 8, proj_size=2), draw(12, 4, 3), None),
    (models.Classifier("RNN"), (draw(6, 8, 3), torch.tensor([0, 1, 0, 1, 1, 0])), None),
    (models.Classifier(), (draw(6, 12, 3), torch.tensor([0, 1, 0, 1, 1, 0])), "cross_entropy"),
    (models.Forecaster(right=True), (draw(5, 8, 3), draw(5, 1)), "mse"),
    (models.Padded(packed=True), draw(3, 12, 3), lambda output: output.sum()),
    (models.Truncated(None), (draw(5, 10, 3), torch.tensor([0, 1, 0, 1, 1])), None),
    (models.Tagger(), (torch.arange(60).reshape(4, 15) % 20, torch.ones(4, 15).long()), None),
    (models.OwnNet(), draw(10, 4, 3), lambda output: output.sum()),
    (models.held_lstm(0.99), draw(60, 4, 4), lambda answer: answer[1][0].sum()),
]


@pytest.mark.parametrize(("model", "batch", "loss"), HEALTHY)
def test_a_healthy_model_gets_no_warning_and_is_sent_elsewhere(model, batch, loss):
    """Fused or stepped, packed or not, its own cell or torch's: nothing to say but how long."""
    result = inspect(model, batch, loss=loss)
    assert codes(result) == set()
    assert result.healthy
    assert result.passed
    assert FINE in result.verdict[0]
    assert len(result.verdict) == 3


def test_an_untrained_lstm_has_a_horizon_of_about_eighteen_steps_and_is_not_ill():
    """Its forget gates are near 0.5 and its candidate adds a little; information, no warning."""
    result = inspect(nn.LSTM(8, 64), draw(60, 4, 8))
    assert 14 < result.layers[0].horizon < 24
    assert one(result, "GF100").severity == "info"


def test_the_users_model_is_not_touched():
    """Its weights, mode, forward and gradients are as before."""
    model = models.Tagger().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    inspect(model, (torch.arange(20).reshape(2, 10), torch.ones(2, 10).long()))
    assert model.training
    assert "forward" not in vars(model.rnn)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.get_default_dtype() == torch.float32


def test_dropout_is_off_and_said_so():
    """A dropped unit is no finding."""
    result = inspect(models.Tagger(), torch.arange(20).reshape(2, 10))
    assert "Dropout is off while this is measured." in result.notes


def test_what_stands_around_a_layer_is_told():
    """An embedding before it, a head after it, as registered; a layer alone has neither."""
    layer = inspect(models.Tagger(), torch.arange(20).reshape(2, 10)).layers[0]
    assert (layer.before, layer.after) == ("embedding (Embedding)", "head (Linear)")
    alone = inspect(nn.GRU(3, 4), draw(5, 2, 3)).layers[0]
    assert (alone.before, alone.after) == (None, None)
