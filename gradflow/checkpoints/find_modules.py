"""Recurrent modules inside a model: torch's layers and cells, gradflow's, and a user's own."""

from __future__ import annotations

import contextlib
import inspect
import sys
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from gradflow.cells import Cell, ForeignCell, Stack
from gradflow.cells.foreign_checks import trial_copy
from gradflow.checkpoints.files.tensor_names import without_wrappers
from gradflow.checkpoints.layers.found import Unread
from gradflow.checkpoints.sides.signature import C_NAMES, H_NAMES
from gradflow.checkpoints.state_alone import foreign_cell
from gradflow.errors import CellLoadError

Sort = Literal["layer", "cell", "user"]
_STATES = H_NAMES | C_NAMES | {"state", "states", "hc", "prev", "prevstate", "hiddenstates"}
_RECURRENT_WORDS = ("LSTM", "GRU", "RNN")
_ASK_FOR_FORM = "As a cell it is called cell(x, h) or cell(x, (h, c)) and returns the new state"


@dataclass(frozen=True)
class RecurrentModule:
    """A recurrent module inside a model.

    `name` is its dotted name without wrappers (as `FoundLayer.name`), `path` the one that
    `model.get_submodule` takes. `sort` says whether it is one of torch's layers (a whole sequence
    at once), a cell (torch's or gradflow's) or a user's own cell. `before` and `after` name the
    nearest parts with weights around it, in the order in which they were registered.
    """

    name: str
    path: str
    module: nn.Module
    sort: Sort
    before: str | None = None
    after: str | None = None

    @property
    def kind(self) -> str:
        """Return lstm, gru or rnn, or the class of a user's cell."""
        if isinstance(self.module, Cell | ForeignCell):
            return self.module.kind
        if isinstance(self.module, nn.RNNBase):
            return self.module.mode.partition("_")[0].lower()
        for known, kind in ((nn.LSTMCell, "lstm"), (nn.GRUCell, "gru"), (nn.RNNCell, "rnn")):
            if isinstance(self.module, known):
                return kind
        return type(self.module).__name__


@dataclass(frozen=True)
class ModuleSearch:
    """The recurrent modules of a model in the order of registration, and what was left out."""

    found: tuple[RecurrentModule, ...]
    left_out: tuple[Unread, ...]


def find_modules(model: nn.Module) -> ModuleSearch:
    """Return every recurrent module inside a model, each once, with its dotted name.

    Found are nn.RNN, nn.LSTM and nn.GRU, their cells, gradflow's cells, and modules of a user that
    behave as a cell: `forward(x, state)` that gives a new state of the same form (tried on a copy
    with a few rows). What lies inside one of them is not looked for.

    Args:
        model: any module; wrappers such as DataParallel or torch.compile's are looked through.

    Raises:
        CellLoadError: it is no module, or a scripted one.

    >>> search = find_modules(nn.ModuleDict({"rnn": nn.GRU(3, 5), "head": nn.Linear(5, 1)}))
    >>> [(each.name, each.kind, each.sort, each.after) for each in search.found]
    [('rnn', 'gru', 'layer', 'head (Linear)')]
    """
    if not isinstance(model, nn.Module):
        raise CellLoadError(f"a model is a torch.nn.Module; got a {type(model).__name__}.")
    if isinstance(model, torch.jit.ScriptModule):
        raise CellLoadError(
            "a scripted model hides its parts; give the Python module that it was scripted from."
        )
    walk = _Walk()
    walk.visit(model, "")
    return ModuleSearch(tuple(walk.with_neighbours()), tuple(walk.left_out))


class _Walk:
    """A walk over a model's parts that stops at each recurrent one."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, nn.Module, Sort | None]] = []
        self.left_out: list[Unread] = []
        self._seen: set[int] = set()

    def visit(self, module: nn.Module, path: str) -> None:
        """Note this part, or else look inside it."""
        if id(module) in self._seen:
            return
        self._seen.add(id(module))
        sort, reason = _sort_of(module)
        if sort is not None:
            self.parts.append((path, module, sort))
            return
        count = len(self.parts)
        if reason is None or not reason.endswith("quantised"):
            for name, part in module.named_children():
                self.visit(part, f"{path}.{name}" if path else name)
        if reason is not None and not any(sort for _, _, sort in self.parts[count:]):
            quantised = reason.endswith("quantised")
            self.left_out.append(Unread(_shown(path, module), reason, quantised))
        if not list(module.children()) and list(module.parameters()):
            self.parts.append((path, module, None))

    def with_neighbours(self) -> list[RecurrentModule]:
        """Return the recurrent parts, each with its neighbours that have weights."""
        found = []
        for index, (path, module, sort) in enumerate(self.parts):
            if sort is None:
                continue
            before = [_described(*part) for part in self.parts[:index] if part[2] is None]
            after = [_described(*part) for part in self.parts[index + 1 :] if part[2] is None]
            found.append(
                RecurrentModule(
                    name=_shown(path, module),
                    path=path,
                    module=module,
                    sort=sort,
                    before=before[-1] if before else None,
                    after=after[0] if after else None,
                )
            )
        return found


def _shown(path: str, module: nn.Module) -> str:
    """Return a part's name without wrappers; what it is where it is the model itself."""
    name = without_wrappers(path) if path else ""
    if name in ("", "model", "module", "_orig_mod"):
        return RecurrentModule("", path, module, "cell").kind
    return name


def _described(path: str, module: nn.Module, _: Sort | None) -> str:
    return f"{without_wrappers(path)} ({type(module).__name__})"


def _sort_of(module: nn.Module) -> tuple[Sort | None, str | None]:
    """Return what sort of recurrent module this is; else why it is none, if it looks like one."""
    kind = type(module)
    if "quantized" in kind.__module__ and any(word in kind.__name__ for word in _RECURRENT_WORDS):
        return None, f"torch's {kind.__name__} of {kind.__module__} is quantised"
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return ("layer" if isinstance(module, nn.RNNBase) else "cell"), None
    if isinstance(module, Cell | ForeignCell):
        return "cell", None
    if not _looks_like_cell(module):
        return None, None
    trial = trial_copy(module)
    if trial is None:
        return None, "it looks like a cell but cannot be copied to be tried"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            # a model of one step, with scores beside the state, is looked into
            (ForeignCell if _holds_a_cell(module) else foreign_cell)(trial)
    except CellLoadError as problem:
        lines = " ".join(str(problem).splitlines()[:2]).rstrip(".")
        return None, f"{lines}. {_ASK_FOR_FORM}"
    return "user", None


def _holds_a_cell(module: nn.Module) -> bool:
    kinds = nn.RNNCellBase | Cell | ForeignCell
    return any(isinstance(part, kinds) for part in module.modules() if part is not module)


def _looks_like_cell(module: nn.Module) -> bool:
    """Return whether a user's forward takes x and a state, and no layer of torch's is inside."""
    if type(module).__module__.startswith("torch.") or isinstance(module, Stack):
        return False
    if not any(True for _ in module.parameters()):
        return False
    if any(isinstance(part, nn.RNNBase) for part in module.modules()):
        return False
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2 or any(p.default is p.empty for p in places[2:]):
        return False
    return places[1].name.lower().replace("_", "") in _STATES
