"""A model takes its weights from a file, whatever wraps the names on either side."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradflow.checkpoints import fill_model_
from gradflow.errors import CheckpointError
from tests.checkpoints.weight_files import FORMATS, save_torch, translator

STATE = {name: tensor + 1 for name, tensor in translator().state_dict().items()}


@pytest.mark.parametrize("name", FORMATS)
def test_all_weights_are_filled_in(tmp_path: Path, name: str) -> None:
    """Also those of no recurrent layer, from every format."""
    FORMATS[name](STATE, tmp_path / name)
    model = translator()
    assert fill_model_(model, tmp_path / name) == ()
    assert all(torch.equal(tensor, STATE[key]) for key, tensor in model.state_dict().items())


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "bare": lambda model: model,
    "DataParallel": nn.DataParallel,
    "Lightning": lambda model: nn.ModuleDict({"model": model}),
    "both": lambda model: nn.ModuleDict({"model": nn.DataParallel(model)}),
}


@pytest.mark.parametrize("of_file", WRAPPERS)
@pytest.mark.parametrize("of_model", WRAPPERS)
def test_wrappers_on_either_side_do_not_matter(tmp_path: Path, of_file: str, of_model: str) -> None:
    """Names are compared without them."""
    saved = WRAPPERS[of_file](translator())
    save_torch({"state_dict": {n: t + 1 for n, t in saved.state_dict().items()}}, tmp_path / "m.pt")
    model = WRAPPERS[of_model](translator())
    fill_model_(model, tmp_path / "m.pt")
    filled = list(model.state_dict().values())
    assert all(map(torch.equal, filled, STATE.values()))


def test_what_is_left_over_is_told(tmp_path: Path) -> None:
    """The file may hold more than the model (a loss's weights), in another precision."""
    more = {name: tensor.half() for name, tensor in STATE.items()} | {"loss.weight": torch.ones(3)}
    save_torch({"state_dict": more}, tmp_path / "m.pt")
    notes = fill_model_(translator(), tmp_path / "m.pt")
    assert notes == (
        "1 tensors of the file are not the model's: loss.weight.",
        "The file's weights are float16; the model's are float32.",
    )


def refusal(tmp_path: Path, state: Any) -> str:
    """Return why a file cannot fill the model; the model must then be as it was."""
    save_torch(state, tmp_path / "m.pt")
    model = translator()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(CheckpointError) as caught:
        fill_model_(model, tmp_path / "m.pt")
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
    return str(caught.value)


def test_a_weight_that_is_missing_is_named(tmp_path: Path) -> None:
    """With the nearest name that the file has."""
    state = {name.replace("head.", "heads."): tensor for name, tensor in STATE.items()}
    words = refusal(tmp_path, state)
    assert "2 of 22 are not in it: head.weight, head.bias. It has heads.weight." in words


def test_a_weight_of_another_shape_is_named(tmp_path: Path) -> None:
    """Both shapes are said."""
    words = refusal(tmp_path, STATE | {"head.weight": torch.zeros(4, 5)})
    assert "holds head.weight as (4, 5), but the model's is (3, 5)" in words


def test_buffers_and_batch_norm_are_filled_too(tmp_path: Path) -> None:
    """Whole numbers among them."""
    model = nn.Sequential(nn.BatchNorm1d(3))
    model(torch.randn(4, 3))
    save_torch(model.state_dict(), tmp_path / "m.pt")
    other = nn.Sequential(nn.BatchNorm1d(3))
    fill_model_(other, tmp_path / "m.pt")
    assert int(other[0].num_batches_tracked) == 1  # type: ignore[arg-type]
    assert torch.equal(other[0].running_mean, model[0].running_mean)  # type: ignore[arg-type]
