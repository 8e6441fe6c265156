"""Cells that are called otherwise than torch's: cell(x, h, c), or with more in their answer."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gradflow.cells.call_form import CallForm
from gradflow.cells.find_form import float_like
from gradflow.cells.shapes import State
from gradflow.cells.shared_module import SharedModule
from gradflow.checkpoints.sides.answers import Answer, read_answer
from gradflow.errors import CellCallError

PROBE_BATCH = 7


class LooseCell(SharedModule):
    """A module behind torch's call form, though it takes h and c apart or answers with more.

    Args:
        module: the user's; names of its parameters stay.
        parts: how many parts its state has.
        apart: whether they are arguments of their own, `cell(x, h, c)`.
    """

    def __init__(self, module: nn.Module, parts: int, *, apart: bool) -> None:
        super().__init__()
        self._parts, self._apart = parts, apart
        self.share(module)

    def forward(self, x: Tensor, state: Tensor | State) -> Tensor | State:
        """Return the new state in torch's form.

        Raises:
            CellCallError: the module's answer holds no new state.
        """
        old = (state,) if isinstance(state, Tensor) else tuple(state)
        answer = self.module(x, *old) if self._apart else self.module(x, state)
        found = read_answer(answer, self._parts, tuple(old[0].shape))
        if not isinstance(found, Answer):
            raise CellCallError(f"{type(self.module).__name__}: {found}.")
        return found.state[0] if self._parts == 1 else found.state


def loose_cell(module: nn.Module, widths: tuple[int, int]) -> tuple[LooseCell, CallForm] | None:
    """Return a module that torch's own form does not fit as a cell, or None where no way works.

    Args:
        module: in evaluation mode, float64.
        widths: input and hidden width, to be taken where the module does not tell its own.
    """
    for form, cell in _candidates(module, widths):
        like = float_like(module)
        x = like.new_zeros(PROBE_BATCH, form.input_size)
        state = tuple(like.new_zeros(PROBE_BATCH, size) for size in form.sizes)
        with contextlib.suppress(CellCallError), quietly():
            form.call(cell, x, state)
            return cell, form
    return None


def widths_of(module: nn.Module, otherwise: tuple[int, int]) -> tuple[int, int]:
    """Return a module's input_size and hidden_size where it tells them."""
    own = (getattr(module, "input_size", None), getattr(module, "hidden_size", None))
    first, second = (
        value if isinstance(value, int) else other
        for value, other in zip(own, otherwise, strict=True)
    )
    return first, second


def _candidates(module: nn.Module, widths: tuple[int, int]) -> Iterator[tuple[CallForm, LooseCell]]:
    input_size, hidden = widths_of(module, widths)
    for count, apart in ((2, True), (2, False), (1, False)):
        parts = ("h", "c")[:count]
        form = CallForm(input_size, parts, (hidden,) * count, bare=count == 1)
        yield form, LooseCell(module, count, apart=apart)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Try user code without a graph, and without what it prints or warns of."""
    with (
        torch.no_grad(),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
