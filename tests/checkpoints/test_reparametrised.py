"""Weights that are stored as something else give the matrix that the network used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from gradflow.checkpoints import FoundLayer, find_modules, layers_of_model, load_layers
from gradflow.errors import CheckpointError
from tests.checkpoints.weight_files import assert_is_layer_of, parameters_of

Change = Callable[[nn.Module, str], object]


def old_weight_norm(layer: nn.Module, name: str, dim: int | None = 0) -> None:
    """Norm a weight as torch did before its parametrizations."""
    nn.utils.weight_norm(layer, name, dim)
    with torch.no_grad():
        dict(layer.named_parameters())[f"{name}_g"].mul_(1.5)


def new_weight_norm(layer: nn.Module, name: str, dim: int = 0) -> None:
    """Norm a weight as torch does now."""
    parametrizations.weight_norm(layer, name, dim)
    with torch.no_grad():
        dict(layer.named_parameters())[f"parametrizations.{name}.original0"].mul_(1.5)


def orthogonal(layer: nn.Module, name: str, orthogonal_map: str | None = None) -> None:
    """Make a weight orthogonal, and move it as training would."""
    parametrizations.orthogonal(layer, name, orthogonal_map)
    with torch.no_grad():
        original = dict(layer.named_parameters())[f"parametrizations.{name}.original"]
        original.add_(0.1 * torch.ones_like(original).tril(-1))


CHANGES: dict[str, tuple[Change, str]] = {
    "weight norm, old": (old_weight_norm, "weight norm"),
    "weight norm, old, by columns": (lambda m, n: old_weight_norm(m, n, 1), "weight norm"),
    "weight norm, old, whole": (lambda m, n: old_weight_norm(m, n, None), "weight norm"),
    "weight norm": (new_weight_norm, "weight norm"),
    "weight norm, by columns": (lambda m, n: new_weight_norm(m, n, 1), "weight norm"),
    "spectral norm, old": (nn.utils.spectral_norm, "spectral norm, as in evaluation mode"),
    "spectral norm": (parametrizations.spectral_norm, "spectral norm, as in evaluation mode"),
    "orthogonal": (orthogonal, "orthogonal"),
    "orthogonal, without a base": (
        lambda m, n: parametrizations.orthogonal(m, n, "householder", use_trivialization=False),
        "orthogonal",
    ),
    "pruned": (lambda m, n: prune.l1_unstructured(m, n, 0.5), "pruning"),
}
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True),
    "gru": lambda: nn.GRU(3, 4),
    "rnn": lambda: nn.RNN(3, 4),
    "cell": lambda: nn.LSTMCell(3, 4),
    "projected": lambda: nn.LSTM(3, 4, proj_size=2),
}
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's advice to use the new forms


def changed(kind: str, change: Change) -> tuple[nn.Module, str]:
    """Return a layer one of whose recurrent weights is reparametrised, after it ran, and which."""
    name = "weight_hh" if kind == "cell" else "weight_hh_l0"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        layer = LAYERS[kind]()
        change(layer, name)
    layer.eval()
    with torch.no_grad():
        layer(torch.ones(2, 3) if kind == "cell" else torch.ones(5, 2, 3))
    return layer, name


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("case", CHANGES)
def test_the_effective_matrix_is_rebuilt(tmp_path: Path, kind: str, case: str) -> None:
    """From the file alone it is the matrix that torch computes with, to float32's rounding."""
    change, how = CHANGES[case]
    layer, _ = changed(kind, change)
    torch.save(layer.state_dict(), tmp_path / "model.pt")
    found = load_layers(tmp_path / "model.pt")
    for each in found:
        assert_is_layer_of(each, layer)
    assert found[0].rebuilt == {"weight_hh": how}
    assert any(
        f"weight_hh is computed from what is stored of it: {how}" in n for n in found[0].notes
    )
    plain = sum(p.numel() for p in LAYERS[kind]().parameters())
    assert sum(each.parameters for each in found) == plain


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("case", CHANGES)
def test_a_live_module_gives_the_same_matrix(kind: str, case: str) -> None:
    """As evaluation mode computes it; the module is left as it was, in training mode too."""
    layer, _ = changed(kind, CHANGES[case][0])
    model = nn.ModuleDict({"part": layer})
    wanted = [parameters_of(each.cell) for each in found_in(model)]
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = found_in(model)
    for each, weights in zip(found, wanted, strict=True):
        assert_is_layer_of(each, layer.eval())
        layer.train()
        for name, value in parameters_of(each.cell).items():
            assert torch.equal(value, weights[name])
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)
    assert all(part.training for part in model.modules())


def found_in(model: nn.Module) -> tuple[FoundLayer, ...]:
    """Return the layers of a live model."""
    return layers_of_model(model, find_modules(model)).layers


class DroppedWeights(nn.Module):
    """Dropout of a recurrent weight in the way of AWD-LSTM: the raw one beside the layer.

    The layer's own weight is what dropout left of it in the last call.
    """

    def __init__(self, layer: nn.LSTM) -> None:
        super().__init__()
        self.module = layer
        raw = layer.weight_hh_l0.detach().clone()
        self.weight_hh_l0_raw = nn.Parameter(raw)
        with torch.no_grad():
            layer.weight_hh_l0.mul_(0.0)


@pytest.mark.parametrize("keep_dropped", [True, False])
def test_the_raw_weight_goes_before_the_dropped_one(tmp_path: Path, keep_dropped: bool) -> None:
    """Files have the raw weight, with or without the dropped one under `module.`."""
    layer = nn.LSTM(3, 4)
    raw = layer.weight_hh_l0.detach().double()
    model = nn.ModuleDict({"rnn": DroppedWeights(layer)})
    state = model.state_dict()
    if not keep_dropped:
        del state["rnn.module.weight_hh_l0"]
    torch.save(state, tmp_path / "model.pt")
    [found] = load_layers(tmp_path / "model.pt")
    assert (found.name, found.kind) == ("rnn", "lstm")
    assert torch.equal(parameters_of(found.cell)["weight_hh"], raw)
    assert found.rebuilt == {"weight_hh": "dropped weights, without dropping"}
    assert found.stored["weight_ih"] == "rnn.module.weight_ih_l0"


def test_dropped_weights_of_a_live_module() -> None:
    """There too the raw one is what the network has learned."""
    layer = nn.LSTM(3, 4)
    raw = layer.weight_hh_l0.detach().double()
    [found] = found_in(nn.ModuleDict({"rnn": DroppedWeights(layer)}))
    assert found.name == "rnn"
    assert torch.equal(parameters_of(found.cell)["weight_hh"], raw)


def test_a_stale_normed_weight_is_not_believed() -> None:
    """After new weights were loaded, the old weight norm's attribute waits for the next call."""
    layer = nn.GRU(3, 4)
    old_weight_norm(layer, "weight_hh_l0")
    layer(torch.ones(5, 2, 3))
    state = {name: 2 * tensor for name, tensor in layer.state_dict().items()}
    layer.load_state_dict(state)
    [found] = found_in(layer)
    layer(torch.ones(5, 2, 3))
    assert_is_layer_of(found, layer)


def test_which_orthogonal_map_it_was_is_not_in_the_file(tmp_path: Path) -> None:
    """For a square matrix torch has three; the usual one is taken, and that is said."""
    layer, _ = changed("rnn", lambda m, n: orthogonal(m, n, "cayley"))
    torch.save(layer.state_dict(), tmp_path / "model.pt")
    [found] = load_layers(tmp_path / "model.pt")
    weight = parameters_of(found.cell)["weight_hh"]
    eye = torch.eye(4, dtype=torch.float64)
    # orthogonal as nearly as the float32 base in the file is
    torch.testing.assert_close(weight @ weight.mT, eye, rtol=0, atol=1e-5)
    assert any("matrix_exp, is taken" in note for note in found.notes)


class Doubled(nn.Module):
    """A parametrization of a user's own."""

    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


@pytest.mark.parametrize("own_tensor", [False, True])
def test_a_parametrization_of_ones_own_needs_the_module(tmp_path: Path, own_tensor: bool) -> None:
    """The file has the numbers but not the function; the module has both."""
    layer = nn.GRU(3, 4)
    function = Doubled()
    if own_tensor:
        function.register_buffer("scale", torch.ones(1))
    nn.utils.parametrize.register_parametrization(layer, "weight_hh_l0", function)
    torch.save(layer.state_dict(), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"parametrized by a function.*--model file\.py"):
        load_layers(tmp_path / "model.pt")
    [found] = found_in(layer)
    assert_is_layer_of(found, layer)
    assert any("computed by a parametrization (Doubled)" in note for note in found.notes)


def test_a_row_without_direction_is_not_finite(tmp_path: Path) -> None:
    """Weight norm divides by the norm of v; where v is zero there is no weight."""
    layer = nn.GRU(3, 4)
    old_weight_norm(layer, "weight_hh_l0")
    state = layer.state_dict()
    state["weight_hh_l0_v"][2] = 0.0
    torch.save(state, tmp_path / "model.pt")
    [found] = load_layers(tmp_path / "model.pt")
    assert [(each.nans, each.first) for each in found.nonfinite] == [(4, (2, 0))]
