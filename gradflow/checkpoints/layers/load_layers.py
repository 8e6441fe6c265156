"""A file of weights, read to the recurrent layers in it: the way in for `gradflow inspect FILE`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import torch

from gradflow.cells.rnn import Nonlinearity
from gradflow.checkpoints.files.read_file import read_file
from gradflow.checkpoints.layers.find_layers import find_slots
from gradflow.checkpoints.layers.found import Checkpoint, FoundLayer, Slot, Unread
from gradflow.checkpoints.layers.read_slot import UnreadableSlot, read_slot
from gradflow.checkpoints.layers.state_dicts import NamedTensors, find_tensors
from gradflow.errors import CheckpointError, QuantisedError, UnknownNameError, nearest_name

_SHOWN = 4


def load_layers(path: str | Path, *, nonlinearity: Nonlinearity | None = None) -> list[FoundLayer]:
    """Return every RNN, LSTM and GRU in a file of weights, a float64 cell per layer and direction.

    See `load_checkpoint`, which also returns what was left out.
    """
    return list(load_checkpoint(path, nonlinearity=nonlinearity).layers)


def load_checkpoint(path: str | Path, *, nonlinearity: Nonlinearity | None = None) -> Checkpoint:
    """Return every recurrent layer in a file of weights: .pt .pth .ckpt .tar .safetensors .npz.

    Nothing in the file is run. Wrapping dicts (Lightning's and others) and prefixes (`module.`,
    `_orig_mod.`, `model.`, in any mix) are looked through; weights that are stored as something
    else (weight norm, orthogonal, dropped, pruned) are rebuilt to the effective matrix.

    Args:
        path: the file.
        nonlinearity: of plain RNNs, "tanh" or "relu", which no weight tells; tanh where None.

    Returns:
        The layers in the order of the file, each module's in torch's order, and in `unread` those
        whose tensors make no known layer.

    Raises:
        CheckpointError: the file cannot be read, or holds no recurrent layer.
        UnsafeCheckpointError: to read it would run code; nothing of it was run.
        QuantisedError: all recurrent weights in it are stored as whole numbers.
        UnknownNameError: another nonlinearity.
    """
    if nonlinearity is not None and nonlinearity not in get_args(Nonlinearity):
        known = nearest_name(nonlinearity, get_args(Nonlinearity))
        raise UnknownNameError(f"nonlinearity {nonlinearity!r} does not exist. {known}")
    named = find_tensors(read_file(path))
    layers, unread = read_slots(find_slots(named), lambda _: nonlinearity)
    if not layers:
        raise _nothing_found(str(path), named, unread)
    return Checkpoint(str(path), layers, unread, named.notes)


def read_slots(
    slots: Sequence[Slot], nonlinearity_of: Callable[[str], Nonlinearity | None]
) -> tuple[tuple[FoundLayer, ...], tuple[Unread, ...]]:
    """Return the layers that slots make, told of each other, and those that make none.

    Args:
        slots: in order.
        nonlinearity_of: of a plain RNN by its module's name; None where nobody knows.
    """
    layers: list[FoundLayer] = []
    unread: list[Unread] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[]):  # new cells draw random weights
        for slot in slots:
            try:
                layers.append(read_slot(slot, nonlinearity=nonlinearity_of(slot.owner)))
            except UnreadableSlot as problem:
                unread.append(Unread(slot.title, str(problem), problem.quantised))
    return tuple(_by_module(layers)), tuple(unread)


def _by_module(layers: Sequence[FoundLayer]) -> list[FoundLayer]:
    """Tell every layer how many there are in its module, and whether they fit on each other."""
    owners = {layer.name for layer in layers}
    told = []
    for name in dict.fromkeys(layer.name for layer in layers):
        same = [layer for layer in layers if layer.name == name]
        levels = len({layer.layer for layer in same})
        ways = len({layer.direction for layer in same})
        shown = name or _name_of_kind(same[0].kind, owners)
        problems = _misfits(same, layers=levels, directions=ways)
        told += [
            replace(
                layer,
                name=shown,
                notes=(*layer.notes, *problems),
                layers=levels,
                directions=ways,
            )
            for layer in same
        ]
    return told


def _name_of_kind(kind: str, owners: set[str]) -> str:
    """Return what a module without a name is called: its kind, unless another one is called so."""
    return kind if kind not in owners else f"{kind} (without a name)"


def _misfits(same: Sequence[FoundLayer], *, layers: int, directions: int) -> tuple[str, ...]:
    """Return in sentences where a module's layers cannot lie on each other."""
    found = {(layer.layer, layer.direction) for layer in same}
    ways = ("forward", "reverse")[:directions]
    wanted = {(level, way) for level in range(layers) for way in ways}
    if found != wanted:
        missing = ", ".join(f"layer {level} {way}" for level, way in sorted(wanted - found))
        return (f"The module is not whole: {missing} was not read.",)
    by_level = {layer.layer: layer for layer in same}
    for level in range(1, layers):
        reads, shows = by_level[level].input_size, directions * by_level[level - 1].shown_size
        if reads != shows:
            return (f"Layer {level} reads {reads} numbers, but layer {level - 1} shows {shows}.",)
    return ()


def _nothing_found(path: str, named: NamedTensors, unread: Sequence[Unread]) -> CheckpointError:
    if unread:
        listing = "\n".join(map(str, unread[:_SHOWN]))
        kind = QuantisedError if all(each.quantised for each in unread) else CheckpointError
        return kind(f"{path} holds no recurrent layer that can be read. {listing}")
    names = list(named.tensors)
    if not names:
        return CheckpointError(
            f"{path} holds no named tensors. Save a state dict: torch.save(model.state_dict(), "
            "'model.pt')."
        )
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    flat = any("flat_param" in name for name in names)
    cure = (
        "Its weights are flattened by FSDP: save the full state dict."
        if flat
        else "A cell of your own is measured by its module: --model file.py:make_model "
        f"--checkpoint {path}."
    )
    return CheckpointError(
        f"{path} holds {len(names)} tensors, and none is an RNN's, LSTM's or GRU's weight_ih and "
        f"weight_hh: {shown}\n{cure}"
    )
