"""How a step function wants its arguments: found by trying, on sizes that no two axes share.

A function tells the names of its weights and not their shapes. What is open is small: weights that
multiply from the left (W @ v) or from the right (v @ W), on x and h apart or joined, one gate each
or all gates stacked; data as rows (batch, width), as columns (width, batch) or as single vectors;
torch tensors or NumPy arrays. The first combination that runs and answers in the right shape is
the function's own: input 3, hidden 5 and batch 7 leave nothing to chance.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gradflow.cells.user_code import describe_fault
from gradflow.checkpoints.sides.answers import Answer, describe, read_answer
from gradflow.checkpoints.sides.signature import Signature
from gradflow.checkpoints.sides.weight_shapes import Shape, shape_guesses, sizes_of
from gradflow.errors import CellCallError, CellLoadError

PROBE_INPUT, PROBE_HIDDEN, PROBE_BATCH = 3, 5, 7
Data = Literal["rows", "columns", "vectors"]
Library = Literal["torch", "numpy"]


@dataclass(frozen=True)
class FunctionForm:
    """How a step function is called: its data's shape, its library, its weights' shapes."""

    signature: Signature
    parts: int
    packed: bool
    data: Data
    library: Library
    shapes: dict[str, Shape]

    def weights(self, input_size: int, hidden_size: int) -> dict[str, Tensor]:
        """Return zeros of every weight's shape at these widths."""
        return {
            name: torch.zeros(sizes_of(shape, input_size, hidden_size), dtype=torch.float64)
            for name, shape in self.shapes.items()
        }

    def call(
        self,
        function: Callable[..., object],
        weights: dict[str, Any],
        x: Any,
        state: tuple[Any, ...],
        *,
        kind: str | None = None,
    ) -> Answer | str:
        """Call the function on rows (batch, width); return its answer as rows, or what is wrong.

        Everything is already of the function's library; nothing is copied.
        """
        if self.data == "vectors":
            rows = [
                self._once(function, weights, x[row], tuple(part[row] for part in state), kind)
                for row in range(len(x))
            ]
            return self._joined(rows)
        columns = self.data == "columns"
        given = (x.T, tuple(part.T for part in state)) if columns else (x, state)
        answer = self._once(function, weights, *given, kind)
        if isinstance(answer, str) or not columns:
            return answer
        return Answer(
            tuple(part.T for part in answer.state),
            {name: value.T for name, value in answer.gates.items()},
        )

    def _once(
        self,
        function: Callable[..., object],
        weights: dict[str, Any],
        x: Any,
        state: tuple[Any, ...],
        kind: str | None,
    ) -> Answer | str:
        places, named = self.signature.arguments(x, state, weights, packed=self.packed)
        answer = function(*places, **named)
        return read_answer(answer, self.parts, tuple(state[0].shape), kind)

    def _joined(self, rows: Sequence[Answer | str]) -> Answer | str:
        good = [row for row in rows if isinstance(row, Answer)]
        if len(good) < len(rows):
            return next(row for row in rows if isinstance(row, str))
        stack: Callable[..., Any] = torch.stack if self.library == "torch" else np.stack
        return Answer(
            tuple(stack([row.state[i] for row in good]) for i in range(self.parts)),
            {name: stack([row.gates[name] for row in good]) for name in good[0].gates},
        )


def find_function_form(
    function: Callable[..., object], signature: Signature, name: str
) -> FunctionForm:
    """Return how the function wants to be called.

    Raises:
        CellLoadError: no way works; the message shows the fault that says most.
    """
    faults: list[str] = []
    parts = (2,) if signature.c else (1, 2)
    attempts: Iterator[tuple[Library, bool]] = iter(
        [("torch", True), ("numpy", True), ("torch", False)]
    )
    for (library, strict), count in itertools.product(attempts, parts):
        for form in _forms(signature, count, library):
            fault = _fault(function, form, strict=strict)
            if fault is None:
                return form
            faults.append(fault)
    shown = max(faults, key=_tells, default="there is no such weight")
    raise CellLoadError(
        f"{name} was called with every likely shape of its weights (one gate each or stacked, "
        f"W @ v or v @ W, rows, columns or vectors), and none worked. One of the faults: {shown}\n"
        "Write it as lstm_step(x, h, c, W_i, ..., b_i, ...) with x (batch, input), or as a "
        "torch.nn.Module."
    )


def _forms(signature: Signature, parts: int, library: Library) -> Iterator[FunctionForm]:
    start = FunctionForm(signature, parts, signature.c is None and parts > 1, "rows", library, {})
    for data in ("rows", "columns", "vectors"):
        for shapes in shape_guesses(signature.weights, parts):
            yield replace(start, data=data, shapes=shapes)


def _fault(function: Callable[..., object], form: FunctionForm, *, strict: bool) -> str | None:
    """Return what goes wrong when the function is called so; None where it answers as it should."""
    x, state, weights = _probe(form)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = form.call(function, weights, x, state)
    except (Exception, SystemExit) as error:
        return describe_fault(error)
    if isinstance(answer, str):
        return answer
    kinds = Tensor if form.library == "torch" else np.ndarray
    if not all(isinstance(part, kinds) for part in answer.state):
        return f"it must return {form.library}'s own arrays; got {describe(answer.state)}"
    if strict and form.library == "torch" and not any(part.requires_grad for part in answer.state):
        return "its answer carries no gradient"
    return None


def _probe(form: FunctionForm) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return random data as rows and random weights, in the function's library."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Any:
        drawn = torch.randn(*shape, dtype=torch.float64, generator=generator)
        # times 1, because a leaf cannot be written on, and a function may write on what it gets
        return drawn.requires_grad_() * 1 if form.library == "torch" else drawn.numpy()

    weights = {
        name: normal(*sizes_of(shape, PROBE_INPUT, PROBE_HIDDEN))
        for name, shape in form.shapes.items()
    }
    state = tuple(normal(PROBE_BATCH, PROBE_HIDDEN) for _ in range(form.parts))
    return normal(PROBE_BATCH, PROBE_INPUT), state, weights


def _tells(fault: str) -> int:
    """Return how much a fault says of the function itself: misfits of shapes say least."""
    shapes = ("shape", "size", "dimension", "broadcast", "mat1", "aligned", "matmul")
    if fault.startswith(("it must return", "the dict")):
        return 2
    return 0 if any(word in fault.lower() for word in shapes) else 1


__all__ = ["CellCallError", "FunctionForm", "find_function_form"]
