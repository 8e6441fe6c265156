"""The subjects of `saturate`: every cell asked for, as ours, as torch's and as the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn

from gradflow.cells import GRU, LSTM, RNN, Gate
from gradflow.checkpoints.user_cells import load_cell
from gradflow.config import SaturateSettings
from gradflow.engine.saturation.gates import find_gates
from gradflow.engine.saturation.measure import measure
from gradflow.engine.saturation.places import ordinary_feed
from gradflow.engine.saturation.subjects import (
    Subject,
    own_subject,
    torch_subject,
    user_subject,
)
from gradflow.errors import CellLoadError, GradflowError

_RAISED = (GradflowError, RuntimeError, TypeError, ValueError, NotImplementedError)
# A name stands for all variants of a cell; a variant's own name for it alone.
VARIANTS: dict[str, tuple[str, ...]] = {"gru": ("gru", "gru-before"), "rnn": ("rnn", "rnn-relu")}
_OPTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "lstm": ("lstm", {}),
    "gru": ("gru", {"reset": "after"}),
    "gru-before": ("gru", {"reset": "before"}),
    "rnn": ("rnn", {"nonlinearity": "tanh"}),
    "rnn-relu": ("rnn", {"nonlinearity": "relu"}),
}


@dataclass(frozen=True)
class Entry:
    """A cell in a dtype: the subject, or the reason why it does not run in that dtype."""

    name: str
    implementation: str
    dtype: torch.dtype
    subject: Subject | None
    problem: str | None = None

    @property
    def judged(self) -> bool:
        """False for the relu RNN, whose state grows by design."""
        return self.name != "rnn-relu"


def entries(settings: SaturateSettings) -> list[Entry]:
    """Return every cell, implementation and dtype that is asked for.

    Raises:
        UnknownNameError, CellLoadError: a cell that does not exist or does not load in any dtype.
    """
    names = [variant for name in settings.cell for variant in VARIANTS.get(name, (name,))]
    dtypes = [getattr(torch, name) for name in settings.dtype]
    found: list[Entry] = []
    with torch.random.fork_rng(devices=[]):  # the cells draw their first weights from it
        for name in dict.fromkeys(names):
            if name not in _OPTIONS:
                gates = _gates_of(load_user_cell(name, settings, torch.get_default_dtype()))
                per_dtype = [[_user_entry(name, settings, dtype, gates)] for dtype in dtypes]
                _require_one([entry for (entry,) in per_dtype])
            else:
                per_dtype = [list(_built_in_entries(name, settings, dtype)) for dtype in dtypes]
            found += [entry for column in zip(*per_dtype, strict=True) for entry in column]
    return found


def load_user_cell(name: str, settings: SaturateSettings, dtype: torch.dtype) -> Subject:
    """Return a user's or a plug-in's cell as a subject, its random weights drawn from the seed.

    Raises:
        UnknownNameError, CellLoadError: it does not exist, does not load, or is no module.
    """
    torch.manual_seed(settings.seed)
    cell = load_cell(
        name, settings.input_size, settings.hidden, dtype=dtype, device=settings.device
    )
    if not isinstance(cell, nn.Module):
        raise CellLoadError(
            f"{name} cannot be saturated: it must be a torch.nn.Module, because its parameters are "
            f"set and differentiated; got a {type(cell).__name__}."
        )
    return user_subject(name, cell, cell)


def cell_notes(found: list[Entry]) -> tuple[str, ...]:
    """Return what is to be known of a user's cell, and its gates where they had to be found."""
    notes: list[str] = []
    for entry in found:
        if entry.subject is not None:
            notes += getattr(entry.subject.cell, "notes", ())
            notes += [_gate_note(entry.name, entry.subject.found)] if entry.subject.found else []
    return tuple(dict.fromkeys(notes))


def _gate_note(name: str, gates: tuple[Gate, ...]) -> str:
    shown = ", ".join(f"{gate.name} {' + '.join(map(str, gate.bias))}" for gate in gates)
    return f"{name} declares no gates; pushing its biases shows: {shown}."


def _built_in_entries(name: str, settings: SaturateSettings, dtype: torch.dtype) -> Iterator[Entry]:
    cell = _built_in(name, settings, dtype)
    yield _tried(name, settings, own_subject(name, cell))
    if name != "gru-before":  # torch has none
        yield _tried(name, settings, torch_subject(name, cell, cell.to_torch()))


def _user_entry(
    name: str, settings: SaturateSettings, dtype: torch.dtype, gates: tuple[Gate, ...]
) -> Entry:
    try:
        subject = load_user_cell(name, settings, dtype)
    except GradflowError as error:
        return Entry(name, "user", dtype, None, one_line(error))
    return _tried(name, settings, replace(subject, found=gates))


def _require_one(found: list[Entry]) -> None:
    """Raise where a user's cell runs in no dtype: without a trial nothing would be shown."""
    if all(entry.subject is None for entry in found):
        shown = ", ".join(str(entry.dtype).removeprefix("torch.") for entry in found)
        raise CellLoadError(
            f"{found[0].name} runs in none of the dtypes asked for ({shown}): {found[0].problem}"
        )


def _gates_of(subject: Subject) -> tuple[Gate, ...]:
    """Return the gates that a module does not declare, where they can be found."""
    if subject.gates:
        return ()
    try:
        return find_gates(subject)
    except _RAISED:
        return ()


def _built_in(name: str, settings: SaturateSettings, dtype: torch.dtype) -> LSTM | GRU | RNN:
    """Return a built-in cell; one seed gives the same weights in every dtype."""
    kind, options = _OPTIONS[name]
    torch.manual_seed(settings.seed)
    cell = load_cell(kind, settings.input_size, settings.hidden, dtype=torch.float64, **options)
    assert isinstance(cell, LSTM | GRU | RNN)
    return cell.to(dtype=dtype, device=settings.device)


def _tried(name: str, settings: SaturateSettings, subject: Subject) -> Entry:
    """Return the entry of a subject after an ordinary run: does the device do this dtype?"""
    dtype = subject.cell.dtype
    feed = ordinary_feed(subject, steps=1, batch=1, seed=settings.seed)
    try:
        measure(subject, feed)
    except _RAISED as error:
        return Entry(name, subject.implementation, dtype, None, one_line(error))
    return Entry(name, subject.implementation, dtype, subject)


def one_line(error: Exception) -> str:
    """Return an error's message in one line, its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
