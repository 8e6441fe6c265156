"""Cells by what a user writes after `--cell`: a name, a file's function or a module's."""

from __future__ import annotations

import inspect
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradflow.cells import Cell, CellLike, ForeignCell
from gradflow.cells.declared_form import require_module
from gradflow.cells.foreign_checks import trial_copy
from gradflow.cells.registry import BUILT_IN, find_factory, make_cell
from gradflow.cells.user_code import describe_fault
from gradflow.checkpoints.torch_modules import TORCH_TYPES, from_torch
from gradflow.checkpoints.user_files import is_place, load_object, user_code_from
from gradflow.errors import CellLoadError, GradflowError

# What people call the first argument of a step; a function that starts so is no factory.
STEP_INPUTS = {"x", "x_t", "xt", "inputs"}
# Modules that were handed out as they are, because they cannot be copied.
_not_copied: weakref.WeakSet[nn.Module] = weakref.WeakSet()


def load_cell(
    spec: str,
    input_size: int,
    hidden_size: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    **options: Any,
) -> CellLike:
    """Return a new cell by a registered name, `path/to/file.py:name` or `package.module:name`.

    A user's name is a function or a class that returns a torch.nn.Module, or the module itself. It
    is called with the widths where it takes arguments of the names `input_size` and `hidden_size`
    (or just two arguments that it cannot do without), else without arguments: such a cell has its
    own widths. torch's own cells, and layers of one cell, become gradflow's, weights included.

    Args:
        spec: what to load; see `load_object` for files and modules.
        input_size, hidden_size: the widths asked for.
        dtype, device: what the cell is converted to; left as made where None.
        **options: for factories that take them by name (`reset`, `nonlinearity`).

    Returns:
        A cell of its own: a second call does not share weights with the first. What one should
        know of a user's cell is in its `notes`.

    Raises:
        UnknownNameError: there is no cell of this name.
        CellLoadError: what fails: the file, the name, the call, or what it returns.
    """
    asked = {"input_size": input_size, "hidden_size": hidden_size}
    options = {"dtype": dtype, "device": device, **options}
    if spec in BUILT_IN:
        return make_cell(spec, input_size, hidden_size, **options)
    try:
        if is_place(spec):
            made, told = make_from_place(spec, asked, options)
        else:
            factory = find_factory(spec)
            made, told = _call(factory, spec, asked, options, Path.cwd())
        cell = _as_cell(_own_copy(made, dtype, device), asked, told)
    except CellLoadError as error:
        raise CellLoadError(f"--cell {spec}: {error}") from error
    return cell


def make_from_place(
    spec: str, asked: Mapping[str, int], options: Mapping[str, Any]
) -> tuple[object, Mapping[str, int]]:
    """Return what the object of a file or module makes, and the widths that it was told."""
    found = load_object(spec)
    place, _, name = spec.rpartition(":")
    if isinstance(found, nn.Module):
        return found, {}
    if not callable(found):
        raise CellLoadError(
            f"{name} cannot be called (its type is {type(found).__name__}); a cell is a function "
            "or class that returns a torch.nn.Module."
        )
    path = Path(place).expanduser()
    folder = path.resolve().parent if path.suffix == ".py" else Path.cwd()
    return _call(found, name, asked, options, folder)


def _call(
    factory: Callable[..., object],
    name: str,
    asked: Mapping[str, int],
    options: Mapping[str, Any],
    folder: Path,
) -> tuple[object, Mapping[str, int]]:
    """Call a factory with the widths where it takes them; return its product and those widths."""
    arguments, keywords, told = _arguments(factory, name, asked, options)
    shown = ", ".join(
        [*map(str, arguments), *(f"{key}={value}" for key, value in keywords.items())]
    )
    try:
        with user_code_from(folder):
            made = factory(*arguments, **keywords)
    except GradflowError:
        raise
    except (Exception, SystemExit) as error:
        raise CellLoadError(f"{name}({shown}) failed: {describe_fault(error)}") from error
    if not isinstance(made, nn.Module | CellLike):
        raise CellLoadError(f"{name}({shown}) must return a torch.nn.Module; {_instead(made)}")
    return made, told


def _arguments(
    factory: Callable[..., object], name: str, asked: Mapping[str, int], options: Mapping[str, Any]
) -> tuple[list[int], dict[str, Any], Mapping[str, int]]:
    """Return the arguments by place and by name, and which widths are among them.

    Raises:
        CellLoadError: the factory needs something else.
    """
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a built-in without a signature
        return [], {}, {}
    given = {key: value for key, value in {**options, **asked}.items() if value is not None}
    keywords = {key: value for key, value in given.items() if _takes(parameters, key)}
    needed = [
        key
        for key, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and key not in keywords
    ]
    told = {key: value for key, value in asked.items() if key in keywords}
    by_place = all(parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY for key in needed)
    if needed and needed[0] in STEP_INPUTS:
        raise CellLoadError(
            f"{name}({', '.join(parameters)}) looks like the step itself; what is asked for is a "
            "function or class, without arguments or with (input_size, hidden_size), that returns "
            "the torch.nn.Module."
        )
    if len(needed) == 2 and not told and by_place:
        return list(asked.values()), keywords, asked
    if needed:
        raise CellLoadError(
            f"{name}({', '.join(parameters)}) is called without arguments, or with input_size and "
            f"hidden_size; it also needs {', '.join(needed)}. Give {needed[-1]} a default."
        )
    return [], keywords, told


def _takes(parameters: Mapping[str, inspect.Parameter], key: str) -> bool:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return key in parameters and parameters[key].kind in by_name


def _own_copy(made: object, dtype: torch.dtype | None, device: torch.device | str | None) -> object:
    """Return a copy in this dtype and on this device: the factory may return one object always."""
    if not isinstance(made, nn.Module):
        return made
    made = require_module(made)
    _require_real(made)
    own = trial_copy(made)
    if own is None:
        own = _not_shared(made)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, while it converts scripted layers
            return own.to(dtype=dtype, device=device)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise CellLoadError(
            f"the cell cannot be converted to {dtype} on {device}: {describe_fault(error)}"
        ) from error


def _require_real(module: nn.Module) -> None:
    """Raise where a conversion to a real dtype would drop imaginary parts."""
    tensors = {"parameter": module.named_parameters(), "buffer": module.named_buffers()}
    for kind, named in tensors.items():
        for name, tensor in named:
            if tensor.is_complex():
                raise CellLoadError(
                    f"{kind} {name!r} is complex, but the states that are measured are real. "
                    f"Keep its real and imaginary part as two {kind}s."
                )


def _not_shared(module: nn.Module) -> nn.Module:
    """Return a module that cannot be copied, once: a second cell of it would share its weights."""
    if module in _not_copied:
        raise CellLoadError(
            f"{type(module).__name__} is needed several times, each with weights of its own, and "
            "it cannot be copied (copy.deepcopy fails). Name a function or class that makes a new "
            "one at each call."
        )
    _not_copied.add(module)
    return module


def _as_cell(made: object, asked: Mapping[str, int], told: Mapping[str, int]) -> CellLike:
    """Return what was made as a cell."""
    if isinstance(made, Cell | ForeignCell):
        return made
    if type(made) in TORCH_TYPES:  # a subclass may have a forward of its own
        assert isinstance(made, nn.Module)
        cells = from_torch(made)
        if len(cells) > 1:
            raise CellLoadError(
                f"an nn.{type(made).__name__} of several levels or directions is {len(cells)} "
                "cells. Return one of them: gradflow.from_torch(module)[0]."
            )
        return cells[0]
    if not isinstance(made, nn.Module):
        assert isinstance(made, CellLike)
        return made
    free = (asked["input_size"], asked["hidden_size"])
    cell = ForeignCell(made, **told, sizes_if_free=free, prints_to_stderr=True)
    for name, width in told.items():
        own = getattr(cell, name)
        if own != width:
            cell.notes += (f"asked for {name} {width}, the cell is {own} wide.",)
    return cell


def _instead(made: object) -> str:
    """Return what came instead of a module, and what most often is the cause."""
    if made is None:
        return "it returned None. Is a return missing?"
    if isinstance(made, type):
        return f"it returned the class {made.__name__} itself. Return {made.__name__}(...)."
    return f"it returned something of type {type(made).__name__}."
