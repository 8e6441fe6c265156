"""A module that stands for another one: same parameters, same names, same modes and moves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

from torch import nn

_REGISTERS = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


class SharedModule(nn.Module):
    """A wrapper whose `named_parameters`, `state_dict` and `to` are those of the module inside.

    A submodule would give every name a prefix. Instead the wrapper takes the module's registers
    (torch's own dictionaries of parameters, buffers and layers) for its own, so that a change of
    one is a change of the other, and `torch.func.functional_call` takes the user's names.
    """

    module: nn.Module

    def share(self, module: nn.Module) -> None:
        """Stand for this module from now on; to be called last in `__init__`."""
        for register in _REGISTERS:
            self.__dict__[register] = module.__dict__[register]
        # past nn.Module's own __setattr__, which would register it as a layer
        self.__dict__["module"] = module
        self.training = module.training

    def train(self, mode: bool = True) -> Self:
        """Set the module's mode too."""
        self.training = mode
        self.module.train(mode)
        return self

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        # through the module, which may move tensors of its own as well
        self.module._apply(fn, recurse)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        nn.Module.__init__(twin)
        for name, value in self.__dict__.items():
            if name not in (*_REGISTERS, "module"):
                twin.__dict__[name] = copy.deepcopy(value, memo)
        twin.share(copy.deepcopy(self.module, memo))
        return twin
