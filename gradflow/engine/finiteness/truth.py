"""The true result of one operation of torch, given the true values of what it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradflow.engine.finiteness.operations import MOVES, OPERATIONS, SOURCES
from gradflow.engine.finiteness.wide import Floats, Wide, wide

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of an operation, by place and by name."""
Shadows = dict[int, Wide]
"""The true values of tensors, by `id` of the tensor."""

_FORMAT = ("dtype", "device", "layout", "pin_memory", "non_blocking", "memory_format")


class CannotFollow(Exception):
    """An operation whose true result is not known; the message is its name."""


def true_results(func: Any, name: str, call: Call, shadows: Shadows) -> Iterator[Wide]:
    """Yield the true value of each result; nothing for a source, whose numbers are torch's own.

    Args:
        func: the operation, as torch dispatches it.
        name: its short name.
        call: its arguments.
        shadows: the true values of the tensors among them.

    Raises:
        CannotFollow: float64 cannot hold what the operation works on or makes.
    """
    if name in SOURCES:
        return
    if name == "copy":
        target, source = call[0][0], call[0][1]
        value = shadows[id(source)] if id(source) in shadows else wide(plain(source))
        shape = tuple(target.shape)
        yield Wide(np.broadcast_to(value.mantissa, shape), np.broadcast_to(value.exponent, shape))
    elif name in MOVES:
        yield _moved(func, call, shadows)
    elif name in OPERATIONS:
        args, kwargs = mapped(lambda leaf: _operand(leaf, shadows), call)
        try:
            yield OPERATIONS[name](*args, **kwargs)
        except TypeError:  # a variant of the operation with arguments that are not known here
            yield from _in_float64(func, name, call, shadows)
    else:
        yield from _in_float64(func, name, call, shadows)


def plain(tensor: Tensor) -> Floats:
    """Return a tensor's own numbers in float64."""
    return np.asarray(tensor.detach().to("cpu", torch.float64).numpy())


def short_name(func: Any) -> str:
    """Return an operation's name, "add" for torch.ops.aten.add_.Tensor too."""
    name: str = func.overloadpacket.__name__
    return name.rstrip("_")


def is_real(leaf: Any) -> bool:
    """Return whether this is a tensor of floating-point numbers."""
    return isinstance(leaf, Tensor) and leaf.is_floating_point()


def leaves_of(tree: Any) -> list[Any]:
    """Return what lists, tuples and dicts hold, however nested."""
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, list | tuple):
        return [tree]
    return [leaf for branch in tree for leaf in leaves_of(branch)]


def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return the same lists, tuples and dicts with every leaf changed."""
    if isinstance(tree, dict):
        return {key: mapped(change, branch) for key, branch in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)([mapped(change, branch) for branch in tree])
    return change(tree)


def _operand(leaf: Any, shadows: Shadows) -> Any:
    if id(leaf) in shadows:
        return shadows[id(leaf)]
    return plain(leaf) if isinstance(leaf, Tensor) else leaf


def _moved(func: Any, call: Call, shadows: Shadows) -> Wide:
    """Return where each number went: the operation is run on numbered places, place 0 a zero."""
    mantissas, exponents, count = [np.zeros(1)], [np.full(1, -np.inf)], 1

    def places(leaf: Any) -> Any:
        nonlocal count
        if id(leaf) not in shadows:
            return leaf
        value = shadows[id(leaf)]
        numbered = torch.arange(count, count + leaf.numel()).reshape(leaf.shape)
        mantissas.append(value.mantissa.reshape(-1))
        exponents.append(value.exponent.reshape(-1))
        count += leaf.numel()
        return numbered

    args, kwargs = mapped(places, call)
    kept = {key: value for key, value in kwargs.items() if key not in _FORMAT}
    index = func(*args, **kept).numpy()
    return Wide(np.concatenate(mantissas)[index], np.concatenate(exponents)[index])


def _in_float64(func: Any, name: str, call: Call, shadows: Shadows) -> Iterator[Wide]:
    """Yield torch's own results in float64, as long as nothing leaves its range."""

    def promoted(leaf: Any) -> Any:
        if id(leaf) not in shadows:
            return leaf.cpu() if isinstance(leaf, Tensor) else leaf
        values = shadows[id(leaf)].to_float64()
        if not np.all(np.isfinite(values)):
            raise CannotFollow(name)
        return torch.from_numpy(values.copy())

    args, kwargs = mapped(promoted, call)
    kept = {key: value for key, value in kwargs.items() if key not in _FORMAT}
    try:
        results = func(*args, **kept)
    except (RuntimeError, TypeError, NotImplementedError):
        raise CannotFollow(name) from None
    for tensor in leaves_of(results):
        if is_real(tensor):
            values = plain(tensor)
            if not np.all(np.isfinite(values)):
                raise CannotFollow(name)
            yield wide(values)
