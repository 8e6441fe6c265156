"""State dicts out of whatever was saved: Lightning's, a wrapped dict, one dict for each module.

{"epoch": 3, "state_dict": {...}, "optimizer_states": [...]}      one state dict
{"encoder_state_dict": {...}, "decoder": {...}}                   two: encoder, decoder
{"model": {...}, "ema": {...}}                                    one, and its average
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.checkpoints.files.tensor_names import read_tensor_name, without_wrappers

_DEEPEST = 12  # how deep containers are looked into; a pickle can hold a list that holds itself
# Keys of containers that hold no weights of a model.
_NO_WEIGHTS = re.compile(
    r".*(optim|sched|scaler|history).*|callbacks?|loops?|grad(ient)?s?|(exp_avg|momentum|rng).*"
)
# Keys that say nothing of which module it is.
_SAYS_NOTHING = frozenset(
    {"", "model", "net", "network", "module", "weights", "weight", "params", "parameters", "state"}
    | {"checkpoint", "ckpt", "best", "best_model", "last", "pytorch", "sd", "dict", "data"}
)
_ENDINGS = re.compile(r"(_?(state_?dict|state|weights|params|sd))+$")
# Averages of the weights over training, which lie beside the weights themselves.
_AVERAGE = re.compile(
    r"(state_dict_|model_|net_)?(ema|swa|averaged?|shadow)(_model|_net|_weights|_state)*"
)


@dataclass(frozen=True)
class NamedTensors:
    """Tensors by dotted name, without wrappers; `notes` say in sentences what was looked through.

    `stored` gives the name in the file for each.
    """

    tensors: dict[str, Tensor]
    stored: dict[str, str]
    notes: tuple[str, ...] = ()


def find_tensors(content: object) -> NamedTensors:
    """Return the weights that a file's content holds, by name.

    Args:
        content: as `read_file` gave it.
    """
    found: dict[str, tuple[str, Tensor]] = {}
    averages: dict[str, tuple[str, Tensor]] = {}
    for place, tensors in _state_dicts(content):
        for is_average, source in _sources(place, tensors):
            _put_all(averages if is_average else found, place, source)
    notes = []
    found = _unwrapped(found)
    averages = _unwrapped({_without_average(name): entry for name, entry in averages.items()})
    if set(map(_layer_of, averages)) & set(map(_layer_of, found)) - {None}:
        notes.append(
            "The file holds the weights and their average over training (such as "
            f"{next(iter(averages.values()))[0]}); the average is left out."
        )
    else:
        found = averages | found
    tensors = {name: tensor for name, (_, tensor) in found.items()}
    return NamedTensors(tensors, {name: at for name, (at, _) in found.items()}, tuple(notes))


def _state_dicts(content: object) -> Iterator[tuple[tuple[str, ...], dict[str, Tensor]]]:
    """Yield every mapping that holds tensors itself, with the keys that lead to it."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), content)]
    seen: set[int] = set()
    while waiting:
        place, value = waiting.pop(0)
        if id(value) in seen or len(place) > _DEEPEST:
            continue
        seen.add(id(value))
        items = _items(value)
        tensors = {key: item for key, item in items.items() if isinstance(item, torch.Tensor)}
        if tensors:
            yield place, tensors
        waiting += [
            ((*place, key), item)
            for key, item in items.items()
            if isinstance(item, Mapping | list | tuple) and not _NO_WEIGHTS.fullmatch(key.lower())
        ]


def _items(value: object) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        return {str(index): item for index, item in enumerate(value)}
    return {}


def _part_name(key: str) -> str:
    """Return what a key of a wrapping dict says of the module: "encoder" of encoder_state_dict."""
    if _AVERAGE.fullmatch(_ENDINGS.sub("", key.lower())):
        return _ENDINGS.sub("", key.lower())
    words = _ENDINGS.sub("", key)
    return "" if words.lower() in _SAYS_NOTHING or words.isdigit() else words


def _is_average(key: str) -> bool:
    return any(_AVERAGE.fullmatch(word.lower()) for word in key.split("."))


def _without_average(name: str) -> str:
    return ".".join(word for word in name.split(".") if not _AVERAGE.fullmatch(word.lower()))


def _layer_of(name: str) -> str | None:
    """Return the recurrent module that a tensor belongs to, None where it belongs to none."""
    read = read_tensor_name(name)
    return None if read is None else read.owner


def _sources(
    place: tuple[str, ...], tensors: Mapping[str, Tensor]
) -> Iterator[tuple[bool, dict[str, tuple[str, Tensor]]]]:
    """Yield the averages of one state dict, then what is no average: entries by name."""
    words = [word for word in map(_part_name, place) if word]
    of_averages = any(map(_AVERAGE.fullmatch, words))
    start = [word for word in words if not _AVERAGE.fullmatch(word)]
    for is_average in (True, False):
        keys = [key for key in tensors if (of_averages or _is_average(key)) == is_average]
        yield (
            is_average,
            {
                ".".join([*start, key.replace("/", ".")]): (".".join([*place, key]), tensors[key])
                for key in keys
            },
        )


def _put_all(
    found: dict[str, tuple[str, Tensor]],
    place: tuple[str, ...],
    source: Mapping[str, tuple[str, Tensor]],
) -> None:
    """Keep a state dict's tensors; under their whole place where another one has their names."""
    taken = any(name in found for name in source if _layer_of(name) is not None)
    start = ".".join(place)
    found.update({(f"{start}.{name}" if taken else name): e for name, e in source.items()})


def _unwrapped(found: Mapping[str, tuple[str, Tensor]]) -> dict[str, tuple[str, Tensor]]:
    """Take the wrappers' words out of all names, but where two names would become one."""
    plain = {name: without_wrappers(name) for name in found}
    counts: dict[str, int] = {}
    for name in plain.values():
        counts[name] = counts.get(name, 0) + 1
    twice = {_layer_of(name) for name, short in plain.items() if counts[short] > 1} - {None}
    return {
        name if _layer_of(name) in twice else short: found[name] for name, short in plain.items()
    }
