"""Every recurrent layer in a state dict, found by the names of its tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from gradflow.checkpoints.files.tensor_names import TensorName, read_tensor_name
from gradflow.checkpoints.layers.foreign_layouts import foreign_slots
from gradflow.checkpoints.layers.found import Slot
from gradflow.checkpoints.layers.state_dicts import NamedTensors

# Words in the names of tensors that make a cell do more than torch's does.
_MORE = re.compile(r".*(norm|peephole|gamma|beta|scale|decay|\bln|\bbn|weight_c).*", re.IGNORECASE)
Place = tuple[str, int | None, bool]


def find_slots(named: NamedTensors) -> list[Slot]:
    """Return the tensors of every layer and direction: modules in the file's order, then torch's.

    Args:
        named: the file's tensors, without wrappers.
    """
    places: dict[Place, dict[str, dict[str, Tensor]]] = {}
    stored: dict[Place, dict[str, str]] = {}
    for name, tensor in named.tensors.items():
        read = read_tensor_name(name) or _cells_own_bias(name, named.tensors)
        if read is None:
            continue
        place = (read.owner, read.level, read.reverse)
        places.setdefault(place, {}).setdefault(read.base, {})[read.part] = tensor
        stored.setdefault(place, {}).setdefault(read.base, named.stored[name])
    found = [
        Slot(*place, tensors=tensors, stored=stored[place], beside=_beside(place[0], named))
        for place, tensors in places.items()
    ]
    return _in_order([*found, *foreign_slots(named)])


def _cells_own_bias(name: str, tensors: Mapping[str, Tensor]) -> TensorName | None:
    """Return `cell.bias` as its bias_ih where a cell has one bias vector, as some write it."""
    owner, _, word = name.rpartition(".")
    weight = f"{owner}.weight_hh" if owner else "weight_hh"
    if word != "bias" or weight not in tensors or weight.replace("_hh", "_ih") not in tensors:
        return None
    return TensorName(owner, "bias_ih", None, reverse=False, part="")


def _beside(owner: str, named: NamedTensors) -> tuple[str, ...]:
    """Return the tensors of the same module that change what its step computes."""
    start = f"{owner}." if owner else ""
    inside = [name.removeprefix(start) for name in named.tensors if name.startswith(start)]
    return tuple(
        name
        for name in inside
        if name.count(".") < 2 and _MORE.fullmatch(name) and read_tensor_name(name) is None
    )


def _in_order(slots: list[Slot]) -> list[Slot]:
    owners = list(dict.fromkeys(slot.owner for slot in slots))
    return sorted(slots, key=lambda s: (owners.index(s.owner), s.level or 0, s.reverse))
