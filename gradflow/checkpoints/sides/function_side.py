"""A user's step function as a side: in torch by autograd, in NumPy by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.cells.user_code import describe_fault
from gradflow.checkpoints.sides.answers import Answer
from gradflow.checkpoints.sides.differences import MOST_ENTRIES, finite_differences
from gradflow.checkpoints.sides.function_form import (
    PROBE_HIDDEN,
    PROBE_INPUT,
    FunctionForm,
    find_function_form,
)
from gradflow.checkpoints.sides.module_side import note_writing, printing_aside, stacked_run
from gradflow.checkpoints.sides.protocol import (
    AutogradSide,
    Gradients,
    Problem,
    Run,
    Side,
    Way,
    Weights,
    sorted_gradients,
)
from gradflow.checkpoints.sides.signature import read_signature
from gradflow.errors import CellCallError, GradflowError

StepFunction = Callable[..., object]


def function_side(function: StepFunction, input_size: int, hidden_size: int, *, name: str) -> Side:
    """Return a step function as a side of these widths.

    Raises:
        CellLoadError: its arguments cannot be told, or no way to call it works.
    """
    form = find_function_form(function, read_signature(function, name), name)
    made = _TorchFunction if form.library == "torch" else _NumpyFunction
    return made(function, form, (input_size, hidden_size), name=name)


class FunctionSide(Side):
    """What both kinds share: shapes, calls, and words for a function that fails."""

    def __init__(
        self, function: StepFunction, form: FunctionForm, sizes: tuple[int, int], *, name: str
    ) -> None:
        super().__init__()
        self.name, self.form, self._function = name, form, function
        self.input_size, self.hidden_size = sizes
        self.parts = ("h", "c")[: form.parts]
        where = {"rows": "(batch, width)", "columns": "(width, batch)", "vectors": "(width,)"}
        library = "torch tensors" if form.library == "torch" else "NumPy arrays"
        self.what = f"a function of {library} {where[form.data]}"

    def clear_twin(self) -> Side:
        """Return the function at input 3 and hidden 5, quick to ask and with shapes that tell."""
        sizes = (PROBE_INPUT, PROBE_HIDDEN)
        if (self.input_size, self.hidden_size) == sizes:
            return self
        return type(self)(self._function, self.form, sizes, name=self.name)

    @property
    def weights(self) -> Weights:
        """Zeros of every weight's shape: a function has no weights of its own."""
        return self.form.weights(self.input_size, self.hidden_size)

    def steps(self, weights: dict[str, Any], xs: Any, state: tuple[Any, ...]) -> list[Answer]:
        """Call the function once per step, on copies of what it may write on."""
        answers: list[Answer] = []
        with printing_aside(self):
            for x in xs:
                old = answers[-1].state if answers else state
                given = tuple(_copy(part) for part in (x, *old))
                answers.append(self._call({n: _copy(w) for n, w in weights.items()}, given))
                note_writing(self, ("x", *self.parts), (x, *old), given)
        return answers

    def _call(self, weights: dict[str, Any], given: tuple[Any, ...]) -> Answer:
        try:
            answer = self.form.call(self._function, weights, given[0], given[1:], kind=self.kind)
        except GradflowError:
            raise
        except (Exception, SystemExit) as error:
            raise CellCallError(f"{self.name} failed: {describe_fault(error)}") from error
        if isinstance(answer, str):
            raise CellCallError(f"{self.name}: {answer}.")
        return answer


class _TorchFunction(FunctionSide, AutogradSide):
    """A function of torch tensors."""

    def tracked_run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Call the function once per step."""
        answers = self.steps(dict(weights), xs, state)
        return stacked_run(
            self.parts,
            [tuple(part.double() for part in answer.state) for answer in answers],
            [answer.gates for answer in answers],
        )


class _NumpyFunction(FunctionSide):
    """A function of NumPy arrays, which nothing differentiates but differences."""

    way: Way = "finite differences"

    def run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Call the function once per step."""
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        answers = self.steps(arrays, xs.numpy(), tuple(part.numpy() for part in state))
        return stacked_run(
            self.parts,
            [tuple(map(_tensor, answer.state)) for answer in answers],
            [{n: _tensor(g) for n, g in answer.gates.items()} for answer in answers],
        )

    def why_no_gradient(self, problem: Problem) -> str | None:
        """Return that there are too many entries, each of which takes four runs."""
        asked = [problem.xs, *problem.state, *self.weights.values()]
        count = sum(tensor.numel() for tensor in asked)
        if count <= MOST_ENTRIES:
            return None
        return (
            f"a NumPy function's gradient is taken entry by entry, and here are {count:,} of them "
            f"(up to {MOST_ENTRIES:,} are); ask for a smaller --hidden"
        )

    def gradients(self, weights: Weights, problem: Problem) -> Gradients:
        """Return dL by everything, by finite differences."""
        names, parts = list(weights), len(self.parts)
        asked = [problem.xs, *problem.state, *weights.values()]

        def loss(tensors: list[Tensor]) -> float:
            xs, state, values = tensors[0], tensors[1 : 1 + parts], tensors[1 + parts :]
            run = self.run(dict(zip(names, values, strict=True)), xs, tuple(state))
            return float(problem.loss(run.states))

        found = finite_differences(loss, asked)
        return sorted_gradients(self.parts, names, asked, tuple(found))


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else np.array(value)


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float64))
