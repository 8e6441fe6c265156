"""Whatever wraps a state dict, and whatever stands before its names, is looked through."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from gradflow.checkpoints import load_checkpoint
from gradflow.checkpoints.files.tensor_names import without_wrappers
from gradflow.checkpoints.layers.state_dicts import find_tensors
from tests.checkpoints.weight_files import TRANSLATOR, translator

PLAIN = translator().state_dict()
AVERAGE = {name: tensor + 1 for name, tensor in PLAIN.items()}


def summary(path: Path) -> list[tuple[object, ...]]:
    """Return what was found in a file, a line for each module."""
    return [
        (m.name, m.kind, m.input_size, m.hidden_size, m.num_layers, m.bidirectional, m.parameters)
        for m in load_checkpoint(path).modules
    ]


def prefixed(prefix: str, state: dict[str, Tensor] = PLAIN) -> dict[str, Tensor]:
    """Return a state dict with words before every name."""
    return {prefix + name: tensor for name, tensor in state.items()}


OPTIMIZER = torch.optim.Adam(translator().parameters())
OPTIMIZER.param_groups[0]["params"][0].grad = torch.ones(18, 4)
OPTIMIZER.step()

WRAPPED: dict[str, Any] = {
    "bare": PLAIN,
    "an ordered dict": OrderedDict(PLAIN),
    "DataParallel": prefixed("module."),
    "torch.compile": prefixed("_orig_mod."),
    "Lightning": {
        "epoch": 7,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": prefixed("model._orig_mod.module."),
        "optimizer_states": [OPTIMIZER.state_dict()],
        "lr_schedulers": [],
        "callbacks": {
            "ModelCheckpoint{'monitor': 'loss'}": {"best_model_score": torch.tensor(1.0)}
        },
        "loops": {"fit_loop": {"state_dict": {}}},
    },
    "with an optimizer": {"model_state_dict": PLAIN, "optimizer": OPTIMIZER.state_dict()},
    "model": {"model": PLAIN, "step": 3},
    "net": {"net": PLAIN},
    "weights, epoch": (PLAIN, 3),
    "a list of one": [PLAIN],
    "deep inside": {"state": {"checkpoint": {"best_model": {"state_dict": prefixed("module.")}}}},
    "DeepSpeed": {"module": PLAIN, "ds_version": "0.16"},
    "FSDP": prefixed("_fsdp_wrapped_module."),
    "a part wrapped": {n.replace("encoder.", "encoder.module."): t for n, t in PLAIN.items()},
    "the average alone": {"ema_state_dict": AVERAGE},
    "and its average": {"model": PLAIN, "ema": AVERAGE},
    "its average first": {"state_dict_ema": AVERAGE, "state_dict": PLAIN},
    "the average inside": {**prefixed("model."), **prefixed("ema_model.module.", AVERAGE)},
    "SWA": {**prefixed("module."), "n_averaged": torch.tensor(3)},
}


@pytest.mark.parametrize("case", WRAPPED)
def test_every_wrapping_is_looked_through(tmp_path: Path, case: str) -> None:
    """The same two modules under the same names, and nothing twice."""
    torch.save(WRAPPED[case], tmp_path / "model.pt")
    assert summary(tmp_path / "model.pt") == TRANSLATOR


@given(st.lists(st.sampled_from(["module.", "_orig_mod.", "model."]), max_size=6))
def test_any_mix_of_prefixes_is_taken_off(prefixes: list[str]) -> None:
    """In any order and number."""
    for name in ("encoder.rnn.weight_ih_l0", "weight_hh"):
        assert without_wrappers("".join(prefixes) + name) == name


@pytest.mark.parametrize("case", ["and its average", "its average first", "the average inside"])
def test_the_weights_go_before_their_average(tmp_path: Path, case: str) -> None:
    """What was trained is measured, and that an average lies beside it is said."""
    path = tmp_path / "model.pt"
    torch.save(WRAPPED[case], path)
    checkpoint = load_checkpoint(path)
    weight = dict(checkpoint.layers[-1].cell.named_parameters())["weight_hh"]  # type: ignore[attr-defined]
    assert torch.equal(weight.detach(), PLAIN["decoder.lstm.weight_hh_l0"].double())
    assert any("the average is left out" in note for note in checkpoint.notes)


def test_a_dict_for_each_module_gives_its_key(tmp_path: Path) -> None:
    """`encoder_state_dict` and `decoder` are two modules, and are called so."""
    gru, lstm = nn.GRU(3, 4).state_dict(), nn.LSTM(3, 4).state_dict()
    torch.save({"encoder_state_dict": gru, "decoder": lstm}, tmp_path / "model.pt")
    modules = load_checkpoint(tmp_path / "model.pt").modules
    assert [(each.name, each.kind) for each in modules] == [("encoder", "gru"), ("decoder", "lstm")]


@pytest.mark.parametrize(
    "content",
    [
        [nn.GRU(3, 4).state_dict(), nn.GRU(5, 4, bias=False).state_dict()],
        {"best_state_dict": nn.GRU(3, 4).state_dict(), "net": nn.GRU(5, 4).state_dict()},
    ],
)
def test_two_of_the_same_names_are_kept_apart(tmp_path: Path, content: Any) -> None:
    """Nothing of one goes into the other, even where one has fewer tensors."""
    torch.save(content, tmp_path / "model.pt")
    layers = load_checkpoint(tmp_path / "model.pt").layers
    assert len({layer.name for layer in layers}) == 2
    assert sorted(layer.input_size for layer in layers) == [3, 5]


def test_a_prefix_stays_where_two_names_would_become_one(tmp_path: Path) -> None:
    """`model.rnn` and `rnn` in one file are two modules."""
    state = prefixed("rnn.", nn.GRU(3, 4).state_dict())
    state |= prefixed("model.rnn.", nn.GRU(5, 4).state_dict())
    torch.save(state, tmp_path / "model.pt")
    layers = load_checkpoint(tmp_path / "model.pt").layers
    assert [(each.name, each.input_size) for each in layers] == [("rnn", 3), ("model.rnn", 5)]


def test_a_layer_without_a_name_is_called_by_its_kind(tmp_path: Path) -> None:
    """Unless another module has that name."""
    state = {**nn.LSTM(3, 4).state_dict(), **prefixed("lstm.", nn.LSTM(4, 4).state_dict())}
    torch.save(state, tmp_path / "model.pt")
    layers = load_checkpoint(tmp_path / "model.pt").layers
    assert [each.name for each in layers] == ["lstm (without a name)", "lstm"]


def test_the_place_in_the_file_is_kept(tmp_path: Path) -> None:
    """A finding can name the tensor as the user's file has it."""
    torch.save({"state_dict": prefixed("module.")}, tmp_path / "model.pt")
    found = load_checkpoint(tmp_path / "model.pt").layers[0]
    assert found.stored["weight_hh"] == "state_dict.module.encoder.rnn.weight_hh_l0"


def test_containers_that_hold_themselves_come_to_an_end() -> None:
    """A pickle can hold a list that holds itself."""
    loop: dict[str, Any] = {"state_dict": dict(PLAIN)}
    loop["self"] = [loop, {"again": loop}]
    assert set(find_tensors(loop).tensors) == set(PLAIN)
