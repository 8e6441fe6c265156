"""What is wrong with a layer in a file is named; what can be read beside it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.checkpoints import load_checkpoint, load_layers
from gradflow.errors import CheckpointError


def save(tmp_path: Path, content: Any) -> Path:
    """Save something as torch does, and return the file."""
    torch.save(content, tmp_path / "model.pt")
    return tmp_path / "model.pt"


@pytest.mark.parametrize("proj_size", [0, 2])
def test_numbers_that_are_not_finite_are_named(tmp_path: Path, proj_size: int) -> None:
    """Which tensor, how many, and where the first is; the layer is there nevertheless."""
    state = {"net.rnn." + n: t for n, t in nn.LSTM(3, 4, proj_size=proj_size).state_dict().items()}
    state["net.rnn.bias_ih_l0"][5] = float("nan")
    state["net.rnn.weight_ih_l0"][2, 1] = float("-inf")
    [found] = load_layers(save(tmp_path, {"state_dict": state}))
    words = [str(each) for each in found.nonfinite]
    assert words == [
        "state_dict.net.rnn.weight_ih_l0 has 1 inf, the first at [2, 1]",
        "state_dict.net.rnn.bias_ih_l0 has 1 NaN, the first at [5]",
    ]


def test_a_cell_that_does_more_is_not_passed_off_as_plain(tmp_path: Path) -> None:
    """Layer norms beside the weights of a cell say that its step is another one."""
    state = {f"cell.{name}": t for name, t in nn.LSTMCell(3, 4).state_dict().items()}
    state |= {"cell.ln_i.weight": torch.ones(16), "cell.ln_i.bias": torch.zeros(16)}
    state |= {"head.norm.weight": torch.ones(4)}
    [found] = load_layers(save(tmp_path, state))
    [note] = [note for note in found.notes if "Beside" in note]
    assert "ln_i.weight" in note
    assert "head" not in note
    assert "--model" in note


def test_a_module_that_is_not_whole_says_so(tmp_path: Path) -> None:
    """A layer that is missing, or layers that do not fit on each other, are told."""
    state = nn.GRU(3, 4, num_layers=2, bidirectional=True).state_dict()
    kept = {name: t for name, t in state.items() if not name.endswith("_l1_reverse")}
    found = load_layers(save(tmp_path, kept))
    assert any("layer 1 reverse was not read" in note for note in found[0].notes)
    state["weight_ih_l1"] = torch.zeros(12, 5)
    state["weight_ih_l1_reverse"] = torch.zeros(12, 5)
    found = load_layers(save(tmp_path, state))
    assert any("Layer 1 reads 5 numbers, but layer 0 shows 8" in n for n in found[0].notes)


def test_what_cannot_be_read_is_left_out_by_name(tmp_path: Path) -> None:
    """One layer of unknown shape does not hide the others."""
    state = {f"good.{name}": t for name, t in nn.GRU(3, 4).state_dict().items()}
    state |= {"mgu.weight_ih": torch.zeros(8, 3), "mgu.weight_hh": torch.zeros(8, 4)}
    checkpoint = load_checkpoint(save(tmp_path, state))
    assert [layer.name for layer in checkpoint.layers] == ["good"]
    [left_out] = checkpoint.unread
    assert "mgu is left out: weight_hh has 2 times as many rows as columns" in str(left_out)


BROKEN: dict[str, tuple[dict[str, Tensor], str]] = {
    "half a layer": ({"rnn.weight_hh_l0": torch.zeros(12, 4)}, "weight_hh but no weight_ih"),
    "rows differ": (
        {"rnn.weight_ih_l0": torch.zeros(16, 3), "rnn.weight_hh_l0": torch.zeros(12, 4)},
        "differ in rows",
    ),
    "lost projection": (
        {"rnn.weight_ih_l0": torch.zeros(16, 3), "rnn.weight_hh_l0": torch.zeros(16, 3)},
        "an LSTM has 4, a GRU 3, an RNN 1",
    ),
    "no matrices": (
        {"rnn.weight_ih_l0": torch.zeros(16), "rnn.weight_hh_l0": torch.zeros(16)},
        "no matrices",
    ),
    "bias too short": (
        {**nn.GRU(3, 4).state_dict(), "bias_ih_l0": torch.zeros(4)},
        "bias_ih must have 12 numbers",
    ),
    "complex": (
        {n: t.to(torch.complex64) for n, t in nn.GRU(3, 4).state_dict().items()},
        "is complex",
    ),
    "without numbers": (
        {n: t.to("meta") for n, t in nn.GRU(3, 4).state_dict().items()},
        "without its numbers",
    ),
    "in shards elsewhere": (
        {n: torch.zeros(0) for n in nn.GRU(3, 4).state_dict()},
        "is empty; DeepSpeed and FSDP",
    ),
    "no recurrent layer": (nn.Linear(3, 4).state_dict(), "--model file.py:make_model"),
    "flattened": ({"_fsdp_wrapped_module._flat_param": torch.zeros(9)}, "flattened by FSDP"),
    "no tensors": ({}, "holds no named tensors"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_without_a_layer_to_read_says_why(tmp_path: Path, case: str) -> None:
    """What is missing or does not fit is named, and what to do about it."""
    state, words = BROKEN[case]
    with pytest.raises(CheckpointError, match=words):
        load_layers(save(tmp_path, state))


def test_a_tensor_that_claims_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    """A file of a few bytes cannot make the program ask for gigabytes."""
    state = {"weight_ih_l0": torch.zeros(1).expand(40_000, 3)}
    state |= {"weight_hh_l0": torch.zeros(1).expand(40_000, 10_000)}
    with pytest.raises(CheckpointError, match="claims 400000000 numbers and holds 1"):
        load_layers(save(tmp_path, state))
