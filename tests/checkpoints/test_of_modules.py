"""The layers of a live model are float64 cells, in the same form as those of its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.cells import GRU
from gradflow.checkpoints import find_modules, layers_of_model, load_layers
from tests.checkpoints.user_modules import Gated, Louder, Scripted
from tests.checkpoints.weight_files import Part, assert_is_layer_of, parameters_of, translator


def test_names_are_those_of_the_file(tmp_path: Path) -> None:
    """A model and its own checkpoint speak of the same layers, and hold the same numbers."""
    model = nn.DataParallel(translator())
    torch.save(model.state_dict(), tmp_path / "model.pt")
    from_file = load_layers(tmp_path / "model.pt")
    from_model = layers_of_model(model, find_modules(model)).layers
    places = [
        [(x.name, x.layer, x.direction, x.parameters) for x in f] for f in (from_file, from_model)
    ]
    assert places[0] == places[1]
    for one, other in zip(from_file, from_model, strict=True):
        mine, theirs = parameters_of(one.cell), parameters_of(other.cell)
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_weights_of_torchs_names_are_found_in_any_module() -> None:
    """It is no cell in torch's call form, but its weights are an LSTM's; that is said."""
    model = nn.ModuleDict({"cell": Scripted(), "other": Gated()})
    result = layers_of_model(model, find_modules(model))
    assert [(layer.name, layer.kind) for layer in result.layers] == [
        ("other", "Gated"),
        ("cell", "lstm"),
    ]
    assert result.unread == ()
    assert any("not the module's own" in note for note in result.layers[1].notes)


def test_a_live_rnn_tells_its_squashing() -> None:
    """The module knows what a file does not."""
    model = nn.RNN(3, 4, nonlinearity="relu")
    [layer] = layers_of_model(model, find_modules(model)).layers
    assert layer.cell.nonlinearity == "relu"  # type: ignore[attr-defined]
    assert not any("tanh or relu" in note for note in layer.notes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_layers_of_a_model_are_in_float64(dtype: torch.dtype) -> None:
    """Whatever the model computes in; that is said, and the model keeps its own."""
    model = nn.ModuleDict({"rnn": nn.GRU(3, 4), "mine": Gated(), "ours": GRU(3, 4)}).to(dtype)
    layers = layers_of_model(model, find_modules(model)).layers
    assert [layer.cell.dtype for layer in layers] == [torch.float64] * 3
    assert {layer.dtype for layer in layers} == {str(dtype).removeprefix("torch.")}
    assert all(any("computed in float64" in note for note in layer.notes) for layer in layers)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_a_users_cell_steps_as_it_did() -> None:
    """The layer's cell is the user's module, in float64."""
    model = Part("cell", Gated().double())
    [layer] = layers_of_model(model, find_modules(model)).layers
    x, h = torch.randn(2, 3).double(), torch.randn(2, 4).double()
    with torch.no_grad():
        assert torch.equal(layer.cell.step(x, (h,)).state[0], model.cell(x, h))
    assert (layer.input_size, layer.hidden_size, layer.parameters) == (3, 4, 64)


def test_a_subclass_of_torchs_layer_is_measured_as_torchs() -> None:
    """What the subclass adds is not seen, and that is said."""
    model = Louder(3, 4)
    [layer] = layers_of_model(model, find_modules(model)).layers
    assert_is_layer_of(layer, model)
    assert any("Louder is a user's subclass" in note for note in layer.notes)
