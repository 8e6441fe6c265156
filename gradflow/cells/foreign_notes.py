"""What one should know of a user's module before trusting a number: no error, but said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradflow.cells.foreign_checks import Probe, close_values, same_values, trial_copy
from gradflow.cells.gates import Gate
from gradflow.cells.holding import hold_
from gradflow.cells.shapes import State
from gradflow.cells.user_code import describe_fault
from gradflow.errors import CellCallError, CellLoadError

HELD_AT = 0.3  # a gate value that no other part of a cell has by chance


def note_no_gradient(probe: Probe) -> tuple[str, ...]:
    """Return a note where autograd sees no way from the old state to the new one."""
    with torch.enable_grad():
        old = tuple(part.clone().requires_grad_() for part in probe.state)
        new = probe.answer(probe.x, old)
        found = _slopes(probe, torch.cat(new, dim=-1), old)
    if any(gradient is not None for gradient in found):
        return ()
    return (
        f"autograd sees no way from the old state to the new one in {probe.form}, so every norm "
        "is zero: it detaches the state, or does not read it.",
    )


def _slopes(probe: Probe, new: Tensor, old: State) -> tuple[Tensor | None, ...]:
    """Return the derivative of the sum of the new state by each old part, None where it is cut."""
    if not new.requires_grad:
        return (None,) * len(old)
    try:
        return torch.autograd.grad(new.sum(), old, allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        raise CellLoadError(
            f"{probe.form} cannot be differentiated by torch.autograd: {describe_fault(error)}"
        ) from error


def note_training_mode(probe: Probe) -> tuple[str, ...]:
    """Return a note where training mode would give another answer."""
    trained = trial_copy(probe.module)
    if trained is None:
        return ()
    trained.train()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            answer = probe.form.call(trained, probe.x, probe.state)
        except CellCallError:  # what training mode does is not measured, so it may fail
            return ()
        if all(map(same_values, answer, probe.answer())):
            return ()
    return (
        f"{type(probe.module).__name__} is measured in evaluation mode (module.eval()): dropout "
        "is off and batch norm uses its running statistics.",
    )


def note_keep_gate(probe: Probe, gates: Sequence[Gate], kept_part: str) -> tuple[str, ...]:
    """Return a note where the declared keep gate, held, does not multiply the kept part.

    With every gate held and all else zero, d(kept')/d(kept) is the keep gate's value; another
    number means that the declared rows are another gate's, or that the gate is no plain sigmoid.
    """
    keep = next((gate for gate in gates if gate.role == "keep" and gate.bias), None)
    held = trial_copy(probe.module)
    if keep is None or held is None:
        return ()
    value: dict[str, Any] = {keep.name: HELD_AT}
    hold_(held, **value)
    index = probe.form.parts.index(kept_part)
    with torch.enable_grad():
        old = tuple(part.clone().requires_grad_() for part in probe.state)
        new = probe.form.call(held, probe.x, old)[index]
        (slope,) = _slopes(probe, new, (old[index],))
    if slope is not None and close_values(slope, torch.full_like(slope, HELD_AT)):
        return ()
    found = "nothing" if slope is None else f"{slope.min().item():.3g}"
    return (
        f"held at {HELD_AT} with all else zero, the declared keep gate {keep.name!r} leaves "
        f"{found} of {kept_part} per step, not {HELD_AT}: its rows may be another gate's.",
    )
