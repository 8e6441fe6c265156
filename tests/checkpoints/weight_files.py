"""Models to be saved, ways to save them, and what should be found of them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from gradflow.cells import CellLike
from gradflow.checkpoints import FoundLayer

StateDict = Mapping[str, Tensor]


class Part(nn.Module):
    """A module with one recurrent layer under a name."""

    def __init__(self, name: str, layer: nn.Module) -> None:
        super().__init__()
        self.add_module(name, layer)


class Translator(nn.Module):
    """A GRU of two layers and directions that feeds an LSTM, with a head."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Part("rnn", nn.GRU(4, 6, num_layers=2, bidirectional=True))
        self.decoder = Part("lstm", nn.LSTM(12, 5))
        self.head = nn.Linear(5, 3)


def translator() -> Translator:
    """Return a translator with fixed random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return Translator()


# What is found of it, whatever it was wrapped in: (name, kind, input, hidden, layers, both ways,
# number of parameters).
TRANSLATOR = [
    ("encoder.rnn", "gru", 4, 6, 2, True, 1152),
    ("decoder.lstm", "lstm", 12, 5, 1, False, 380),
]


def save_torch(state: Any, path: Path) -> None:
    """Save as torch does."""
    torch.save(state, path)


def save_safetensors(state: StateDict, path: Path) -> None:
    """Save as .safetensors."""
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)


def save_npz(state: StateDict, path: Path) -> None:
    """Save as .npz."""
    with path.open("wb") as file:
        np.savez(file, **{name: tensor.numpy() for name, tensor in state.items()})


FORMATS: dict[str, Callable[[Any, Path], None]] = {
    "model.pt": save_torch,
    "model.pth": save_torch,
    "model.ckpt": save_torch,
    "model.tar": save_torch,
    "model.bin": save_torch,
    "model.safetensors": save_safetensors,
    "model.npz": save_npz,
}


def parameters_of(cell: CellLike) -> dict[str, Tensor]:
    """Return a cell's parameters by torch's names, without a graph."""
    assert isinstance(cell, nn.Module)
    return {name: value.detach() for name, value in cell.named_parameters()}


def assert_is_layer_of(found: FoundLayer, layer: nn.Module) -> None:
    """Assert that a found layer has the weights that torch's module computes with, in float64.

    Float64 holds every float32 exactly; weights that torch computes in float32 (matrix_exp most of
    all) are off by a few of its roundings, 6e-8 each.
    """
    suffix = "" if isinstance(layer, nn.RNNCellBase) else f"_l{found.layer}"
    suffix += "_reverse" if found.direction == "reverse" else ""
    for name, value in parameters_of(found.cell).items():
        assert value.dtype == torch.float64
        wanted = getattr(layer, name + suffix).detach()
        largest = max(1.0, float(wanted.abs().max()))
        torch.testing.assert_close(value, wanted.double(), rtol=2e-6, atol=2e-6 * largest, msg=name)
