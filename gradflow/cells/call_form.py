"""How a user's module is called: the parts of its state, their widths, tensor or tuple.

torch's call form is `cell(x, h)` for one part and `cell(x, (h, c))` for several; the answer is the
new state in the same form.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.cells.shapes import State
from gradflow.cells.user_code import describe_fault
from gradflow.errors import CellCallError


@dataclass(frozen=True)
class CallForm:
    """The sizes of a module and the form of its state.

    `parts` names the parts of the state, `sizes` gives their widths; `bare` says that the one
    part is handed over as a tensor and not as a tuple of one.
    """

    input_size: int
    parts: tuple[str, ...]
    sizes: tuple[int, ...]
    bare: bool

    def __str__(self) -> str:
        """Return the call as one writes it.

        >>> str(CallForm(1, ("h", "c"), (3, 3), bare=False))
        'cell(x, (h, c))'
        """
        names = ", ".join(self.parts)
        if self.bare:
            return f"cell(x, {names})"
        return f"cell(x, ({names}{',' if len(self.parts) == 1 else ''}))"

    def pack(self, state: State) -> Tensor | State:
        """Return a state in the form that the module takes."""
        return state[0] if self.bare else tuple(state)

    def call(self, module: nn.Module, x: Tensor, state: State) -> State:
        """Run one step of the module.

        Args:
            module: the user's.
            x: (batch, input).
            state: one (batch, width) tensor per part.

        Returns:
            The new state, one tensor per part, shaped as the old one.

        Raises:
            CellCallError: the module raised, or answered with anything else.
        """
        try:
            answer = module(x, self.pack(state))
        except (Exception, SystemExit) as error:
            raise CellCallError(f"{self} failed: {describe_fault(error)}") from error
        return self._read(answer, state)

    def _read(self, answer: object, old: State) -> State:
        """Return the module's answer as a state, or raise saying what is wrong with it."""
        if self.bare:
            parts: tuple[object, ...] = (answer,)
            if not isinstance(answer, Tensor):
                raise CellCallError(
                    f"{self} must return the new {self.parts[0]}, a tensor; got {_named(answer)}."
                    + _hint(answer)
                )
        else:
            if not isinstance(answer, tuple | list) or len(answer) != len(old):
                raise CellCallError(
                    f"{self} must return the new state, {len(old)} tensors "
                    f"({', '.join(self.parts)}); got {_named(answer)}." + _hint(answer)
                )
            parts = tuple(answer)
        return tuple(
            self._require_part(name, new, before)
            for name, new, before in zip(self.parts, parts, old, strict=True)
        )

    def _require_part(self, name: str, new: object, old: Tensor) -> Tensor:
        if not isinstance(new, Tensor):
            raise CellCallError(
                f"{self} must return tensors; the new {name} is {_named(new)}." + _hint(new)
            )
        if new.shape != old.shape:
            raise CellCallError(
                f"{self} must return a new {name} of the old one's shape {tuple(old.shape)}, "
                f"(batch, width); got {tuple(new.shape)}."
            )
        if new.layout != old.layout or new.device != old.device:
            raise CellCallError(
                f"{self} must return a new {name} like the old one, {_place(old)}; got one that is "
                f"{_place(new)}."
            )
        if new.dtype != old.dtype:
            raise CellCallError(
                f"{self} must return a new {name} of the old one's dtype {old.dtype}; "
                f"got {new.dtype}. Make its constants with x.new_zeros or like the parameters."
            )
        return new


def _place(tensor: Tensor) -> str:
    """Return where and how a tensor is stored, in words: "dense on cpu"."""
    layout = "dense" if tensor.layout == torch.strided else str(tensor.layout)
    return f"{layout} on {tensor.device}"


def _named(answer: object) -> str:
    """Return what an answer is, in words: "a tuple (Tensor, tuple)"."""
    if isinstance(answer, tuple | list):
        inside = ", ".join(type(item).__name__ for item in answer)
        return f"a {type(answer).__name__} of {len(answer)} ({inside})"
    if answer is None:
        return "None"
    return f"a {type(answer).__name__}"


def _hint(answer: object) -> str:
    """Return what most often is the cause of such an answer."""
    if answer is None:
        return " Is a return missing?"
    if isinstance(answer, tuple | list):
        return " If it returns (output, state), return the state alone."
    if type(answer).__module__ == "numpy":
        return " NumPy arrays carry no gradient: compute in torch."
    return ""
