"""The recurrent layers of a live model, in the same form as those of a file."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from gradflow.cells import Cell, CellLike, ForeignCell
from gradflow.cells.rnn import Nonlinearity
from gradflow.checkpoints.files.tensor_names import read_tensor_name, without_wrappers
from gradflow.checkpoints.find_modules import ModuleSearch, RecurrentModule
from gradflow.checkpoints.layers.find_layers import find_slots
from gradflow.checkpoints.layers.found import Checkpoint, FoundLayer, Unread
from gradflow.checkpoints.layers.load_layers import read_slots
from gradflow.checkpoints.layers.state_dicts import NamedTensors, find_tensors
from gradflow.checkpoints.layers.stored_numbers import dtype_name, find_nonfinite
from gradflow.checkpoints.state_alone import foreign_cell


def layers_of_model(model: nn.Module, search: ModuleSearch) -> Checkpoint:
    """Return the layers of the recurrent modules in a model, as float64 cells with copied weights.

    A user's module that is no cell by itself, but has weights of torch's names, is measured as
    torch's recurrence; a note says so. Weights that are computed come as evaluation mode computes
    them: normed by weight norm or spectral norm, not dropped by dropout of weights.

    Args:
        model: the whole model.
        search: what `find_modules` found in it.
    """
    layers: list[FoundLayer] = []
    unread: list[Unread] = list(search.left_out)
    for each in search.found:
        if isinstance(each.module, nn.RNNBase | nn.RNNCellBase):
            found, lost = _of_torch(model, each)
            layers += found
            unread += lost
        else:
            layers.append(_of_cell(each))
    around = {each.name: each for each in search.found}
    layers = [
        replace(layer, before=around[layer.name].before, after=around[layer.name].after)
        for layer in layers
    ]
    by_names = _by_names(model, {each.name for each in search.found})
    told = {layer.name for layer in by_names}
    unread = [each for each in unread if each.name not in told]
    return Checkpoint("the model", (*layers, *by_names), tuple(unread))


def _by_names(model: nn.Module, found: set[str]) -> tuple[FoundLayer, ...]:
    """Return what the names of weights show and no module did: a user's layer of torch's names."""
    slots = [
        slot
        for slot in find_slots(find_tensors(model.state_dict()))
        if slot.owner
        and not any(slot.owner == name or slot.owner.startswith(f"{name}.") for name in found)
    ]
    layers, _ = read_slots(slots, lambda _: None)
    note = (
        "Found by the names of its weights in a module of the user's; what is measured is torch's "
        "recurrence with them, not the module's own."
    )
    return tuple(replace(layer, notes=(*layer.notes, note)) for layer in layers)


def _of_torch(
    model: nn.Module, each: RecurrentModule
) -> tuple[tuple[FoundLayer, ...], tuple[Unread, ...]]:
    """Return the layers of one of torch's modules."""
    squash = getattr(each.module, "nonlinearity", "tanh")
    nonlinearity: Nonlinearity = "relu" if squash == "relu" else "tanh"
    named = NamedTensors(*_tensors_around(model, each))
    found, lost = read_slots(find_slots(named), lambda _: nonlinearity)
    notes = tuple(_notes(each.module))
    return tuple(replace(layer, notes=(*layer.notes, *notes)) for layer in found), lost


def _notes(module: nn.Module) -> Iterator[str]:
    """Yield what is particular about one of torch's modules."""
    if parametrize.is_parametrized(module):
        lists = module.parametrizations
        assert isinstance(lists, nn.ModuleDict)
        for name, chain in lists.items():
            assert isinstance(chain, nn.ModuleList)
            how = ", ".join(type(part).__name__.strip("_") for part in chain)
            yield f"{name} is computed by a parametrization ({how}); its value now is taken."
    elif type(module).__module__.partition(".")[0] != "torch":
        yield (
            f"{type(module).__name__} is a user's subclass; what is measured is torch's "
            "recurrence with its weights."
        )


def _tensors_around(
    model: nn.Module, each: RecurrentModule
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return a module's tensors by name, with what wraps it may keep of its weights (`*_raw`)."""
    tensors: dict[str, Tensor] = {}
    stored: dict[str, str] = {}
    own = without_wrappers(f"{each.path}.weight") if each.path else "weight"
    owner = own.removesuffix("weight").rstrip(".")
    for name, tensor in model.state_dict().items():
        read = read_tensor_name(without_wrappers(name))
        if read is None or read.owner != owner or ".parametrizations." in f".{name}":
            continue
        plain = without_wrappers(name).removeprefix(f"{owner}." if owner else "")
        plain = f"{each.name}.{plain}"
        tensors[plain], stored[plain] = tensor, name
    for name, tensor in _parametrized(each.module):
        tensors[f"{each.name}.{name}"] = tensor
        stored[f"{each.name}.{name}"] = f"{each.path}.{name}".lstrip(".")
    return tensors, stored


def _parametrized(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights that torch's parametrizations compute, as in evaluation mode."""
    if not parametrize.is_parametrized(module):
        return
    lists = module.parametrizations
    assert isinstance(lists, nn.ModuleDict)
    for name, chain in lists.items():
        with _evaluating(chain), torch.no_grad():
            yield name, chain().detach()


@contextlib.contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode for a while: spectral norm changes its buffers else."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _of_cell(each: RecurrentModule) -> FoundLayer:
    """Return gradflow's cell, or a user's behind a ForeignCell, in float64."""
    original = dict(each.module.named_parameters())
    dtype = dtype_name(original.values())
    wide = copy.deepcopy(each.module).cpu().double()
    cell: CellLike = wide if isinstance(wide, Cell | ForeignCell) else foreign_cell(wide)
    notes = tuple(getattr(cell, "notes", ()))
    if dtype != "float64":
        notes = (f"Stored in {dtype}, computed in float64.", *notes)
    return FoundLayer(
        name=each.name,
        kind=each.kind,
        layer=0,
        direction="forward",
        input_size=cell.input_size,
        hidden_size=cell.hidden_size,
        projection=None,
        bias=any("bias" in name for name in original),
        layers=1,
        directions=1,
        dtype=dtype,
        parameters=sum(tensor.numel() for tensor in original.values()),
        cell=cell,
        stored={},
        nonfinite=find_nonfinite({n: t.detach() for n, t in wide.named_parameters()}),
        notes=notes,
    )
