"""The recurrent modules of a model that can be watched."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from gradflow.cells import Cell, CellLike, ForeignCell, Stack
from gradflow.cells.foreign_checks import trial_copy
from gradflow.checkpoints.find_modules import Sort, find_modules
from gradflow.errors import CellLoadError


@dataclass(frozen=True)
class WatchedModule:
    """A recurrent module of a model under its dotted name.

    `form` is a cell of its own that tells parts and gates of a user's cell; None of torch's.
    """

    name: str
    kind: str
    module: nn.Module
    sort: Sort
    form: CellLike | None = None

    @property
    def torchs_own(self) -> nn.RNNBase | nn.RNNCellBase | None:
        """The module where it is torch's layer or cell, whose twin is known; else None."""
        return self.module if isinstance(self.module, nn.RNNBase | nn.RNNCellBase) else None

    @property
    def directions(self) -> int:
        """How many ways it reads."""
        return 2 if isinstance(self.module, nn.RNNBase) and self.module.bidirectional else 1


def watched_modules(model: nn.Module) -> tuple[tuple[WatchedModule, ...], tuple[str, ...]]:
    """Return the modules to watch, and sentences on those that were left out.

    No random number of the training is used up: a user's cell is tried on a copy.

    Raises:
        CellLoadError: there is none.
    """
    devices = {p.device for p in model.parameters()} if isinstance(model, nn.Module) else set()
    cards = [device.index or 0 for device in devices if device.type == "cuda"]
    with torch.random.fork_rng(devices=cards):
        search = find_modules(model)
        stacked = _cells_of_stacks(model)
        found = tuple(
            WatchedModule(each.name, each.kind, each.module, each.sort, _form(each.module))
            for each in search.found
            if id(each.module) not in stacked
        )
    left_out = (
        *map(str, search.left_out),
        *(
            f"{each.name} is left out: a gradflow Stack steps its cells without calling them."
            for each in search.found
            if id(each.module) in stacked
        ),
    )
    if not found:
        left = f" {left_out[0]}" if left_out else ""
        raise CellLoadError(
            "there is nothing to watch: the model has no nn.RNN, nn.LSTM, nn.GRU, none of their "
            f"cells, and no cell of your own that is called cell(x, state).{left}"
        )
    return found, left_out


def _cells_of_stacks(model: nn.Module) -> set[int]:
    stacks = [module for module in model.modules() if isinstance(module, Stack)]
    return {id(cell) for stack in stacks for cell in stack.cells}


def _form(module: nn.Module) -> CellLike | None:
    if isinstance(module, Cell | ForeignCell):
        return module
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return None
    copied = trial_copy(module)
    return None if copied is None else ForeignCell(copied, prints_to_stderr=True)
