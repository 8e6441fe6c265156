"""What a user's module says of the way it is called, before it is tried.

A module may say it all: `input_size` and `hidden_size` (as torch's cells do), `state_size` (one
width, or one per part), `parts` (their names), or `initial_state(batch)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from gradflow.cells.call_form import CallForm
from gradflow.cells.shapes import State
from gradflow.cells.user_code import describe_fault
from gradflow.errors import CellCallError, CellLoadError, nearest_name

# More rows than a state has parts, so that `h, c = state` cannot unpack the rows of one tensor.
PROBE_ROWS = 7
MOST_PARTS = 4  # how many parts are tried where the module does not say


@dataclass(frozen=True)
class Told:
    """What is known of a module's form before it is tried; None where nobody says."""

    input_size: int | None
    hidden_size: int | None
    sizes: tuple[int, ...] | None
    names: tuple[str, ...] | None
    bare: bool | None

    def forms(self, input_size: int, hidden_size: int) -> Iterator[CallForm]:
        """Yield every form that these sizes leave open, fewest parts first."""
        counts: Iterable[int] = range(1, MOST_PARTS + 1)
        if self.sizes is not None or self.names is not None:
            counts = (len(self.sizes or self.names or ()),)
        for count in counts:
            bare = count == 1 if self.bare is None else self.bare
            sizes = self.sizes or (hidden_size,) * count
            yield CallForm(input_size, self.names or part_names(count), sizes, bare)


def part_names(count: int) -> tuple[str, ...]:
    """Return the names of unnamed parts: (h), (h, c), and s0, s1, ... for more."""
    return ("h", "c")[:count] if count <= 2 else tuple(f"s{index}" for index in range(count))


def read_declarations(
    module: nn.Module, input_size: int | None = None, hidden_size: int | None = None
) -> Told:
    """Return what the module (or else the caller) says of its sizes and parts.

    Raises:
        CellLoadError: what it says cannot be meant, or contradicts itself.
    """
    names, sizes = _declared_names(module), _declared_sizes(module)
    bare: bool | None = None
    if callable(attribute_of(module, "initial_state")):
        state, bare = call_initial_state(module, PROBE_ROWS)
        sizes = tuple(part.shape[-1] for part in state)
    if names is not None and sizes is not None and len(names) != len(sizes):
        raise CellLoadError(
            f"{type(module).__name__} names {len(names)} parts of its state ({', '.join(names)}) "
            f"but gives widths for {len(sizes)}: {sizes}."
        )
    return Told(
        _whole(module, "input_size") or input_size,
        _whole(module, "hidden_size") or hidden_size,
        sizes,
        names,
        bare,
    )


def attribute_of(module: nn.Module, name: str, default: Any = None) -> Any:
    """Return an attribute of a user's module, or the default where it has none.

    Raises:
        CellLoadError: it is a property, and the user's code in it failed.
    """
    try:
        return getattr(module, name, default)
    except Exception as error:
        raise CellLoadError(
            f"{type(module).__name__}.{name} failed: {describe_fault(error)}"
        ) from error


def call_initial_state(module: nn.Module, batch: int) -> tuple[State, bool]:
    """Return the module's own first state for `batch` rows, and whether it is a bare tensor.

    Raises:
        CellLoadError: the call fails, or returns anything but (batch, width) tensors.
    """
    try:
        given = module.initial_state(batch)  # type: ignore[operator]  # a Module's attribute
    except (Exception, SystemExit) as error:
        raise CellCallError(f"initial_state({batch}) failed: {describe_fault(error)}") from error
    bare = isinstance(given, Tensor)
    parts = (given,) if bare else given
    if not isinstance(parts, tuple | list) or not parts:
        raise CellCallError(
            f"initial_state({batch}) must return a tensor or a tuple of tensors, "
            f"(batch, width) each; got {type(given).__name__}."
        )
    for part in parts:
        if not isinstance(part, Tensor) or part.dim() != 2 or part.shape[0] != batch:
            got = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
            raise CellCallError(
                f"initial_state({batch}) must return tensors of shape ({batch}, width); got {got}. "
                "A part with more axes is flattened to one width: part.flatten(1)."
            )
    return tuple(part.detach() for part in parts), bare


def declared_kept_part(module: nn.Module, parts: tuple[str, ...]) -> str:
    """Return the part that is measured: as declared, else "c" where there is one, else the first.

    Raises:
        CellLoadError: the declared one is no part of the state.
    """
    kept = attribute_of(module, "kept_part")
    if not isinstance(kept, str):
        return "c" if "c" in parts else parts[0]
    if kept not in parts:
        known = nearest_name(kept, parts)
        raise CellLoadError(f"{type(module).__name__} has no part {kept!r} to keep. {known}")
    return kept


def require_module(module: object) -> nn.Module:
    """Return the module (uncompiled, where it was compiled).

    Raises:
        CellLoadError: it is no module, a scripted one, or of a class that torch cannot take apart.
    """
    if not isinstance(module, nn.Module):
        raise CellLoadError(
            f"a cell is a torch.nn.Module; got a {type(module).__name__}. "
            "Wrap a function in a Module whose forward(x, state) calls it."
        )
    if isinstance(module, torch.jit.ScriptModule):
        raise CellLoadError(
            "a scripted module hides its parameters from torch.func; give the Python module that "
            "it was scripted from."
        )
    if type(module).__hash__ is None:
        raise CellLoadError(
            f"{type(module).__name__} cannot be hashed, and torch keeps modules in sets. Where "
            "@dataclass made it so, write @dataclass(eq=False)."
        )
    original = getattr(module, "_orig_mod", None)  # torch.compile's wrapper
    return original if isinstance(original, nn.Module) else module


def is_lazy(module: nn.Module) -> bool:
    """Return whether the module has weights that its first call makes."""
    return any(isinstance(weight, UninitializedParameter) for weight in module.parameters())


def _declared_names(module: nn.Module) -> tuple[str, ...] | None:
    names = attribute_of(module, "parts")
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        return None
    if not names or len(set(names)) < len(names) or "joint" in names:
        raise CellLoadError(
            f"the parts of a state have different names, and none is 'joint'; got {tuple(names)}."
        )
    return tuple(names)


def _declared_sizes(module: nn.Module) -> tuple[int, ...] | None:
    sizes = attribute_of(module, "state_size")
    if not isinstance(sizes, bool) and isinstance(sizes, Integral):
        sizes = (sizes,)
    if not isinstance(sizes, tuple | list) or not all(isinstance(size, Integral) for size in sizes):
        return None
    if not sizes or any(size < 1 for size in sizes):
        raise CellLoadError(
            f"state_size is the width of each part, 1 or more; {type(module).__name__} has {sizes}."
        )
    return tuple(map(int, sizes))


def _whole(module: nn.Module, name: str) -> int | None:
    """Return an attribute where it is a positive whole number."""
    value = attribute_of(module, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) <= 0:
        return None
    return int(value)  # of NumPy's whole numbers too
