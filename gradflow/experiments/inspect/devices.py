"""Where an inspection computes, whatever device torch makes new tensors on by default."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from gradflow.checkpoints.layers import Checkpoint
from gradflow.experiments.held_cells import require_device


@contextlib.contextmanager
def computing_on(name: str) -> Iterator[None]:
    """Let new tensors be made on one device for a while: a model makes its own zeros there too.

    Raises:
        UnknownNameError: torch does not know or does not reach it.
        DtypeError: it has no float64.
    """
    device = require_device(name, torch.float64)
    if torch.get_default_device() == device:
        yield  # torch looks at every call while a default is set: no reason to set the usual one
        return
    with device:
        yield


def moved(found: Checkpoint, device: torch.device | str) -> Checkpoint:
    """Return layers whose cells are on a device."""
    layers = [
        replace(each, cell=each.cell.to(device)) if isinstance(each.cell, nn.Module) else each
        for each in found.layers
    ]
    return replace(found, layers=tuple(layers))
