"""What a user's module must be for its Jacobian to mean anything, tried on a few rows.

The new state must be a function of the old state and the input: the same on every call, of no
other row of the batch, leaving its arguments alone, and finite.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.cells.call_form import CallForm
from gradflow.cells.declared_form import PROBE_ROWS, attribute_of, call_initial_state
from gradflow.cells.find_form import float_like
from gradflow.cells.shapes import State
from gradflow.errors import CellCallError, CellLoadError


@dataclass(frozen=True)
class Probe:
    """A module in evaluation mode, how it is called, and a random input and state for it."""

    module: nn.Module
    form: CallForm
    x: Tensor
    state: State

    @classmethod
    def draw(cls, module: nn.Module, form: CallForm, *, seed: int = 0) -> Probe:
        """Draw x and the state from a normal distribution, without torch's global generator."""
        generator = torch.Generator().manual_seed(seed)
        like = float_like(module)

        def normal(width: int) -> Tensor:
            drawn = torch.randn(PROBE_ROWS, width, dtype=torch.float64, generator=generator)
            return drawn.to(like)

        return cls(module, form, normal(form.input_size), tuple(map(normal, form.sizes)))

    def answer(self, x: Tensor | None = None, state: State | None = None) -> State:
        """Call the module, on the probe's own arguments where none are given."""
        x = self.x if x is None else x
        return self.form.call(self.module, x, self.state if state is None else state)


def trial_copy(module: nn.Module) -> nn.Module | None:
    """Return a copy, so that trials leave no trace, or None where the module cannot be copied."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, while it copies scripted layers
            return copy.deepcopy(module)
    except Exception:  # it holds a graph, a lock, a scripted function; or will not be copied
        return None


def require_cell(probe: Probe) -> None:
    """Raise unless the module is a cell in the sense of this file.

    Raises:
        CellLoadError: which of the rules it breaks, and what mostly is the cause.
    """
    with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _require_finite_parameters(probe)
        _require_untouched_arguments(probe)
        _require_same_answer_twice(probe)
        _require_finite_answers(probe)
        _require_separate_rows(probe)


def _require_finite_parameters(probe: Probe) -> None:
    for name, tensor in probe.module.named_parameters():
        if tensor.is_complex():
            raise CellLoadError(
                f"the states that are measured are real numbers; parameter {name!r} is complex. "
                "Keep its real and imaginary part as two parameters."
            )
        if not torch.isfinite(tensor).all():
            raise CellLoadError(
                f"parameter {name!r} is not finite before anything ran: "
                f"{int((~torch.isfinite(tensor)).sum())} of {tensor.numel()} entries are NaN or "
                "infinite. Is a torch.empty left unset?"
            )


def _require_untouched_arguments(probe: Probe) -> None:
    x, state = probe.x.clone(), tuple(part.clone() for part in probe.state)
    probe.answer(x, state)
    names = ("x", *probe.form.parts)
    for name, after, before in zip(names, (x, *state), (probe.x, *probe.state), strict=True):
        if not torch.equal(after, before):
            raise CellLoadError(
                f"{probe.form} changes its argument {name} in place, so the old state is lost "
                f"before its derivative is taken. Work on a copy: {name} = {name}.clone()."
            )


def _require_same_answer_twice(probe: Probe) -> None:
    first, second = probe.answer(), probe.answer()
    if not all(map(same_values, first, second)):
        raise CellLoadError(
            f"{probe.form} gives two answers to the same input and state, so it has no Jacobian: "
            "it draws random numbers or keeps a memory of its own. "
            "Draw only under `if self.training:`, and keep all memory in the state."
        )


def _require_finite_answers(probe: Probe) -> None:
    zero = tuple(torch.zeros_like(part) for part in probe.state)
    start = zero
    if callable(attribute_of(probe.module, "initial_state")):
        own, _ = call_initial_state(probe.module, PROBE_ROWS)
        start = tuple(part.to(probe.x) for part in own)
    tries = (
        ("zero input and its first state", torch.zeros_like(probe.x), start),
        ("random input and state of unit size", probe.x, probe.state),
    )
    for words, x, state in tries:
        for name, part in zip(probe.form.parts, probe.answer(x, state), strict=True):
            if not torch.isfinite(part).all():
                kind = "NaN" if torch.isnan(part).any() else "infinite"
                raise CellLoadError(
                    f"{probe.form} is {kind} in {name} after one step from {words}, in "
                    f"{part.dtype}. Look for a division by zero, a log of zero, or an overflow."
                )


def _require_separate_rows(probe: Probe) -> None:
    """Raise if a row of the answer moves with the other rows, or cannot come alone."""
    usual = probe.answer()
    other = Probe.draw(probe.module, probe.form, seed=1)
    for row in (0, PROBE_ROWS - 1):  # a running sum over rows shows in the last alone
        x = _with_row(other.x, row, probe.x)
        pairs = zip(other.state, probe.state, strict=True)
        answer = probe.answer(x, tuple(_with_row(new, row, old) for new, old in pairs))
        if not all(close_values(a[row], b[row]) for a, b in zip(usual, answer, strict=True)):
            raise CellLoadError(
                f"{probe.form} lets the rows of a batch see each other: row {row} changed when "
                "only the others did, but rows are separate samples. Is there a batch norm, or a "
                "softmax or mean over axis 0? (Axis 0 is the batch.)"
            )
    try:
        alone = probe.answer(probe.x[:1], tuple(part[:1] for part in probe.state))
    except CellCallError as error:
        raise CellLoadError(
            f"a cell takes a batch of any size, but with one row alone {error}\n"
            "Is there a squeeze() that takes the batch axis away?"
        ) from error
    if not all(close_values(a[0], b[0]) for a, b in zip(usual, alone, strict=True)):
        raise CellLoadError(
            f"{probe.form} answers otherwise for one row alone than for the same row in a batch, "
            "but rows are separate samples."
        )


def _with_row(tensor: Tensor, row: int, source: Tensor) -> Tensor:
    """Return the tensor with one row from another."""
    mixed = tensor.clone()
    mixed[row] = source[row]
    return mixed


def same_values(one: Tensor, other: Tensor) -> bool:
    """Return whether two results are equal, NaN for NaN."""
    return torch.equal(one.nan_to_num(), other.nan_to_num())


def close_values(one: Tensor, other: Tensor) -> bool:
    """Return whether two results agree but for the rounding of another batch size."""
    # a sum of n products rounds at about sqrt(n) eps; 1000 eps is far from both ends
    tolerance = min(1000 * torch.finfo(one.dtype).eps, 0.05)
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance)
