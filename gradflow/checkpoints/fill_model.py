"""A model's weights from a file, whatever wraps the names on either side."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from gradflow.checkpoints.files import read_file
from gradflow.checkpoints.files.tensor_names import without_wrappers
from gradflow.checkpoints.layers.state_dicts import find_tensors
from gradflow.checkpoints.layers.stored_numbers import dtype_name
from gradflow.errors import CheckpointError

_SHOWN = 3


def fill_model_(model: nn.Module, path: str | Path) -> tuple[str, ...]:
    """Load a file's weights into a model, in place, and return what one should know of it.

    Names are compared without wrappers (`module.`, `_orig_mod.`, `model.`), on both sides.

    Args:
        model: as the user's code made it.
        path: a file of weights; see `read_file`.

    Raises:
        CheckpointError: the file cannot be read, a weight of the model is not in it, or has
            another shape there. The model is then as it was.
    """
    named = find_tensors(read_file(path, whole=True))
    own = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
    given = {name: _matching(name, named.tensors, named.stored) for name in own}
    missing = [name for name, found in given.items() if found is None]
    if missing:
        close = difflib.get_close_matches(without_wrappers(missing[0]), named.tensors, n=1)
        nearest = close or list(named.tensors)[:1]
        raise CheckpointError(
            f"{path} must hold every weight of the model; {len(missing)} of {len(own)} are not in "
            f"it: {_listing(missing)}. It has {', '.join(nearest) or 'no tensors'}."
        )
    weights = {name: found for name, found in given.items() if found is not None}
    _require_shapes(path, own, weights)
    model.load_state_dict(weights, strict=False)  # nothing is missing but extra state
    return (*named.notes, *_notes(own, weights, named.tensors))


def _matching(name: str, tensors: Mapping[str, Tensor], stored: Mapping[str, str]) -> Tensor | None:
    """Return the file's tensor of this name: of the very name, else without wrappers."""
    exact = next((tensors[short] for short, full in stored.items() if full == name), None)
    return tensors.get(without_wrappers(name), tensors.get(name)) if exact is None else exact


def _require_shapes(
    path: str | Path, own: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> None:
    for name, tensor in weights.items():
        if tensor.shape != own[name].shape:
            raise CheckpointError(
                f"{path} holds {name} as {tuple(tensor.shape)}, but the model's is "
                f"{tuple(own[name].shape)}. Make the model with the widths that the file has."
            )


def _notes(
    own: Mapping[str, Tensor], weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> list[str]:
    notes = []
    taken = {id(tensor) for tensor in weights.values()}
    rest = [name for name, tensor in tensors.items() if id(tensor) not in taken]
    if rest:
        notes.append(f"{len(rest)} tensors of the file are not the model's: {_listing(rest)}.")
    floats = {name for name, tensor in weights.items() if tensor.is_floating_point()}
    kept, new = dtype_name(weights[n] for n in floats), dtype_name(own[n] for n in floats)
    if kept != new:
        notes.append(f"The file's weights are {kept}; the model's are {new}.")
    return notes


def _listing(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
