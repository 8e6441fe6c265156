"""The subjects of `depth`: a stack with and without links, its batch, its dropout masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import Dropout, DropoutMasks, Stack
from gradflow.cells.base import Cell
from gradflow.cells.registry import BUILT_IN
from gradflow.checkpoints.user_stacks import load_stack
from gradflow.errors import SettingError, ShapeError
from gradflow.inits import apply_, torch_default_
from gradflow.settings.depth import DepthSettings


@dataclass(frozen=True)
class DepthSubject:
    """One stack to measure: `masks` is "none", "step" or "sequence", `drawn` are the masks."""

    name: str
    stack: Stack
    residual: bool
    masks: str
    drawn: DropoutMasks | None


def base_stack(name: str, settings: DepthSettings) -> tuple[Stack, bool]:
    """Return the stack of one `--cell` without links, and whether its file gave it whole.

    Built-in cells are drawn from the seed: torch's default first, `--init` on top of it.

    Raises:
        UnknownNameError, CellLoadError, ShapeError: the cell does not exist, load or fit.
        SettingError: an initialization of a user's cell, which has its own weights.
        GateValueError: an initialization of a gate that the cell does not have.
    """
    stack, whole = load_stack(
        name,
        settings.input_size,
        settings.hidden,
        layers=settings.layers,
        bidirectional=settings.bidirectional,
        dtype=getattr(torch, settings.dtype),
        device=settings.device,
        reset=settings.reset,
    )
    own_weights = name not in BUILT_IN
    if own_weights and settings.init != "torch-default":
        raise SettingError(
            f"--init draws the weights of a built-in cell, and {name} has its own; "
            f"got {settings.init}. Leave it out."
        )
    if not own_weights:
        for number, cell in enumerate(stack.cells):
            assert isinstance(cell, Cell)
            seed = settings.seed * 1_000_003 % 2**62 + number
            torch_default_(cell, generator=torch.Generator().manual_seed(seed))
            apply_(cell, settings.init, generator=torch.Generator().manual_seed(seed))
    return stack.eval(), whole


def depth_subjects(name: str, stack: Stack, settings: DepthSettings) -> Iterator[DepthSubject]:
    """Yield the stack with and without links, under each kind of masks that was asked for.

    One seed draws the masks of all: they differ by their kind, not by chance.

    Raises:
        ShapeError: links were asked for, and no layer is as wide as what it reads.
        CellLoadError: recurrent dropout of a user's cell.
    """
    for residual in link_variants(stack, settings):
        linked = _linked(stack) if residual else stack
        for kind in mask_kinds(settings):
            yield DepthSubject(name, linked, residual, kind, draw_masks(linked, settings, kind))


def link_variants(stack: Stack, settings: DepthSettings) -> list[bool]:
    """Return with which links to measure; "both" leaves out what the widths do not allow."""
    if stack.residual or settings.residual == "yes":
        return [True]
    possible = any(
        sum(stack.output_sizes(layer)) == stack.cell(layer).input_size
        for layer in range(stack.layers)
    )
    return [False, True] if settings.residual == "both" and possible else [False]


def mask_kinds(settings: DepthSettings) -> list[str]:
    """Return the kinds of dropout masks to measure under; "none" where nothing is dropped."""
    if settings.dropout == 0 and settings.recurrent_dropout == 0:
        return ["none"]
    return ["step", "sequence"] if settings.masks == "both" else [settings.masks]


def draw_masks(stack: Stack, settings: DepthSettings, kind: str) -> DropoutMasks | None:
    """Return the masks of one run, from the seed."""
    if kind == "none":
        return None
    rates = Dropout(
        settings.dropout, settings.recurrent_dropout, "step" if kind == "step" else "sequence"
    )
    generator = torch.Generator().manual_seed(settings.seed + 1)
    return stack.draw_masks(settings.steps, settings.batch, generator=generator, dropout=rates)


def batch_of(stack: Stack, settings: DepthSettings) -> tuple[Tensor, list[int]]:
    """Return a normal input (time, batch, input), and the samples' lengths, the longest first."""
    generator = torch.Generator().manual_seed(settings.seed)
    shape = (settings.steps, settings.batch, stack.input_size)
    x = torch.randn(shape, dtype=torch.float64, generator=generator)
    shortest = settings.shortest or settings.steps
    lengths = torch.linspace(settings.steps, shortest, settings.batch).round().int().tolist()
    return x.to(dtype=stack.dtype, device=settings.device), lengths


def _linked(stack: Stack) -> Stack:
    both = stack.directions == 2
    try:
        return Stack(stack.all_cells(), bidirectional=both, residual=True).eval()
    except ShapeError as error:
        raise ShapeError(f"--residual yes: {error}") from None
