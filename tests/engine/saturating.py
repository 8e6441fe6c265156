"""Subjects of the saturation tests: built-in cells, torch's twins, hand-written cells."""

from __future__ import annotations

import torch
from torch import nn

from gradflow.cells import GRU, LSTM, RNN, ForeignCell
from gradflow.engine.saturation.measure import Feed
from gradflow.engine.saturation.places import Place, gate_places, load, open_places, ordinary_feed
from gradflow.engine.saturation.subjects import (
    Subject,
    own_subject,
    torch_subject,
    user_subject,
)
from tests.data import saturation_cells

BUILT_IN = {
    "lstm": lambda dtype: LSTM(4, 4, dtype=dtype),
    "gru": lambda dtype: GRU(4, 4, dtype=dtype),
    "gru-before": lambda dtype: GRU(4, 4, reset="before", dtype=dtype),
    "rnn": lambda dtype: RNN(4, 4, dtype=dtype),
    "rnn-relu": lambda dtype: RNN(4, 4, nonlinearity="relu", dtype=dtype),
}


def built_in(kind: str, dtype: torch.dtype = torch.float64, *, by: str = "gradflow") -> Subject:
    """Return one of our cells, or torch's twin of it, with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        cell = BUILT_IN[kind](torch.float64).to(dtype)
    return (
        own_subject(kind, cell) if by == "gradflow" else torch_subject(kind, cell, cell.to_torch())
    )


def hand_written(name: str, dtype: torch.dtype = torch.float32) -> Subject:
    """Return a cell of tests/data/saturation_cells.py."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: nn.Module = getattr(saturation_cells, name)()
    cell = ForeignCell(module.to(dtype))
    return user_subject(name, cell, cell)


def feed_of(subject: Subject, *, steps: int = 3) -> Feed:
    """Return ordinary inputs and a first state."""
    return ordinary_feed(subject, steps=steps, batch=2, seed=0)


def place(subject: Subject, name: str) -> Place:
    """Return a place by its name."""
    places = [*gate_places(subject), *open_places(subject)]
    (found,) = [place for place in places if place.name == name]
    return found


def loaded(subject: Subject, name: str, value: float, *, steps: int = 3) -> Feed:
    """Put a number into a place and return what to feed."""
    return load(subject, place(subject, name), value, feed_of(subject, steps=steps))
