"""Objects from a user's own Python: `path/to/file.py:name` or `package.module:name`.

The code runs as Python would run it from its own folder: what lies beside the file can be
imported, and paths are relative to the working directory. What it prints goes to standard error,
because standard output carries results only.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import importlib.util
import os
import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from gradflow.cells.user_code import describe_fault
from gradflow.errors import CellLoadError, nearest_name

# A file is run once per version of it, because one sweep asks for the same cell many times.
_loaded: dict[tuple[Path, int, int], ModuleType] = {}
# Modules that were imported from beside a user's file, by name: the folder of each.
_siblings: dict[str, Path] = {}


def is_place(spec: str) -> bool:
    """Return whether a text is meant as a file or a module, and not as a registered name.

    >>> is_place("cells/mine.py:make_cell"), is_place("package.module:Cell"), is_place("lstm")
    (True, True, False)
    """
    return ":" in spec or spec.endswith(".py") or "/" in spec or os.sep in spec


def load_object(spec: str) -> object:
    """Return the object that `file.py:name` or `package.module:name` names.

    Args:
        spec: a path (relative to the working directory, `~` allowed) or a module's dotted name,
            a colon, and the name of something at the top of it (`Class.method` goes deeper).

    Raises:
        CellLoadError: which part of it fails: the form, the file, its code, or the name.
    """
    place, colon, name = spec.rpartition(":")
    if not colon or not name.strip() or not place.strip() or "/" in name:
        raise CellLoadError(_no_name(spec))
    module = load_file(Path(place).expanduser()) if _is_path(place) else _import_module(place)
    found: object = module
    for step in name.strip().split("."):
        if not hasattr(found, step):
            raise CellLoadError(f"{place} has no {name!r}. {nearest_name(step, _own_names(found))}")
        found = getattr(found, step)
    return found


def load_file(path: Path) -> ModuleType:
    """Run a Python file and return its module.

    A file runs once for each version of it, unless it draws or seeds random numbers while it is
    imported: then it runs again, so that every load finds the random numbers as the first did.

    Raises:
        CellLoadError: there is no such file, it is no Python, or running it fails.
    """
    try:
        _require_python_file(path)
        full = path.resolve()
        status = full.stat()
    except OSError as problem:  # a folder that may not be entered, a name that no disk takes
        raise CellLoadError(f"{path} cannot be read: {problem.strerror}.") from problem
    key = (full, status.st_mtime_ns, status.st_size)
    if key in _loaded:
        return _loaded[key]
    before = _random_numbers()
    module = _run_file(path, full)
    if _random_numbers() == before:
        _loaded[key] = module
    return module


@contextlib.contextmanager
def user_code_from(folder: Path) -> Iterator[None]:
    """Let code import what lies in `folder`, first; keep what it prints off standard output.

    The working directory is what it was when the code is done.

    Afterwards the folder stays at the end of the path, where it hides nothing: an import that
    only happens inside a call still finds its sibling.
    """
    folder = folder.resolve()
    place, start = str(folder), Path.cwd()
    _forget_namesakes(folder)
    before = set(sys.modules)
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(start)
        with contextlib.suppress(ValueError):
            sys.path.remove(place)
        if place not in sys.path:
            sys.path.append(place)
        for name in set(sys.modules) - before:
            if _lies_in(sys.modules[name], folder):
                _siblings[name] = folder


def _lies_in(module: object, folder: Path) -> bool:
    """Return whether a module was read from this folder, and not from packages installed there."""
    file = getattr(module, "__dict__", {}).get("__file__")  # past the hooks of lazy modules
    if not isinstance(file, str) or "site-packages" in file:
        return False
    return Path(file).resolve().is_relative_to(folder)


def _is_path(place: str) -> bool:
    """Return whether this means a file; a folder's bare name is a module where it is a package."""
    if place.endswith(".py") or "/" in place or os.sep in place:
        return True
    return _exists(Path(place)) and not _exists(Path(place) / "__init__.py")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, a folder that may not be entered
        return False


def _require_python_file(path: Path) -> None:
    if path.is_dir():
        raise CellLoadError(f"{path} is a folder; a cell is written {path}/FILE.py:NAME.")
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise CellLoadError(f"there is no folder {folder} (looked from {Path.cwd()}).")
        others = sorted(file.name for file in folder.glob("*.py"))
        close = difflib.get_close_matches(path.name, others, n=1)
        hint = f"Did you mean {folder / close[0]}?" if close else f"Looked from {Path.cwd()}."
        raise CellLoadError(f"there is no file {path}. {hint}")
    if path.suffix != ".py":
        raise CellLoadError(f"{path} is no Python file: its name does not end in .py.")


def _run_file(path: Path, full: Path) -> ModuleType:
    # a name of its own, so that a user's `torch.py` or `cell.py` hides nobody's module
    name = f"gradflow_user_{full.stem}_{zlib.crc32(str(full).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, full)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    replaced = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        with user_code_from(full.parent):
            code = compile(full.read_bytes(), str(full), "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name)
        if replaced is not None:
            sys.modules[name] = replaced
        raise CellLoadError(
            f"{path} cannot be run: {describe_fault(error)}{_cure(error)}"
        ) from error
    return module


def _import_module(name: str) -> ModuleType:
    try:
        with user_code_from(Path.cwd()):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (name == missing or name.startswith(f"{missing}.")):
            hint = f" Did you mean {name}.py:NAME?" if _exists(Path(f"{name}.py")) else ""
            raise CellLoadError(
                f"there is no module {missing!r}, installed or in {Path.cwd()}.{hint}"
            ) from error
        if isinstance(error, ValueError | TypeError) and not name.replace(".", "_").isidentifier():
            raise CellLoadError(
                f"{name!r} is neither a file nor the dotted name of a module. "
                "A cell of your own is written path/to/file.py:name."
            ) from error
        raise CellLoadError(
            f"the module {name} cannot be imported: {describe_fault(error)}{_cure(error)}"
        ) from error


def _random_numbers() -> tuple[object, ...]:
    """Return the state of every global generator of random numbers, to be compared."""
    numpy = np.random.get_state(legacy=False)["state"]  # noqa: NPY002  # of the global generator
    torchs = torch.get_rng_state().numpy().tobytes()
    return (random.getstate(), torchs, numpy["pos"], numpy["key"].tobytes())


def _forget_namesakes(folder: Path) -> None:
    """Let this folder's modules be imported where another user folder's have the same names."""
    for name, other in list(_siblings.items()):
        top = name.partition(".")[0]
        has_own = _exists(folder / f"{top}.py") or _exists(folder / top / "__init__.py")
        if other != folder and has_own:
            sys.modules.pop(name, None)
            del _siblings[name]


def _cure(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "\nPut what should only happen in a script under `if __name__ == '__main__':`."
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "\nA file inside a package is named by its module: package.module:name."
    return ""


def _no_name(spec: str) -> str:
    """Return what to say of a place without a name: what is there to choose from."""
    text = f"{spec!r} does not say which object is meant; write it as FILE.py:NAME."
    try:
        tree = ast.parse(Path(spec.rstrip(":")).expanduser().read_bytes())
    except (OSError, SyntaxError, ValueError):
        return text
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = [node.name for node in tree.body if isinstance(node, kinds) and node.name[0] != "_"]
    return f"{text} In the file: {', '.join(names)}." if names else text


def _own_names(place: object) -> list[str]:
    """Return the names to offer: what a module defines itself, before what it imported."""
    public = {name: value for name, value in vars(place).items() if not name.startswith("_")}
    own = getattr(place, "__name__", None)
    defined = [name for name, value in public.items() if getattr(value, "__module__", None) == own]
    return defined or [name for name, value in public.items() if not isinstance(value, ModuleType)]
