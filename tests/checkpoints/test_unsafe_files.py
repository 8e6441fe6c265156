"""Nothing in a file of weights is ever run; a file that would run code is refused with the way out.

Each hostile file here would leave a mark on disk if any of its code ran.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import functools
import os
import pathlib
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gradflow.checkpoints import load_checkpoint, load_layers
from gradflow.errors import CheckpointError, QuantisedError, UnsafeCheckpointError
from tests.checkpoints.weight_files import Part

WEIGHTS = nn.LSTM(3, 4).state_dict()


class Hostile:
    """An object whose reading makes a folder, as a stand-in for worse."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.mark),)


class Settings:
    """A class of a user's own, kept beside the weights."""

    def __init__(self) -> None:
        self.rate = 0.1


@pytest.mark.parametrize("place", ["alone", "beside", "inside"])
@pytest.mark.parametrize("legacy", [False, True])
def test_hostile_files_do_nothing(tmp_path: Path, place: str, legacy: bool) -> None:
    """Whether the object is all of the file, lies beside the weights or poses as one of them."""
    path, mark = tmp_path / "model.pt", tmp_path / "mark"
    evil = Hostile(mark)
    content = {"alone": evil, "beside": {"state_dict": WEIGHTS, "x": evil}, "inside": {"w": [evil]}}
    torch.save(content[place], path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(UnsafeCheckpointError, match=r"would call (posix|nt)\.mkdir") as caught:
        load_layers(path)
    assert not mark.exists()
    assert "nothing of it was run" in str(caught.value)
    assert "weights_only=False runs it" in str(caught.value)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_hostile_files_do_nothing_in_any_protocol(tmp_path: Path, protocol: int, kind: str) -> None:
    """Pickles have written names in several ways; none of them is followed."""
    path, mark = tmp_path / "model.pt", tmp_path / "mark"
    if kind == "torch":
        torch.save(Hostile(mark), path, pickle_protocol=protocol)
    else:
        path.write_bytes(pickle.dumps(Hostile(mark), protocol))
    with pytest.raises(CheckpointError):
        load_layers(path)
    assert not mark.exists()


def test_hostile_arrays_do_nothing(tmp_path: Path) -> None:
    """An .npz may hold Python objects, which are pickled too."""
    path, mark = tmp_path / "model.npz", tmp_path / "mark"
    array = np.empty(1, dtype=object)
    array[0] = Hostile(mark)
    np.savez(path, weight_ih_l0=np.zeros((16, 3)), extra=array)
    with pytest.raises(UnsafeCheckpointError, match=r"(?s)'extra'.*numpy\.savez") as caught:
        load_layers(path)
    assert not mark.exists()
    assert "nothing of it was run" in str(caught.value)


def test_a_whole_module_is_refused_with_the_safe_way(tmp_path: Path) -> None:
    """`torch.save(model)` pickles classes; the state dict is what one keeps."""
    path = tmp_path / "model.pt"
    for model in (nn.LSTM(3, 4), Part("rnn", nn.GRU(3, 4))):
        torch.save(model, path)
        with pytest.raises(UnsafeCheckpointError, match="is a whole pickled module") as caught:
            load_layers(path)
        assert "torch.save(m.state_dict(), 'weights.pt')" in str(caught.value)
    assert "weight_files.Part" in str(caught.value)


def test_the_safe_way_is_safe(tmp_path: Path) -> None:
    """What the message says gives a file that is read."""
    path, weights = tmp_path / "model.pt", tmp_path / "weights.pt"
    torch.save(nn.LSTM(3, 4), path)
    with pytest.raises(UnsafeCheckpointError) as caught:
        load_layers(path)
    advice = str(caught.value).rpartition("wrote it: ")[2]
    code = compile(advice.replace("'weights.pt'", repr(str(weights))), "advice", "exec")
    exec(code, {"torch": torch})
    assert load_layers(weights)[0].kind == "lstm"


def test_a_class_of_the_users_own_is_refused_by_name(tmp_path: Path) -> None:
    """To make an object of it would need the user's code."""
    path = tmp_path / "model.ckpt"
    torch.save({"state_dict": WEIGHTS, "hyper_parameters": Settings()}, path)
    with pytest.raises(UnsafeCheckpointError, match=r"test_unsafe_files\.Settings") as caught:
        load_layers(path)
    assert "torch.save(c['state_dict'], 'weights.pt')" in str(caught.value)


HARMLESS: dict[str, Any] = {
    "a Namespace": argparse.Namespace(rate=0.1, sizes=[1, 2]),
    "a best loss": np.float64(0.3),
    "an array": np.arange(3),
    "a path": pathlib.PurePosixPath("runs/3"),
    "a date": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    "a default dict": collections.defaultdict(list, {"loss": [0.1]}),
    "a half-made call": functools.partial(torch.optim.Adam, lr=0.1),
    "a size": torch.Size([1, 2]),
    "a version": torch.__version__,
    "a queue": collections.deque([1, 2]),
    "a set": {1, 2},
    "an ordered dict": collections.OrderedDict(a=1),
    "a counter": collections.Counter("aab"),
    "bytes": bytearray(b"ab"),
}


@pytest.mark.parametrize("case", HARMLESS)
@pytest.mark.parametrize("legacy", [False, True])
def test_plain_facts_beside_the_weights_do_no_harm(tmp_path: Path, case: str, legacy: bool) -> None:
    """Hyper-parameters and the like lie in most checkpoints; they are not looked at."""
    path = tmp_path / "model.ckpt"
    content = {"fact": HARMLESS[case], "state_dict": WEIGHTS}
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    [found] = load_layers(path)
    assert (found.name, found.kind) == ("lstm", "lstm")


def test_facts_are_replaced_by_something_inert(tmp_path: Path, monkeypatch: Any) -> None:
    """Not even the harmless classes are made: no method of theirs runs."""
    path = tmp_path / "model.ckpt"
    torch.save({"fact": argparse.Namespace(rate=0.1), "state_dict": WEIGHTS}, path)
    allowed = set(torch.serialization.get_safe_globals())

    def explode(*_: Any, **__: Any) -> None:
        raise AssertionError("a class of the file was used")

    monkeypatch.setattr(argparse.Namespace, "__init__", explode)
    monkeypatch.setattr(argparse.Namespace, "__setattr__", explode)
    assert load_checkpoint(path).layers
    assert set(torch.serialization.get_safe_globals()) == allowed  # nothing is left allowed


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_programs_are_refused(tmp_path: Path) -> None:
    """TorchScript and exported programs hold code beside their weights."""
    path = tmp_path / "model.pt"
    torch.jit.trace(nn.Linear(3, 4), torch.zeros(1, 3)).save(str(path))
    with pytest.raises(UnsafeCheckpointError, match=r"TorchScript.*\n.*torch\.jit\.load"):
        load_layers(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(nn.Linear(3, 4), (torch.zeros(1, 3),)), path)
    with pytest.raises(UnsafeCheckpointError, match=r"torch\.export"):
        load_layers(path)


def quantised_integers() -> dict[str, torch.Tensor]:
    """Return weights as some tools keep them: whole numbers and a scale."""
    state = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    for name in ("weight_ih_l0", "weight_hh_l0"):
        state[name] = (state[name] * 127).to(torch.int8)
    return state


def quantised_by_torch() -> dict[str, torch.Tensor]:
    """Return weights as torch's quantised tensors."""
    state = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    state["weight_hh_l0"] = torch.quantize_per_tensor(state["weight_hh_l0"], 0.01, 0, torch.qint8)
    return state


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", [quantised_integers, quantised_by_torch])
def test_quantised_weights_are_refused_in_words(tmp_path: Path, make: Callable[[], Any]) -> None:
    """Whole numbers without what they stand for give no gradient."""
    path = tmp_path / "model.pt"
    torch.save(make(), path)
    with pytest.raises(QuantisedError, match=r"is quantised \(stored as q?int8\).*floating-point"):
        load_layers(path)


def test_quantised_layers_do_not_hide_the_others(tmp_path: Path) -> None:
    """Only what is quantised is left out."""
    path = tmp_path / "model.pt"
    state = {f"a.{n}": t for n, t in quantised_integers().items()}
    torch.save(state | {f"b.{n}": t for n, t in WEIGHTS.items()}, path)
    checkpoint = load_checkpoint(path)
    assert [layer.name for layer in checkpoint.layers] == ["b"]
    assert [each.quantised for each in checkpoint.unread] == [True]


@pytest.mark.filterwarnings("ignore")
def test_dynamically_quantised_modules_are_refused(tmp_path: Path) -> None:
    """torch packs their weights into an object that only its own code can open."""
    path = tmp_path / "model.pt"
    model = Part("lstm", nn.LSTM(3, 4))
    packed = torch.ao.quantization.quantize_dynamic(model, {nn.LSTM}, dtype=torch.qint8)
    torch.save(packed.state_dict(), path)
    with pytest.raises(QuantisedError, match="quantised and packed"):
        load_layers(path)
