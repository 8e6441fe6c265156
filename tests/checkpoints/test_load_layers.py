"""A file of weights alone tells every recurrent layer in it: kind, widths, layers, directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import ForeignCell, Stack
from gradflow.checkpoints import FoundLayer, load_checkpoint, load_layers
from gradflow.errors import UnknownNameError
from tests.checkpoints.weight_files import (
    FORMATS,
    TRANSLATOR,
    assert_is_layer_of,
    parameters_of,
    save_npz,
    save_safetensors,
    translator,
)


def save(tmp_path: Path, content: Any, name: str = "model.pt") -> Path:
    """Save something in the format that its name asks for, and return the file."""
    FORMATS.get(name, torch.save)(content, tmp_path / name)
    return tmp_path / name


def summary(path: Path) -> list[tuple[object, ...]]:
    """Return what was found in a file, a line for each module."""
    return [
        (m.name, m.kind, m.input_size, m.hidden_size, m.num_layers, m.bidirectional, m.parameters)
        for m in load_checkpoint(path).modules
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_layers(tmp_path: Path, name: str) -> None:
    """The ending and the format change nothing of what is found."""
    model = translator()
    path = save(tmp_path, model.state_dict(), name)
    assert sorted(summary(path)) == sorted(TRANSLATOR)  # .safetensors sorts by name
    for found in load_layers(path):
        assert_is_layer_of(found, model.get_submodule(found.name))


def test_the_format_goes_by_the_content(tmp_path: Path) -> None:
    """A .safetensors or .npz that was named .pt is read all the same."""
    state = translator().state_dict()
    for write in (save_safetensors, save_npz):
        write(state, tmp_path / "model.pt")
        assert sorted(summary(tmp_path / "model.pt")) == sorted(TRANSLATOR)


def test_the_old_format_of_torch_is_read(tmp_path: Path) -> None:
    """Files from before torch 1.6 are pickles one after the other, and hold tensors too."""
    path = tmp_path / "model.pt"
    torch.save(translator().state_dict(), path, _use_new_zipfile_serialization=False)
    assert summary(path) == TRANSLATOR


LAYERS: dict[str, tuple[nn.Module, str]] = {
    "lstm": (nn.LSTM(3, 4), "lstm"),
    "gru": (nn.GRU(3, 4), "gru"),
    "rnn": (nn.RNN(3, 4), "rnn"),
    "one unit": (nn.LSTM(1, 1), "lstm"),
    "as wide as its input": (nn.GRU(4, 4), "gru"),
    "no bias": (nn.LSTM(3, 4, bias=False), "lstm"),
    "two layers": (nn.GRU(3, 4, num_layers=2), "gru"),
    "eleven layers": (nn.RNN(3, 2, num_layers=11), "rnn"),
    "both ways": (nn.LSTM(3, 4, num_layers=3, bidirectional=True), "lstm"),
    "projection": (nn.LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True), "lstm"),
    "lstm cell": (nn.LSTMCell(3, 4), "lstm"),
    "gru cell": (nn.GRUCell(3, 4, bias=False), "gru"),
    "rnn cell": (nn.RNNCell(3, 4), "rnn"),
}


@pytest.mark.parametrize("case", LAYERS)
def test_shapes_tell_what_a_layer_is(tmp_path: Path, case: str) -> None:
    """Kind, widths, projection, bias, layers and directions follow from names and shapes."""
    layer, kind = LAYERS[case]
    found = load_layers(save(tmp_path, layer.state_dict()))
    ways = ["forward", "reverse"] if getattr(layer, "bidirectional", False) else ["forward"]
    depth = getattr(layer, "num_layers", 1)
    places = [(level, way) for level in range(depth) for way in ways]
    assert [(each.layer, each.direction) for each in found] == places
    for each in found:
        assert (each.name, each.kind, each.hidden_size) == (kind, kind, layer.hidden_size)
        assert each.bias == layer.bias
        assert each.projection == (getattr(layer, "proj_size", 0) or None)
        assert (each.layers, each.directions) == (depth, len(ways))
        assert_is_layer_of(each, layer)
    assert found[0].input_size == layer.input_size
    assert sum(each.parameters for each in found) == sum(p.numel() for p in layer.parameters())


def run_cells(found: list[FoundLayer], x: Tensor) -> Tensor:
    """Return the output of a module's cells, layer upon layer."""
    stack = Stack([each.cell for each in found], bidirectional=found[0].directions == 2)
    with torch.no_grad():
        output, _ = stack(x)
    return output


@pytest.mark.parametrize("case", ["lstm", "gru", "rnn", "no bias", "both ways", "projection"])
def test_the_cells_compute_what_the_layer_computed(tmp_path: Path, case: str) -> None:
    """Stacked on each other they give the fused layer's output, to float64's rounding."""
    layer = LAYERS[case][0]
    x = torch.randn(6, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = type(layer)(**options_of(layer)).double()
        wanted.load_state_dict(layer.state_dict())
        output = wanted(x)[0]
    found = load_layers(save(tmp_path, layer.state_dict()))
    torch.testing.assert_close(run_cells(found, x), output, rtol=1e-12, atol=1e-13)


def options_of(layer: nn.Module) -> dict[str, Any]:
    """Return the arguments that make a layer of the same form."""
    assert isinstance(layer, nn.RNNBase)
    names = ("input_size", "hidden_size", "num_layers", "bias", "bidirectional", "proj_size")
    options = {name: getattr(layer, name) for name in names}
    if not isinstance(layer, nn.LSTM):
        del options["proj_size"]
    return options


def test_tanh_or_relu_is_in_no_weight(tmp_path: Path) -> None:
    """A plain RNN's squashing is assumed and said; who knows it may say it."""
    path = save(tmp_path, nn.RNN(3, 4, nonlinearity="relu").state_dict())
    [unsure] = load_layers(path)
    assert any("tanh or relu is not in its weights" in note for note in unsure.notes)
    [sure] = load_layers(path, nonlinearity="relu")
    assert sure.cell.nonlinearity == "relu"  # type: ignore[attr-defined]
    assert not any("relu" in note for note in sure.notes)
    with pytest.raises(UnknownNameError, match="Did you mean 'relu'"):
        load_layers(path, nonlinearity="rleu")  # type: ignore[arg-type]


HALVES = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_any_precision_is_read_and_said(tmp_path: Path, dtype: torch.dtype) -> None:
    """Weights are computed with in float64; what they were stored in is told."""
    layer = nn.LSTM(3, 4)
    state = {name: tensor.to(dtype) for name, tensor in layer.state_dict().items()}
    [found] = load_layers(save(tmp_path, state))
    assert found.dtype == str(dtype).removeprefix("torch.")
    assert f"Stored in {found.dtype}, computed in float64." in found.notes
    stored = state["weight_hh_l0"].double()
    assert torch.equal(parameters_of(found.cell)["weight_hh"], stored)


def test_bfloat16_is_read_from_safetensors(tmp_path: Path) -> None:
    """It is the dtype that .safetensors of large models have."""
    state = {n: t.bfloat16() for n, t in nn.GRU(3, 4).state_dict().items()}
    [found] = load_layers(save(tmp_path, state, "model.safetensors"))
    assert found.dtype == "bfloat16"


def test_float64_needs_no_remark(tmp_path: Path) -> None:
    """A file in float64 with plain names is taken as it is."""
    [found] = load_layers(save(tmp_path, nn.LSTM(3, 4).double().state_dict()))
    assert found.notes == ()
    assert found.rebuilt == {}


def test_one_bias_vector_is_enough(tmp_path: Path) -> None:
    """A cell that somebody wrote with one bias vector has a zero for the other."""
    cell = nn.LSTMCell(3, 4)
    state = {"cell.weight_ih": cell.weight_ih, "cell.weight_hh": cell.weight_hh}
    [found] = load_layers(save(tmp_path, state | {"cell.bias": cell.bias_ih}))
    weights = parameters_of(found.cell)
    assert found.bias
    assert not weights["bias_hh"].any()
    assert torch.equal(weights["bias_ih"], cell.bias_ih.detach().double())
    assert any("one bias vector" in note for note in found.notes)


def test_turned_matrices_are_turned_back(tmp_path: Path) -> None:
    """Who stores (input, 4 hidden), as the product x @ W needs it, is understood."""
    state = nn.LSTM(3, 4).state_dict()
    turned = {n: t.mT if "weight" in n else t for n, t in state.items()}
    [found] = load_layers(save(tmp_path, turned))
    assert torch.equal(parameters_of(found.cell)["weight_ih"], state["weight_ih_l0"].double())
    assert any("turned" in note for note in found.notes)


def test_reading_draws_no_random_numbers(tmp_path: Path) -> None:
    """torch's global generator is where it was, so a seeded experiment does not change."""
    path = save(tmp_path, nn.LSTM(3, 4, proj_size=2).state_dict())
    before = torch.get_rng_state()
    load_layers(path)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_projected_lstm_is_a_cell_with_two_widths(tmp_path: Path) -> None:
    """h is as wide as the projection, c as the hidden size."""
    [found] = load_layers(save(tmp_path, nn.LSTM(3, 4, proj_size=2).state_dict()))
    assert isinstance(found.cell, ForeignCell)
    assert found.cell.part_sizes == (2, 4)
    assert (found.projection, found.shown_size) == (2, 2)
